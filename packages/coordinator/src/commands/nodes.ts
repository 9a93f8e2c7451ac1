/** Commands from agents: plain functions on a draft. */

import { isDeepStrictEqual } from 'node:util';
import { causeOf } from '@muster/common/cause';
import type { Condition } from '@muster/common/conditions';
import { MusterError } from '@muster/common/errors';
import type { NewEvent } from '@muster/common/eventKinds';
import type { NodeInventory } from '@muster/common/hardware';
import type { NodeName } from '@muster/common/ids';
import type { TaskEnd, TaskReport } from '@muster/common/views';
import type { AgentRegistry } from '../agents/registry.ts';
import { type Pace, type PublishedStatus, unpaced } from '../agents/statusPacer.ts';
import { type Caller, callerName } from '../caller.ts';
import { endLostTasks } from '../leases/leases.ts';
import type { JobEvent } from '../lifecycle/event.ts';
import { type Attempt, currentAttempt, isReleased, type MachineOrigin, type Node } from '../model.ts';
import { ownName } from '../spec/ownSpec.ts';
import { applyJobEvent } from '../state/applyJobEvent.ts';
import { heldTask, heldTasks } from '../state/heldTasks.ts';
import type { Draft } from '../state/state.ts';
import { acceptConditions, conditionEvents, gpuFaultOf } from './conditions.ts';
import { revoke } from './credentials.ts';
import { drainEvents, drainOnHello, leavingDrain } from './drains.ts';
import { refuseOtherMachine } from './identity.ts';
import { inventoryChanges } from './inventoryChanges.ts';

export interface HelloCommand {
  readonly name: NodeName;
  readonly instanceId: string;
  readonly bootId: string;
  readonly agentVersion: string;
  readonly inventory: NodeInventory;
  /** Every one that holds. */
  readonly conditions: readonly Condition[];
  readonly observed: readonly TaskReport[];
  readonly failedAtMs: FailureTimes;
  /** By our wall clock. null: not since this coordinator started. */
  readonly lastContactMs: number | null;
  /** Its machine will be switched off in this many milliseconds. null: that is not known. */
  readonly leavingInMs: number | null;
  /** Null for an agent of an earlier release. */
  readonly origin: MachineOrigin | null;
}

/**
 * When the first thing went wrong on the node of a task that ended badly, by our wall clock, as exactly as is known. null:
 * no earlier moment than now is known.
 */
export type FailureTimes = (exit: TaskEnd) => number | null;

/**
 * An agent has connected and reports its full state.
 * @throws {MusterError} as `refuseOtherMachine`: tasks may have been placed since that was asked
 */
export function hello(draft: Draft, command: HelloCommand, nowMs: number, pace: Pace = unpaced): void {
  const { observed, failedAtMs, lastContactMs: _, leavingInMs, ...node } = command;
  refuseOtherMachine(draft, node);
  const before = draft.node(command.name);
  const tokens = before?.tokens ?? null;
  const origin = node.origin ?? before?.origin ?? null;
  const conditions = acceptConditions(command.conditions);
  const drain = leavingDrain(drainOnHello(before, command.leavingInMs), leavingInMs, nowMs);
  const inventory = withKnownMachine(node.inventory, before?.inventory ?? null);
  const joinedAtMs = before?.joinedAtMs ?? nowMs;
  const after: Node = { ...node, inventory, conditions, drain, joinedAtMs, tokens, origin };
  draft.putNode(after);
  if (before === undefined) {
    draft.emit({ kind: 'node.joined', subject: node.name, data: { inventory: node.inventory } }, nowMs);
  }
  if (pace.take(node.name, 'online'))
    draft.emit({ kind: 'node.online', subject: node.name, data: { bootId: node.bootId } }, nowMs);
  const known = pace.lastPublished(node.name) ?? before ?? { ...after, conditions: [], drain: null };
  publishStatus(draft, known, after, nowMs, pace);
  report(draft, command.name, observed, failedAtMs, nowMs);
  if (before !== undefined && before.bootId !== command.bootId) endTasksOfEarlierBoot(draft, command, nowMs);
}

/** An agent reads what its machine is made of only after its Hello: until then it is what it was. */
function withKnownMachine(reported: NodeInventory, before: NodeInventory | null): NodeInventory {
  return reported.machine === null && before !== null ? { ...reported, machine: before.machine } : reported;
}

export interface StatusCommand {
  readonly name: NodeName;
  /** null: as it was. */
  readonly inventory: NodeInventory | null;
  /** Every one that holds. */
  readonly conditions: readonly Condition[];
  /** As in HelloCommand. */
  readonly leavingInMs: number | null;
}

/**
 * The whole node as it is now. Equal to what is known, it changes nothing; that a condition was seen once more is kept in
 * mind, and stored with the next change. What runs on a GPU that has vanished keeps it.
 */
export function nodeStatus(draft: Draft, command: StatusCommand, nowMs: number, pace: Pace = unpaced): void {
  const before = draft.node(command.name);
  if (before === undefined) return;
  const conditions = acceptConditions(command.conditions);
  const drain = leavingDrain(before.drain, command.leavingInMs, nowMs);
  const after: Node = {
    ...before,
    inventory: withKnownMachine(command.inventory ?? before.inventory, before.inventory),
    conditions,
    drain,
  };
  if (publishStatus(draft, pace.lastPublished(command.name) ?? before, after, nowMs, pace))
    draft.putNode(after);
  else if (pace.lastPublished(command.name) !== null) draft.noteNode(after);
  else if (!isDeepStrictEqual(before.conditions, conditions)) draft.noteNode({ ...before, conditions });
}

/** Publishes the status changes of a node that were held back, as far as the pace allows now. */
export function publishHeldBack(draft: Draft, name: NodeName, nowMs: number, pace: Pace): void {
  const [node, published] = [draft.node(name), pace.lastPublished(name)];
  if (node === undefined) pace.note(name, null);
  else if (published !== null && publishStatus(draft, published, node, nowMs, pace)) draft.putNode(node);
}

/**
 * Emits events for the differences to the status published last, unless the node has published too many lately.
 * @returns false if nothing was emitted
 */
function publishStatus(
  draft: Draft,
  known: PublishedStatus,
  after: Node,
  nowMs: number,
  pace: Pace,
): boolean {
  const { name, inventory, conditions, drain } = after;
  const changes = inventoryChanges(known.inventory, inventory);
  const { gpus } = inventory;
  const changed: readonly NewEvent[] =
    changes.length === 0 ? [] : [{ kind: 'node.changed', subject: name, data: { changes, gpus } }];
  const others = [
    ...conditionEvents(name, known.conditions, conditions),
    ...drainEvents({ ...after, ...known }, after),
  ];
  const mayChange = pace.take(name, 'inventory', changed.length);
  const mayOthers = pace.take(name, 'conditions', others.length);
  const events = [...(mayChange ? changed : []), ...(mayOthers ? others : [])];
  for (const event of events) draft.emit(event, nowMs);
  const published = {
    inventory: mayChange ? inventory : known.inventory,
    conditions: mayOthers ? conditions : known.conditions,
    drain: mayOthers ? drain : known.drain,
  };
  pace.note(name, mayChange && mayOthers ? null : published);
  return events.length > 0;
}

/**
 * Takes what an agent reports about its tasks. Reports about tasks that it was never given, and about attempts that are
 * not current, change nothing (guarantee G6).
 */
export function report(
  draft: Draft,
  node: NodeName,
  reports: readonly TaskReport[],
  failedAtMs: FailureTimes,
  nowMs: number,
): void {
  for (const each of reports) {
    const { task, state, exit, runningForMs } = each;
    const job = draft.job(task.jobId);
    const known = job === undefined ? undefined : currentAttempt(job)?.tasks[task.nodeRank];
    if (known?.node !== node) continue;
    const fence = { attempt: task.attempt, nodeRank: task.nodeRank };
    // A task that has ended within moments is reported once, with how long ago it began.
    if (state === 'running' || (state === 'ended' && runningForMs !== null)) {
      const startedAtMs = each.startedAtMs ?? nowMs - (runningForMs ?? 0);
      applyJobEvent(draft, task.jobId, { kind: 'taskRunning', ...fence, startedAtMs }, nowMs);
    }
    if (state === 'ended' && exit !== null) {
      const ranForMs = ranFor(each);
      const gpuFault = gpuFaultOf(draft.node(node)?.conditions ?? [], task);
      applyJobEvent(
        draft,
        task.jobId,
        { kind: 'taskEnded', ...fence, exit, failedAtMs: failedAtMs(exit), gpuFault, ranForMs },
        nowMs,
      );
    }
  }
}

/** How long a task ran by its node's clock, milliseconds. Returns null if its node did not see it begin and end in one boot. */
function ranFor({ startedBoottimeMs, endedBoottimeMs }: TaskReport): number | null {
  if (startedBoottimeMs === null || endedBoottimeMs === null) return null;
  return Math.max(0, endedBoottimeMs - startedBoottimeMs);
}

/** Tasks whose lease has run out on their node, or who have a fresh one: for the record. */
export function noteFreezes(
  draft: Draft,
  node: NodeName,
  changed: readonly TaskReport[],
  nowMs: number,
  pace: Pace = unpaced,
): void {
  for (const { task, frozen } of changed) {
    const job = draft.job(task.jobId);
    const held = heldTask(job, task, node);
    if (job === undefined || held === undefined || held.state === 'ended') continue;
    const { attempt, nodeRank } = task;
    const data = { name: ownName(job), attempt, nodeRank, node };
    if (!pace.take(node, 'freezes')) return;
    draft.emit({ kind: frozen ? 'task.frozen' : 'task.thawed', subject: job.id, data }, nowMs);
  }
}

/** A new boot id proves that what ran on this node before is dead, except what the agent reports as running. */
export function endTasksOfEarlierBoot(draft: Draft, command: HelloCommand, nowMs: number): void {
  const alive = new Set(
    command.observed
      .filter((each) => each.state === 'running')
      .map(({ task }) => `${task.jobId}.${task.attempt}`),
  );
  for (const job of draft.activeJobs()) {
    const attempt = currentAttempt(job);
    if (attempt === null || !isReleased(attempt) || alive.has(`${job.id}.${attempt.number}`)) continue;
    for (const task of attempt.tasks) {
      if (task.node !== command.name || task.state === 'ended') continue;
      const message = `node ${command.name} was rebooted while rank ${task.nodeRank} ran on it`;
      const { nodeRank } = task;
      const { lastContactMs } = command;
      applyJobEvent(
        draft,
        job.id,
        { kind: 'taskLost', attempt: attempt.number, nodeRank, message, lastContactMs },
        nowMs,
      );
    }
  }
}

/**
 * What the silence of a node means for an attempt with a task on it. Nothing of an attempt runs before its release, so that the
 * attempt can fail.
 * @returns null: the task is released and may well be running, so that only its node or a proof of its end ends it
 */
export function eventOfSilence(attempt: Attempt, nodeRank: number, message: string): JobEvent | null {
  if (isReleased(attempt)) return null;
  const node = attempt.tasks[nodeRank]?.node ?? null;
  const cause = causeOf('node_lost', message, { nodeRank, node });
  return { kind: 'startFailed', attempt: attempt.number, cause, excludeNodes: [] };
}

/** A node stopped answering. */
export function nodeSilent(draft: Draft, name: NodeName, nowMs: number): void {
  // Of one that was removed meanwhile nobody expects anything.
  if (draft.node(name) === undefined) return;
  draft.emit({ kind: 'node.silent', subject: name, data: {} }, nowMs);
  for (const job of draft.activeJobs()) {
    const attempt = currentAttempt(job);
    const rank = attempt?.tasks.findIndex((task) => task.node === name) ?? -1;
    if (attempt === null || rank < 0) continue;
    const event = eventOfSilence(attempt, rank, `node ${name} went silent while it prepared rank ${rank}`);
    if (event !== null) applyJobEvent(draft, job.id, event, nowMs);
  }
}

const namedMax = 3;

/**
 * Ends the node's credential and forgets the node. What its agent sends after that is refused.
 * @throws {MusterError} `not_found`; `failed_precondition` while it has tasks that have not ended: until it is known that
 *   nothing of them runs there, the node is needed to report it
 */
export function removeNode(draft: Draft, name: NodeName, nowMs: number): void {
  const credentials = draft.credentialsOf(name).filter(({ kind }) => kind === 'agent' || kind === 'join');
  if (draft.node(name) === undefined && credentials.length === 0)
    throw new MusterError('not_found', `there is no node ${name}; \`muster nodes\` lists them`);
  const jobs = new Set((heldTasks(draft.activeJobs()).get(name) ?? []).map(({ job }) => job.id));
  if (jobs.size > 0) {
    const some = [...jobs].slice(0, namedMax).join(', ');
    const more = jobs.size > namedMax ? ` and ${jobs.size - namedMax} more` : '';
    throw new MusterError(
      'failed_precondition',
      `${name} has tasks of ${some}${more} that have not ended; reschedule them with \`muster node drain ${name} ` +
        `--deadline 0s\`, or, if the machine is certainly dead: muster node confirm-dead ${name}`,
    );
  }
  revoke(draft, credentials, nowMs);
  if (draft.node(name) === undefined) return;
  draft.removeNode(name);
  draft.emit({ kind: 'node.removed', subject: name, data: {} }, nowMs);
}

/** The origin of the proof. */
export type Proof =
  | { readonly kind: 'person'; readonly caller: Caller }
  | { readonly kind: 'fence_command'; readonly silence: number };

/**
 * Ends every task of the node as lost, those that are never fenced included. Idempotent.
 * @throws {MusterError} `failed_precondition` when the node responds, or has responded since the proof was begun
 * @returns the silence during which the tasks were ended, for `AgentRegistry.noteDead` after the commit
 */
export function confirmDead(
  draft: Draft,
  agents: AgentRegistry,
  node: NodeName,
  proof: Proof,
  nowMs: number,
): number {
  const silence = agents.silenceOf(node);
  if (silence === null) {
    throw new MusterError(
      'failed_precondition',
      `${node} responds, or stopped responding a moment ago: it is not dead, and \`muster stop\` ends its jobs; try again once ` +
        '`muster nodes` shows it as silent',
    );
  }
  if (proof.kind === 'fence_command' && proof.silence !== silence.number)
    throw new MusterError(
      'failed_precondition',
      `${node} has responded since the fencing command was started`,
    );
  const by = proof.kind === 'person' ? callerName(proof.caller).by : 'fence command';
  const silentForMs = agents.silentForMs(node);
  const lastContactMs = silentForMs === null ? null : nowMs - silentForMs;
  const loss = { message: `node ${node} is dead, confirmed by ${by}`, lastContactMs };
  const tasks = endLostTasks(draft, node, () => true, loss, nowMs);
  if (!silence.isDead || tasks.length > 0)
    draft.emit({ kind: 'node.confirmed_dead', subject: node, data: { by, tasks } }, nowMs);
  return silence.number;
}
