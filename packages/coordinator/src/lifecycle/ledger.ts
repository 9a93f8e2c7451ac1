/**
 * The ledger of a job: the use of its GPU-seconds. An attempt has g GPUs over all tasks, and these moments:
 *
 *      queued ───► allocated ───► running ───► saved ───► ended
 *
 * - queued     = wanted GPUs × (allocated − queued), or until it is ended while it waits;
 * - starting   = g × (running − allocated), or all of an attempt that never ran;
 * - productive = g × (saved − running), where `saved` is when its newest checkpoint that is kept was complete; of an attempt
 *                that succeeded g × (ended − running), whatever it has saved;
 * - the rest, g × (ended − saved), was lost: as `preemption`, `hang`, `rollback` behind a divergence, or `failure` with the
 *   cause. After a divergence `saved` is that of the checkpoint which its job goes back to, or `running` when that one is of an
 *   earlier attempt.
 *
 * So starting + productive + lost = g × (ended − allocated). Each moment counts as no earlier than the one before it, and what is
 * negative anyway is not booked.
 */

import type { CauseKind } from '@muster/common/spec/causes';
import { type GpuUsage, mergeGpuUsage } from '@muster/common/telemetry';
import type { Cause, LedgerEntry, LedgerKind } from '@muster/common/views';
import { type Attempt, currentAttempt, type Job } from '../model.ts';
import { divergenceCauses } from './causes.ts';
import { resumeCandidates } from './resume.ts';

/** GPUs that an attempt holds. */
export function gpuCountOf({ tasks }: Pick<Attempt, 'tasks'>): number {
  return tasks.reduce((sum, { gpuUuids }) => sum + gpuUuids.length, 0);
}

/** A job that leaves the queue, to an attempt or to its end. */
export function bookQueued(job: Job, nowMs: number): Job {
  return withEntries(job, queuedEntries(job, nowMs));
}

/**
 * @param job as it is after the attempt, with what is known of its checkpoints now
 * @param ended its attempt
 */
export function bookAttempt(job: Job, ended: Attempt): Job {
  const { allocatedAtMs, runningAtMs, cause } = ended;
  const endedAtMs = ended.endedAtMs ?? allocatedAtMs;
  const beganAtMs = between(allocatedAtMs, runningAtMs ?? endedAtMs, endedAtMs);
  const keptAtMs = cause === null ? endedAtMs : between(beganAtMs, keptUntilMs(job, ended), endedAtMs);
  const gpus = gpuCountOf(ended);
  return withEntries(job, [
    entry('starting', gpus, beganAtMs - allocatedAtMs),
    entry('productive', gpus, keptAtMs - beganAtMs),
    ...(cause === null ? [] : [lost(cause, gpus, endedAtMs - keptAtMs)]),
  ]);
}

/**
 * With what its current state adds to it so far. What an attempt has done since its last checkpoint is in none of the kinds
 * yet: the next one keeps it, or the end of the attempt loses it.
 */
export function ledgerOf(job: Job, nowMs: number): readonly LedgerEntry[] {
  const attempt = currentAttempt(job);
  if (attempt === null) return withEntries(job, queuedEntries(job, nowMs)).ledger;
  const { allocatedAtMs, runningAtMs, savedAtMs } = attempt;
  const beganAtMs = Math.max(allocatedAtMs, runningAtMs ?? nowMs);
  const gpus = gpuCountOf(attempt);
  return withEntries(job, [
    entry('starting', gpus, beganAtMs - allocatedAtMs),
    entry('productive', gpus, Math.max(0, (savedAtMs ?? beganAtMs) - beganAtMs)),
  ]).ledger;
}

function queuedEntries({ state, spec }: Job, nowMs: number): readonly LedgerEntry[] {
  if (state.kind !== 'queued') return [];
  const { gpus, nodes } = spec.resources;
  return [entry('queued', gpus * nodes, Math.max(0, nowMs - state.sinceMs))];
}

/** Until when the work of an attempt that did not succeed is kept. */
function keptUntilMs(job: Job, { cause, number, savedAtMs }: Attempt): number {
  if (cause === null || !divergenceCauses.includes(cause.kind)) return savedAtMs ?? 0;
  const [best] = resumeCandidates(job);
  return best?.attempt === number ? Math.min(best.savedAtMs, savedAtMs ?? 0) : 0;
}

function lost(cause: Cause, gpus: number, ms: number): LedgerEntry {
  if (cause.kind === 'preempted') return entry('preemption', gpus, ms);
  if (cause.kind === 'hung') return entry('hang', gpus, ms);
  if (divergenceCauses.includes(cause.kind)) return entry('rollback', gpus, ms);
  return entry('failure', gpus, ms, cause.kind);
}

function entry(kind: LedgerKind, gpus: number, ms: number, cause: CauseKind | null = null): LedgerEntry {
  return { kind, cause, gpuSeconds: (gpus * ms) / 1_000 };
}

function between(min: number, value: number, max: number): number {
  return Math.max(min, Math.min(value, max));
}

function withEntries(job: Job, entries: readonly LedgerEntry[]): Job {
  const added = entries.filter(({ gpuSeconds }) => gpuSeconds > 0);
  return added.length === 0 ? job : { ...job, ledger: added.reduce(withEntry, job.ledger) };
}

function withEntry(ledger: readonly LedgerEntry[], added: LedgerEntry): readonly LedgerEntry[] {
  const isSame = ({ kind, cause }: LedgerEntry) => kind === added.kind && cause === added.cause;
  if (!ledger.some(isSame)) return [...ledger, added];
  return ledger.map((each) => {
    return isSame(each) ? { ...each, gpuSeconds: each.gpuSeconds + added.gpuSeconds } : each;
  });
}

/** Of the tasks that have ended. @returns null when there are none, or nothing of their GPUs was read */
export function gpuUsageOf({ tasks }: Attempt): GpuUsage | null {
  return mergeGpuUsage(tasks.flatMap(({ exit }) => exit?.gpuUsage ?? []));
}
