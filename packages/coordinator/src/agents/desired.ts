/** What a node should do about one task, computed from the state of the job alone: as an order, and as a verdict on its report. */
import type { PathCheck } from '@muster/common/gangs';
import type { TaskVerdict } from '@muster/common/gen/muster/v1/TaskVerdict';
import type { NodeName, TaskRef } from '@muster/common/ids';
import type { TaskStateKind } from '@muster/common/states';
import type { Resume } from '@muster/common/views';
import { taskRefToWire } from '@muster/common/wire/codec';
import type { LeaseGrants } from '../leases/leases.ts';
import { pathCheckOf } from '../lifecycle/network.ts';
import { type Attempt, currentAttempt, isReleased, type Job, type Task } from '../model.ts';
import { heldTask } from '../state/heldTasks.ts';
import type { ClusterState } from '../state/state.ts';

export type Desired =
  /** Make ready what the task needs, and report that. */
  | { readonly kind: 'prepare' }
  /** Test the paths to the other nodes of the gang. */
  | { readonly kind: 'check'; readonly check: PathCheck }
  | {
      readonly kind: 'start';
      readonly addr: string;
      readonly port: number;
      /** The address of every node of the gang, by node rank. */
      readonly addresses: readonly string[];
      /** The checkpoint that was chosen with the release. null: the attempt starts from scratch. */
      readonly resume: Resume | null;
    }
  | { readonly kind: 'stop'; readonly graceMs: number; readonly signal: string }
  /** Drop the task: its end is recorded, or it was never released. */
  | { readonly kind: 'forget' };

/** @param job as it is now; undefined: it has ended, or never existed */
export function desiredOf(job: Job | undefined, ref: TaskRef, node: NodeName): Desired {
  const attempt = currentAttempt(job);
  const task = heldTask(job, ref, node);
  if (job === undefined || attempt === null || task === undefined || task.state === 'ended')
    return { kind: 'forget' };
  if (!isReleased(attempt)) {
    const { network } = attempt;
    if (network === null) return { kind: 'prepare' };
    return { kind: 'check', check: pathCheckOf(attempt, network, task.nodeRank) };
  }
  if (job.state.kind === 'stopping') return stopOf(job, attempt);
  const { addr, port } = attempt.master ?? { addr: '127.0.0.1', port: 0 };
  const { network, resume } = attempt;
  return { kind: 'start', addr, port, addresses: network?.addresses ?? [addr], resume };
}

/** A stop. Its grace is 0 once a checkpoint that was begun after the signal is verified: nothing needs the rest of it. */
function stopOf({ spec }: Job, { savedAfterStop }: Attempt): Desired {
  return { kind: 'stop', graceMs: savedAfterStop ? 0 : spec.stopGraceMs, signal: spec.stopSignal };
}

/** Whether two orders are the same, and the second need not be sent. Other addresses, or a shorter grace, make another order. */
export function orderKey(desired: Desired): string {
  switch (desired.kind) {
    case 'check':
      return `check ${desired.check.round}`;
    case 'stop':
      return `stop ${desired.graceMs}`;
    default:
      return desired.kind;
  }
}

/**
 * Whether the report of an agent about a task shows that it has received the order.
 * @param recorded the task as it is stored
 * @param observed the state of the task that its agent reports; undefined: the agent does not have the task
 */
export function isReceived(desired: Desired, recorded: Task, observed: TaskStateKind | undefined): boolean {
  switch (desired.kind) {
    case 'prepare':
      return recorded.state !== 'assigned';
    case 'check':
      return recorded.paths !== null;
    case 'start':
      return observed === 'running' || observed === 'ended';
    case 'stop':
      return observed === 'ended';
    case 'forget':
      return observed === undefined;
    default: {
      const never: never = desired;
      return never;
    }
  }
}

/**
 * The verdict on a task that an agent reports to have. It is computed from memory, because heartbeats wait for nothing (G4). It
 * grants the lease that it contains, so it is sent at once.
 */
export function verdictOn(
  task: TaskRef,
  node: NodeName,
  state: Pick<ClusterState, 'jobs' | 'outcomes'>,
  leases: LeaseGrants,
): TaskVerdict {
  const wire = taskRefToWire(task);
  const job = state.jobs.get(task.jobId);
  if (job === undefined) {
    const known = state.outcomes.has(task.jobId);
    return { task: wire, verdict: known ? 'VERDICT_FORGET' : 'VERDICT_UNKNOWN' };
  }
  // An attempt newer than the store has: the store is older than the cluster, and its lost tasks must not be killed.
  if (task.attempt > job.lastAttempt) return { task: wire, verdict: 'VERDICT_UNKNOWN' };
  const desired = desiredOf(job, task, node);
  const attempt = currentAttempt(job);
  if (desired.kind === 'forget' || attempt === null) return { task: wire, verdict: 'VERDICT_FORGET' };
  const leaseMs = leases.grant(node, attempt);
  // A task that is being stopped keeps its lease, because it needs the time of its grace to save.
  const verdict = desired.kind === 'stop' ? 'VERDICT_STOP' : 'VERDICT_RUN';
  return { task: wire, verdict, ...leaseToWire(leaseMs) };
}

/** The length of a lease as orders and verdicts have it. @param leaseMs as `LeaseGrants.grant` returns it */
export function leaseToWire(leaseMs: number): { readonly leaseMs?: number } {
  return leaseMs === 0 ? {} : { leaseMs };
}

/** The verdict on a task that no longer belongs to this cluster: the agent kills it. */
export function forgotten(task: TaskRef): TaskVerdict {
  return { task: taskRefToWire(task), verdict: 'VERDICT_FORGET' };
}
