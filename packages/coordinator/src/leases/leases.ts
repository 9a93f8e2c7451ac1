/**
 * How long nodes may run their tasks, and from when on it is certain that they do not. The rules are those of a lease
 * with a fence on the node: the agent counts from the moment it asked, this coordinator from the moment it heard that.
 */
import { assertInvariant, MusterError } from '@muster/common/errors';
import type { NodeName, TaskRef } from '@muster/common/ids';
import { formatDuration } from '@muster/common/spec/duration';
import type { Attempt } from '../model.ts';

/** What a turn at the fence costs: all in milliseconds of monotonic clocks, but for the rate. */
export interface LeaseSettings {
  /** L: length of a lease where the job does not say. */
  readonly leaseMs: number;
  /** K: from the moment a node fences a task to the moment it runs no instruction. */
  readonly fenceMs: number;
  /** M: margin, at least 2 s. */
  readonly marginMs: number;
  /** ρ: how far the rates of two clocks may differ. */
  readonly clockRateError: number;
}

/** What the agents' side needs of them; `LeaseBook` has all of it. */
export interface LeaseGrants {
  /**
   * Notes that a node is being told that a task may run, and for how long. To be asked for every verdict, Release and
   * Assign, right before it is sent.
   * @returns milliseconds from the sending of the question on; 0: never fenced
   */
  grant(node: NodeName, attempt: Attempt): number;
  /** That this store gave the task to the node, for its agent to say again. @param submitSeq of its job */
  proofOf(node: NodeName, task: TaskRef, submitSeq: number): string;
}

/** Less would let the next attempt begin on the heels of the last one. */
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
 * Where two questions do not fit into a lease, every one that is a little late freezes the task.
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
 * How long after a node was heard it is certain that nothing of a lease which that question was answered with runs there:
 * both clocks may be off, one fast and one slow, over the whole of the lease and of the fence.
 */
export function fencedAfterMs(settings: Omit<LeaseSettings, 'leaseMs'>, leaseMs: number): number {
  const { fenceMs, marginMs, clockRateError } = settings;
  return Math.ceil((leaseMs + fenceMs) * (1 + 2 * clockRateError) + marginMs);
}
