/**
 * How long a node may run its tasks, and from when on it certainly does not (G2 of docs/guarantees.md). The agent counts a
 * lease from the moment at which it sent its question; this coordinator counts from the moment at which it received it.
 */
import { assertInvariant, MusterError } from '@muster/common/errors';
import type { NodeName, TaskRef } from '@muster/common/ids';
import { formatDuration } from '@muster/common/spec/duration';
import type { Attempt, Job } from '../model.ts';
import { applyJobEvent } from '../state/applyJobEvent.ts';
import { heldTasks } from '../state/heldTasks.ts';
import type { Draft } from '../state/state.ts';

/** Times of leases and fences: milliseconds of monotonic clocks, and the error of their rates. */
export interface LeaseSettings {
  /** L: the length of a lease, for jobs that name none. */
  readonly leaseMs: number;
  /** K: the time from the moment at which a node fences a task to the moment at which the task executes nothing. */
  readonly fenceMs: number;
  /** M: a margin between two attempts, at least 2 s. */
  readonly marginMs: number;
  /** ρ: the largest difference between the rates of two clocks, as a fraction. */
  readonly clockRateError: number;
}

/** The part of `GrantedLeases` that sessions with agents use. */
export interface LeaseGrants {
  /**
   * Records that a node is granted a lease for a task. Called for each message that grants a lease, right before the
   * message is sent.
   * @returns the length of the lease, in milliseconds from the sending of the question; 0: the task is never fenced
   */
  grant(node: NodeName, attempt: Attempt): number;
  /** The proof that this store gave the task to the node; its agent repeats it. @param submitSeq of the job */
  proofOf(node: NodeName, task: TaskRef, submitSeq: number): string;
}

/** With a smaller margin, the next attempt could begin before the effects of the last one have ended. */
export const marginMsMin = 2_000;

/** @throws {InvariantViolation} for settings by which two attempts of a job could run at once */
export function checkLeaseSettings(settings: LeaseSettings): LeaseSettings {
  const { leaseMs, fenceMs, marginMs, clockRateError } = settings;
  assertInvariant(
    marginMs >= marginMsMin,
    'G2',
    `the margin of a fence is ${marginMs} ms; expected at least 2 s`,
  );
  assertInvariant(
    leaseMs > 0 && fenceMs >= 0 && clockRateError >= 0 && clockRateError < 1,
    'G2',
    `invalid settings of a lease: ${JSON.stringify(settings)}`,
  );
  return settings;
}

/**
 * Refuses a lease that is shorter than two heartbeats: a heartbeat that is a little late would freeze its tasks.
 * @throws {MusterError} `invalid` for a job's own lease of that kind
 */
export function checkJobLease(leaseMs: number | null, heartbeatIntervalMs: number): void {
  const leaseMsMin = 2 * heartbeatIntervalMs;
  if (leaseMs === null || leaseMs >= leaseMsMin) return;
  const message = `got ${formatDuration(leaseMs)}, and agents of this cluster send heartbeats every ${formatDuration(heartbeatIntervalMs)}`;
  const expected = `${formatDuration(leaseMsMin)} or more; or to omit it`;
  throw new MusterError('invalid', `lease: ${message}; expected ${expected}`, {
    problems: [{ path: 'lease', message, expected, suggestion: null }],
  });
}

/**
 * The time after which nothing runs under a lease that was granted in answer to a question, counted from when that question
 * was received. Both clocks may be wrong in their rates, one fast and one slow, for as long as the lease and the fence last.
 */
export function fencedAfterMs(settings: Omit<LeaseSettings, 'leaseMs'>, leaseMs: number): number {
  const { fenceMs, marginMs, clockRateError } = settings;
  return Math.ceil((leaseMs + fenceMs) * (1 + 2 * clockRateError) + marginMs);
}

/** The longest lease that a job of these may have, at least `leastMs`: that of jobs that name none. */
export function longestLeaseMs(jobs: Iterable<Pick<Job, 'spec'>>, leastMs: number): number {
  let longestMs = leastMs;
  for (const { spec } of jobs) longestMs = Math.max(longestMs, spec.leaseMs ?? 0);
  return longestMs;
}

export interface Loss {
  /** Why, for the cause of the attempt. */
  readonly message: string;
  /** By the wall clock of this coordinator. null: not since its start. */
  readonly lastContactMs: number | null;
}

/**
 * @param isGone whether no task of the attempt executes on the node, for certain
 * @returns the tasks that this ended
 */
export function endLostTasks(
  draft: Draft,
  node: NodeName,
  isGone: (attempt: Attempt) => boolean,
  loss: Loss,
  nowMs: number,
): readonly TaskRef[] {
  const held = heldTasks(draft.activeJobs()).get(node) ?? [];
  const lost = held.filter(({ attempt }) => isGone(attempt));
  return lost.map(({ job, attempt, task }) => {
    const fence = { attempt: attempt.number, nodeRank: task.nodeRank };
    applyJobEvent(draft, job.id, { kind: 'taskLost', ...fence, ...loss }, nowMs);
    return { jobId: job.id, ...fence };
  });
}
