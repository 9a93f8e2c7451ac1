/**
 * The part of an attempt from its allocation to its release: what must hold on every node before anything runs on one (G3 of
 * docs/guarantees.md).
 *
 *      allocated ──every rank prepared─► (alone) ────────────────────────────────────────────► released
 *                          │                                                                      ▲
 *                          ▼                                                                      │ every path is good
 *                  round n: addresses are chosen, every rank tries its paths ──every rank answered┤
 *                          ▲                                                                      │ a path failed
 *                          └──── round n+1: the next choice · a rank prepared again ◄──────────────┤
 *                                                                                                 │ no choice is left
 *      any task ended · node silent · prepare_timeout · bandwidth below the floor ► start failed ◄┘
 *
 * A start that fails because of nodes does not count against the attempts of the job, and the next attempt excludes these nodes.
 */

import { causeOf } from '@muster/common/cause';
import type { Checkpoint } from '@muster/common/checkpoints';
import { assertInvariant } from '@muster/common/errors';
import type { NewEvent } from '@muster/common/eventKinds';
import type { PathFindings } from '@muster/common/gangs';
import type { NodeName } from '@muster/common/ids';
import type { JobSpec } from '@muster/common/spec/types';
import type { Cause, TaskEnd } from '@muster/common/views';
import { type Attempt, type AttemptNetwork, isReleased, type Job, type Task } from '../model.ts';
import { causeOfEnd } from './causes.ts';
import { verdictEvents, withCheckpoints } from './checkpoints.ts';
import {
  attemptEvent,
  fencedAttempt,
  followedBy,
  type Handler,
  type JobEvent,
  replaceTask,
  type Transition,
  unchanged,
  withAttempt,
} from './event.ts';
import { withExcludedNodes } from './excludedNodes.ts';
import { type BadOutcome, nodeSideCauses, outcomeOfFailedStart } from './failedStart.ts';
import { bookQueued } from './ledger.ts';
import { afterLook } from './look.ts';
import { chooseNetwork, peersOf } from './network.ts';
import { judgePaths, measuredPairs, pathCause, triedPaths } from './paths.ts';
import { beginPhase } from './phases.ts';
import { recoveryOf } from './recovery.ts';
import { beginStopping } from './stopping.ts';

/** The length of an error that a node reports about a path. It is enough for a sentence. */
const errorLengthMax = 500;

export const allocate: Handler<'allocate'> = (job, event, nowMs) => {
  const { spec, state, id } = job;
  assertInvariant(state.kind === 'queued', 'G2', `${id} is ${state.kind} and cannot get another attempt`);
  assertInvariant(job.phase?.awaiting == null, 'G2', `${id} awaits the verdict on its phase`);
  const { nodes, minNodes } = spec.resources;
  const count = event.tasks.length;
  const range = minNodes === nodes ? `${nodes}` : `${minNodes} to ${nodes}`;
  assertInvariant(
    count >= minNodes && count <= nodes,
    'G3',
    `${id} needs ${range} nodes at once, not ${count}`,
  );
  const attempt: Attempt = {
    number: nextAttemptNumber(job, event.numberMin ?? 0),
    state: 'allocated',
    tasks: event.tasks.map((placement, nodeRank) => ({
      ...placement,
      nodeRank,
      state: 'assigned',
      exit: null,
      endpoints: [],
      testPort: null,
      paths: null,
      preflight: null,
      failedAtMs: null,
    })),
    allocatedAtMs: nowMs,
    runningAtMs: null,
    firstStepAtMs: null,
    endedAtMs: null,
    cause: null,
    master: null,
    leaseMs: leaseMsOf(spec, event.leaseMs),
    preflight: count > 1 && (spec.preflight !== null || event.preflight),
    resume: event.resume,
    savedAtMs: null,
    stoppingAtMs: null,
    savedAfterStop: false,
    signs: [],
    hungAtMs: null,
    network: null,
  };
  const begun = beginPhase(bookQueued(job, nowMs), attempt);
  return {
    job: { ...begun.job, lastAttempt: attempt.number, state: { kind: 'starting', attempt } },
    ended: null,
    events: [
      ...begun.events,
      attemptEvent(job, attempt, 'attempt.allocated', {
        tasks: event.tasks.map((placement) => ({ node: placement.node, gpuUuids: placement.gpuUuids })),
        resume: event.resume,
      }),
    ],
  };
};

export const prepared: Handler<'prepared'> = (before, event, nowMs) => {
  const starting = startingAttempt(before, event.attempt);
  const task = starting?.tasks[event.nodeRank];
  if (starting === null || task === undefined) return unchanged(before);
  const { look = null } = event;
  if (event.nodeRank !== 0 || look === null)
    return withPrepared(before, before, starting, task, event, nowMs);
  const { job, resume, cause, events } = afterLook(before, starting, look);
  const next = { ...starting, resume };
  if (cause !== null) return followedBy(events, failStart(job, starting, cause, [task.node], nowMs));
  return followedBy(events, withPrepared(before, job, next, task, event, nowMs));
};

/** @param before what is returned when the report tells nothing new @param job the same with what a look has found */
function withPrepared(
  before: Job,
  job: Job,
  attempt: Attempt,
  task: Task,
  event: Extract<JobEvent, { kind: 'prepared' }>,
  nowMs: number,
): Transition {
  const { endpoints, testPort } = event;
  const master = event.nodeRank === 0 ? event.master : attempt.master;
  const preparedTask: Task = { ...task, state: 'prepared', endpoints, testPort };
  // A restarted agent reports this a second time, with other ports than its peers were given.
  const holdsOther = !isSamePlace(task, preparedTask) || master?.port !== attempt.master?.port;
  if (task.state !== 'assigned' && !holdsOther && job === before) return unchanged(before);

  const tasks = replaceTask(attempt.tasks, preparedTask);
  const next: Attempt = { ...attempt, tasks, master };
  const isUnreachable =
    endpoints.length === 0 || testPort === null || (event.nodeRank === 0 && master === null);
  if (hasPaths(tasks) && isUnreachable) return failUnreachable(job, next, task, nowMs);
  if (!isEveryTaskPrepared(tasks)) return { job: withAttempt(job, next), ended: null, events: [] };
  if (!hasPaths(tasks)) return release(job, next, []);
  return beginRound(job, next, null) ?? failUnreachable(job, next, task, nowMs);
}

export const checked: Handler<'checked'> = (job, event, nowMs) => {
  const before = startingAttempt(job, event.attempt);
  const task = before?.tasks[event.nodeRank];
  const network = before?.network ?? null;
  if (before === null || task === undefined || network === null) return unchanged(job);
  // The first report of a round counts. A repeated one adds nothing, and one of another round is about other addresses.
  if (event.findings.round !== network.round || task.paths !== null) return unchanged(job);
  const attempt: Attempt = {
    ...before,
    tasks: replaceTask(before.tasks, withFindings(before, network, task, event.findings)),
  };
  if (attempt.tasks.some(({ paths }) => paths === null)) {
    return { job: withAttempt(job, attempt), ended: null, events: [] };
  }

  const paths = triedPaths(attempt, network);
  const verdict = judgePaths(attempt, paths, job.spec.preflight?.minBandwidthMbps ?? null);
  const { round, addresses } = network;
  const events: NewEvent[] = [attemptEvent(job, attempt, 'attempt.checked', { round, addresses, paths })];
  if (verdict.kind !== 'unreachable' && attempt.preflight) {
    const backend = attempt.tasks[0]?.preflight?.backend;
    const allReduceBytesPerS = attempt.tasks[0]?.preflight?.allReduceBytesPerS ?? null;
    const pairs = measuredPairs(attempt);
    events.push(attemptEvent(job, attempt, 'preflight.measured', { backend, pairs, allReduceBytesPerS }));
  }
  if (verdict.kind === 'good') return release(job, attempt, events);
  const another = verdict.kind === 'unreachable' ? beginRound(job, attempt, network) : null;
  if (another !== null) return followedBy(events, another);
  const failed = failStart(job, attempt, pathCause(verdict.message), verdict.excludeNodes, nowMs);
  return followedBy(events, failed);
};

export const startFailed: Handler<'startFailed'> = (job, event, nowMs) => {
  const attempt = startingAttempt(job, event.attempt);
  if (attempt === null) return unchanged(job);
  return failStart(job, attempt, event.cause, event.excludeNodes, nowMs);
};

export const prepareTimeout: Handler<'prepareTimeout'> = (job, event, nowMs) => {
  const attempt = startingAttempt(job, event.attempt);
  if (attempt === null) return unchanged(job);
  const unprepared = attempt.tasks.filter((task) => task.state === 'assigned');
  const late = unprepared.length > 0 ? unprepared : attempt.tasks.filter((task) => task.paths === null);
  const names = late.map(({ node, nodeRank }) => {
    const doing = event.doing[nodeRank] ?? null;
    return doing === null ? node : `${node} (${doing})`;
  });
  const limitS = Math.round(job.spec.prepareTimeoutMs / 1000);
  const message = `not ready within the prepare_timeout of ${limitS} s: ${names.join(', ')}`;
  const cause = causeOf('rendezvous_timeout', message);
  return failStart(
    job,
    attempt,
    cause,
    late.map(({ node }) => node),
    nowMs,
  );
};

/** Ends an attempt before its release because one task has ended. Nothing of it can have run. */
export function endBeforeRelease(
  job: Job,
  before: Attempt,
  task: Task,
  exit: TaskEnd,
  nowMs: number,
): Transition {
  const { node } = task;
  const ended: Task = { ...task, state: 'ended', exit };
  const attempt: Attempt = { ...before, tasks: replaceTask(before.tasks, ended) };
  const outcome =
    exit.startError === null
      ? outcomeOfEarlyEnd(job, task)
      : outcomeOfStartError(job, attempt, causeOfEnd(ended));
  const { kind, message } = outcome.cause;
  if (kind === 'corrupt_checkpoint') {
    const isMeant = ({ name }: Checkpoint) => name === before.resume?.name;
    const without = withCheckpoints(job, isMeant, { verdict: 'gone', problem: message });
    return followedBy(verdictEvents(job, without), beginStopping(without, attempt, outcome, nowMs));
  }
  // A node that was lost is silent. Once it is back, the job may use it.
  const excludeNodes = kind === 'node_lost' ? [] : [node];
  return beginStopping(withExcludedNodes(job, outcome.cause, excludeNodes), attempt, outcome, nowMs);
}

/** Each attempt has a higher number than the ones before it. @param min of what an agent has proven */
export function nextAttemptNumber({ lastAttempt }: Job, min: number): number {
  return Math.max(lastAttempt + 1, min);
}

/** The lease of the tasks of an attempt, in milliseconds. It is null for a job that is never fenced. */
export function leaseMsOf({ nodeLoss, leaseMs }: JobSpec, usualMs: number | null): number | null {
  return nodeLoss === 'hold' ? null : (leaseMs ?? usualMs);
}

/** Nothing of an attempt is released before this holds. */
export function isEveryTaskPrepared(tasks: readonly Task[]): boolean {
  return tasks.every(({ state }) => state !== 'assigned');
}

/** Whether there are paths between the nodes of these tasks, all of which must work before the release. */
export function hasPaths(tasks: readonly Task[]): boolean {
  return tasks.length > 1;
}

/** The attempt of that number, if it is the current one and has not been released. */
function startingAttempt(job: Job, attemptNumber: number): Attempt | null {
  const attempt = fencedAttempt(job, attemptNumber);
  return attempt === null || job.state.kind !== 'starting' || isReleased(attempt) ? null : attempt;
}

/** @param before the choice that failed; null: none, the best is next. @returns null when every choice has been tried */
function beginRound(job: Job, attempt: Attempt, before: AttemptNetwork | null): Transition | null {
  const round = (attempt.network?.round ?? 0) + 1;
  const network = chooseNetwork(attempt.tasks, before, round);
  if (network === null) return null;
  const [addr] = network.addresses;
  const { master } = attempt;
  const next: Attempt = {
    ...attempt,
    network,
    master: master === null || addr === undefined ? master : { ...master, addr },
    tasks: attempt.tasks.map((task) => ({ ...task, state: 'prepared', paths: null, preflight: null })),
  };
  return { job: withAttempt(job, next), ended: null, events: [] };
}

/** Releases an attempt whose tasks are all checked: its nodes may start them from now on. */
function release(job: Job, attempt: Attempt, events: readonly NewEvent[]): Transition {
  const tasks = attempt.tasks.map((task): Task => ({ ...task, state: 'checked' }));
  const released: Attempt = { ...attempt, tasks, state: 'released' };
  const { master, network } = released;
  const data = {
    masterAddr: master?.addr,
    masterPort: master?.port,
    ...(network === null ? {} : { addresses: network.addresses }),
  };
  return {
    job: withAttempt(job, released),
    ended: null,
    events: [...events, attemptEvent(job, released, 'attempt.released', data)],
  };
}

/** Ends an attempt before its release, with a cause that names the nodes to exclude. */
function failStart(
  job: Job,
  attempt: Attempt,
  cause: Cause,
  excludeNodes: readonly NodeName[],
  nowMs: number,
): Transition {
  return beginStopping(
    withExcludedNodes(job, cause, excludeNodes),
    attempt,
    outcomeOfFailedStart(job, cause),
    nowMs,
  );
}

function failUnreachable(job: Job, attempt: Attempt, { node, nodeRank }: Task, nowMs: number): Transition {
  const wanted = job.spec.network;
  const where = wanted === null ? 'no address and port' : `no address in ${wanted}, or no port there,`;
  const message = `${node} named ${where} for the other nodes of the gang`;
  return failStart(job, attempt, causeOf('rendezvous', message, { nodeRank, node }), [node], nowMs);
}

/** Keeps the findings about paths that the node had to try, and no others: what a node can make the store grow by is bounded. */
function withFindings(attempt: Attempt, network: AttemptNetwork, task: Task, findings: PathFindings): Task {
  const peers = peersOf(attempt, network, task.nodeRank);
  const paths = peers.flatMap((peer) => {
    const result = findings.paths.find(({ nodeRank }) => nodeRank === peer.nodeRank);
    return result === undefined ? [] : { ...result, error: clipped(result.error) };
  });
  const { preflight } = findings;
  const isGood = paths.length === peers.length && paths.every(({ error }) => error === null);
  return {
    ...task,
    state: isGood ? 'checked' : 'prepared',
    paths,
    preflight:
      preflight === null || !attempt.preflight
        ? null
        : {
            ...preflight,
            error: clipped(preflight.error),
            pairs: attempt.tasks.flatMap((other) => {
              return preflight.pairs.find((pair) => pair.nodeRank === other.nodeRank) ?? [];
            }),
          },
  };
}

function clipped(error: string | null): string | null {
  return error === null ? null : error.slice(0, errorLengthMax);
}

function isSamePlace(a: Task, b: Task): boolean {
  const addresses = ({ endpoints }: Task) => endpoints.map(({ address }) => address).join(' ');
  return a.testPort === b.testPort && addresses(a) === addresses(b);
}

/** A task could not be started, and its attempt was not released yet. */
function outcomeOfStartError(job: Job, attempt: Attempt, cause: Cause): BadOutcome {
  // The same command would not be found anywhere else either: that is a retry like any other.
  return nodeSideCauses.includes(cause.kind)
    ? outcomeOfFailedStart(job, cause)
    : recoveryOf(job, attempt, cause).outcome;
}

/** Nothing can have run. Believed, it would be a success that never was, or a gang that waits for this rank for ever. */
function outcomeOfEarlyEnd(job: Job, { node, nodeRank }: Task): BadOutcome {
  const message = `rank ${nodeRank} on ${node} reported its end before it was allowed to start`;
  return outcomeOfFailedStart(job, causeOf('unknown', message, { nodeRank, node }));
}
