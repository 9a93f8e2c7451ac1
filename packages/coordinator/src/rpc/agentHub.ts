/** The agents' side of the coordinator. Decodes, hands to commands, encodes. */
import { MusterError, messageOf } from '@muster/common/errors';
import type { AgentHubHandlers } from '@muster/common/gen/muster/v1/AgentHub';
import type { AgentMessage__Output } from '@muster/common/gen/muster/v1/AgentMessage';
import type { Checked__Output } from '@muster/common/gen/muster/v1/Checked';
import type { Heartbeat__Output } from '@muster/common/gen/muster/v1/Heartbeat';
import type { NodeStatus__Output } from '@muster/common/gen/muster/v1/NodeStatus';
import type { Prepared__Output } from '@muster/common/gen/muster/v1/Prepared';
import type { TaskRef } from '@muster/common/ids';
import type { TaskReport } from '@muster/common/views';
import { findingsFromWire, taskRefFromWire } from '@muster/common/wire/codec';
import { forgotten, verdictOn } from '../agents/desired.ts';
import { AgentSession } from '../agents/session.ts';
import { callerOf } from '../auth/interceptor.ts';
import { keepSecret } from '../commands/credentials.ts';
import { nodeStatus, noteFreezes, report } from '../commands/nodes.ts';
import type { JobEvent } from '../lifecycle/transition.ts';
import { currentAttempt } from '../model.ts';
import { applyJobEvent } from '../state/applyJobEvent.ts';
import { learnOutcomes } from '../state/endedJobs.ts';
import { heldTask } from '../state/heldTasks.ts';
import { NodeAllowances } from '../work/allowance.ts';
import type { AgentHubParts } from './agentHubParts.ts';
import { conditionsReported, failureTimes, inventoryReported, reportsFromWire } from './agentReports.ts';
import { taken } from './bounds/bounded.ts';
import { endWithError, unary, unaryHandler } from './calls.ts';
import { SessionAllowances, takeInTurn } from './intake.ts';
import { join, takeOffer } from './join.ts';
import { serveUpload } from './logUploads.ts';
import { noteNodeClock } from './nodeClocks.ts';
import { preparedEvent } from './prepared.ts';
import { serveRows } from './rowUploads.ts';
import { type SecretCallParts, taskSecretCalls } from './secrets.ts';
import { type SessionCall, SessionOpening } from './sessionOpening.ts';
import { serveTelemetry, uploadRate } from './telemetryUploads.ts';
import { completeTraining, takeCheckpoint, takeTrainingSign } from './trainingMessages.ts';
import { withoutSpace } from './withoutSpace.ts';

export function agentHubCalls(parts: AgentHubParts & SecretCallParts): AgentHubHandlers {
  const allowances = new SessionAllowances(parts.monotonicMs);
  const uploads = new NodeAllowances(uploadRate, parts.monotonicMs);
  return {
    Join: unaryHandler(unary((request, caller) => join(parts, taken(request), caller))),
    Session: (call) => serveSession(parts, allowances, call),
    UploadLogs: (call) => serveUpload(parts, call),
    UploadRows: (call) => serveRows(parts, call),
    UploadTelemetry: (call) => serveTelemetry(parts, uploads, call),
    ...taskSecretCalls(parts),
  };
}

function serveSession(parts: AgentHubParts, allowances: SessionAllowances, call: SessionCall): void {
  const caller = callerOf(call);
  /** Messages may follow Hello before its commit is done; they wait for it, in order. */
  let opening: SessionOpening | null = null;
  let session: AgentSession | null = null;
  let isClosed = false;
  const refuse = (error: MusterError) => endWithError(call, error);
  if (caller.kind !== 'agent') {
    refuse(new MusterError('permission_denied', 'only agents have sessions'));
    return;
  }
  const { node } = caller;

  const take = (message: AgentMessage__Output) => allowances.take(node, message);
  const onMessageOf = (of: AgentSession, message: AgentMessage__Output) =>
    withoutSpace(parts, of, message, () => onMessage(parts, of, message));
  const handle = async (message: AgentMessage__Output) => {
    // Any message may come twice: a second Hello does not open a second session.
    if (message.hello != null && opening === null) {
      opening = new SessionOpening(parts, call, caller, message.hello, noteTasks);
      began(opening).catch(fail);
      await opening.begin();
      return;
    }
    if (opening === null) throw new MusterError('invalid', 'a session begins with Hello');
    if (message.tokenKept != null) await opening.tokenKept(message.tokenKept);
    else if (!opening.keepEarly(message)) await onMessageOf(await opening.session, message);
  };
  /** Deals with what has come before the Welcome, once it is sent. */
  const began = async (begun: SessionOpening) => {
    const opened = await begun.session;
    session = opened;
    // The stream closed during the commit: if the session stayed, the node would count as connected until it is silent.
    if (isClosed) closed();
    for (const message of begun.takeEarly()) await onMessageOf(opened, message);
  };
  const fail = (error: unknown) => {
    if (!parts.state.nodes.has(node)) parts.agents.forget(node);
    const known = error instanceof MusterError ? error : new MusterError('internal', messageOf(error));
    parts.log.warn({ node, error: known.message }, 'an agent session was ended');
    refuse(known);
  };
  takeInTurn(call, take, handle, fail);
  const closed = () => {
    isClosed = true;
    if (session !== null && parts.agents.remove(session)) parts.log.info({ node }, 'agent disconnected');
  };
  call.on('end', () => {
    closed();
    call.end();
  });
  call.on('cancelled', closed);
  call.on('error', closed);
}

async function onMessage(
  parts: AgentHubParts,
  session: AgentSession,
  message: AgentMessage__Output,
): Promise<void> {
  // A newer connection of the same agent has taken over: what still trickles in here is history.
  if (!parts.agents.isCurrent(session)) return;
  parts.agents.contacted(session);
  const { caller } = session;
  if (message.heartbeat != null) onHeartbeat(parts, session, message.heartbeat);
  if (message.prepared != null) await onPrepared(parts, session, message.prepared);
  if (message.checked != null) await onChecked(parts, session, message.checked);
  if (message.report != null) {
    const reports = reportsFromWire(parts.taskStatus, session.node, [message.report]);
    if (reports.length > 0) await takeReports(parts, session, reports);
  }
  if (message.checkpoint != null && parts.pacer.take(session.node, 'training'))
    await takeCheckpoint(parts, caller, message.checkpoint);
  if (message.trainingSign != null && parts.pacer.take(session.node, 'training'))
    await takeTrainingSign(parts, caller, message.trainingSign);
  if (message.status != null) await takeStatus(parts, session, message.status);
  if (message.credentialOffer != null) await takeOffer(parts, session, message.credentialOffer.credential);
  // The agent uses the secret that it offered: the one before ends.
  if (message.credentialKept != null)
    await parts.loop.run(caller, (draft, nowMs) =>
      keepSecret(draft, caller.id, parts.credentialLifetimeMs, nowMs),
    );
}

async function onPrepared(
  parts: AgentHubParts,
  session: AgentSession,
  prepared: Prepared__Output,
): Promise<void> {
  const task = taskRefFromWire(prepared.task);
  if (task !== null) await takeEvent(parts, session, task, preparedEvent(task, prepared));
}

async function onChecked(
  parts: AgentHubParts,
  session: AgentSession,
  checked: Checked__Output,
): Promise<void> {
  const task = taskRefFromWire(checked.task);
  if (task === null || checked.findings === null) return;
  const { attempt, nodeRank } = task;
  const findings = findingsFromWire(checked.findings);
  await takeEvent(parts, session, task, { kind: 'checked', attempt, nodeRank, findings });
}

/** A step of an agent towards the start of a task that is its own. */
async function takeEvent(
  parts: AgentHubParts,
  session: AgentSession,
  task: TaskRef,
  event: JobEvent,
): Promise<void> {
  const job = await parts.loop.run(session.caller, (draft, nowMs) => {
    if (heldTask(draft.job(task.jobId), task, session.node) !== undefined)
      applyJobEvent(draft, task.jobId, event, nowMs);
    return draft.job(task.jobId);
  });
  // For an attempt that is over, send the order at once rather than at the next heartbeat.
  if (currentAttempt(job)?.number !== task.attempt) session.sync(task, job);
}

/** A status is applied when it is received, not only with the next Hello. */
export async function takeStatus(
  parts: AgentHubParts,
  session: AgentSession,
  status: NodeStatus__Output,
): Promise<void> {
  const inventory = status.inventory === null ? null : inventoryReported(status.inventory);
  const own = [session.doubt, parts.duplicates.conditionOf(session.node)];
  const conditions = conditionsReported(status.conditions, ...own);
  const leavingInMs = status.leavingInMs ?? null;
  const command = { name: session.node, inventory, conditions, leavingInMs };
  await parts.loop.run(session.caller, (draft, nowMs) => {
    // It waited for its turn, and a newer Hello may have come first: what was true before that is outdated.
    if (parts.agents.isCurrent(session)) nodeStatus(draft, command, nowMs, parts.pacer);
  });
}

async function takeReports(
  parts: AgentHubParts,
  session: AgentSession,
  reports: readonly TaskReport[],
): Promise<void> {
  const { node, bootId } = session;
  noteTasks(parts, session, reports);
  const failedAtMs = failureTimes(parts.taskStatus, node, bootId);
  await parts.loop.run(session.caller, (draft, nowMs) => {
    completeTraining(draft, node, reports, nowMs);
    report(draft, node, reports, failedAtMs, nowMs);
  });
}

/** Keeps in mind what is shown of tasks and not stored. That one was frozen or thawed is an event. */
function noteTasks(parts: AgentHubParts, session: AgentSession, reports: readonly TaskReport[]): void {
  const { node } = session;
  const held = reports.filter(({ task }) => {
    const recorded = heldTask(parts.state.jobs.get(task.jobId), task, node);
    // Of one that has ended nobody would drop it again.
    return recorded !== undefined && recorded.state !== 'ended';
  });
  const changed = held.filter((each) => parts.taskStatus.record(each));
  if (changed.length === 0) return;
  parts.loop
    .run(session.caller, (draft, nowMs) => noteFreezes(draft, node, changed, nowMs, parts.pacer))
    .catch((error: unknown) =>
      parts.log.warn({ node, error: messageOf(error) }, 'a freeze was not recorded'),
    );
}

/** Answers at once, from memory: a heartbeat must never wait for a commit. */
function onHeartbeat(parts: AgentHubParts, session: AgentSession, heartbeat: Heartbeat__Output): void {
  const { node, bootId } = session;
  parts.duplicates.heard(node);
  noteNodeClock(parts, node, bootId, heartbeat);
  const reports = reportsFromWire(parts.taskStatus, node, heartbeat.observed);
  // Of jobs that ended long ago the next heartbeat is answered from what this reads.
  learnOutcomes(
    parts.state,
    parts.store,
    reports.map(({ task }) => task.jobId),
  ).catch((error: unknown) => parts.log.warn({ node, error: messageOf(error) }, 'ended jobs were not read'));
  const verdicts = reports.map(({ task }) => {
    // A person has asked for it: it may be killed, though its job is unknown.
    if (parts.orphans.isCondemned(node, task)) return forgotten(task);
    return verdictOn(task, node, parts.state, parts.leases);
  });
  if (parts.orphans.reported(node, reports)) parts.loop.wake();
  parts.taskAccounts.reported(node, reports);
  session.acknowledge(heartbeat.seq, verdicts, parts.wallMs());
  session.remind(reports, (id) => parts.state.jobs.get(id));
  noteTasks(parts, session, reports);
  // Agents send reports when something happens; those in heartbeats replace reports that were lost.
  const changes: TaskReport[] = [];
  for (const each of reports) {
    const recorded = heldTask(parts.state.jobs.get(each.task.jobId), each.task, node)?.state;
    if (recorded === undefined || recorded === 'ended') continue;
    parts.timeLimits.note(each);
    parts.hangWatch.note(each);
    parts.alerts.noteSample(each.task.jobId);
    const isChange = each.state === 'ended' || (each.state === 'running' && recorded !== 'running');
    if (isChange || each.trainingComplete) changes.push(each);
  }
  if (changes.length > 0) {
    takeReports(parts, session, changes).catch((error: unknown) => {
      parts.log.warn({ node, error: messageOf(error) }, 'reports of a heartbeat were not accepted');
    });
  }
}
