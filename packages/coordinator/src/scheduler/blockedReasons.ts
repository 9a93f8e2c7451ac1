/** What keeps a job waiting that more capacity would not change. */
import type { ArrayId } from '@muster/common/ids';
import type { PendingReason } from '@muster/common/views';
import type { QueuedJob } from './view.ts';

const endOf = { ok: 'succeed', any: 'end', fail: 'fail' } as const;

/** @param nowMs monotonic milliseconds */
export function reasonBeforeResources(
  {
    dependencies,
    notBeforeMs,
    breakerFailures,
  }: Pick<QueuedJob, 'dependencies' | 'notBeforeMs' | 'breakerFailures'>,
  nowMs: number,
): PendingReason | null {
  if (dependencies.kind === 'failed') {
    return {
      kind: 'dependency_failed',
      message: `dependency ${dependencies.on} ${dependencies.what}`,
      remedy: `\`muster requeue ${dependencies.on}\` and this job waits for that, or stop this job`,
    };
  }
  if (dependencies.kind === 'waiting') {
    const message = `waiting for ${dependencies.on} to ${endOf[dependencies.when]}`;
    return { kind: 'dependency', message, remedy: null };
  }
  if (notBeforeMs <= nowMs) return null;
  // Rounded up: what is said to be over in 0 s would have to be over.
  const seconds = Math.ceil((notBeforeMs - nowMs) / 1_000);
  if (breakerFailures === null) {
    return {
      kind: 'backoff',
      message: `next retry in ${seconds} s`,
      remedy: null,
      waitMs: Math.ceil(notBeforeMs - nowMs),
    };
  }
  const failures = `${breakerFailures} failure${breakerFailures === 1 ? '' : 's'} without a newer checkpoint`;
  return {
    kind: 'circuit_open',
    message: `${failures}: next retry in ${seconds} s`,
    remedy: 'check the cause of the failures: `muster explain` of this job',
    waitMs: Math.ceil(notBeforeMs - nowMs),
  };
}

/** @param atWork how many jobs of each array have an attempt */
export function reasonOfArray(
  { array, spec }: Pick<QueuedJob, 'array' | 'spec'>,
  atWork: ReadonlyMap<ArrayId, number>,
): PendingReason | null {
  const atOnce = spec.array?.atOnce ?? null;
  const running = array === null ? 0 : (atWork.get(array) ?? 0);
  if (atOnce === null || running < atOnce) return null;
  return {
    kind: 'array_limit',
    // How many of them run is not told: some that count may be waiting for the GPUs of jobs they preempt.
    message: `at most ${atOnce} ${atOnce === 1 ? 'job' : 'jobs'} of its array may run at the same time (array: …%${atOnce})`,
    remedy: null,
  };
}
