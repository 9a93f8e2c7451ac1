/**
 * The length of an attempt by those who measured it. A node counts how long a task runs on CLOCK_BOOTTIME. The coordinator's clock may
 * not know of a part of that time (its own machine was rebooted, and the length of the gap is unknown), or may have been corrected
 * meanwhile. The nodes decide: the moments of the attempt before its end are moved, so that it has run for as long as they say.
 */
import type { Attempt } from '../model.ts';

/** Differences below this many milliseconds are put down to reports that took their time. */
const delayedMs = 1_000;

/**
 * Moves an attempt to where it has its measured length. It stays as it is when no node has measured it.
 * @param endedAtMs when its last process ended, by the coordinator's clock
 */
export function asMeasured(attempt: Attempt, endedAtMs: number): Attempt {
  const surplusMs = surplusOf(attempt, endedAtMs);
  if (Math.abs(surplusMs) < delayedMs) return attempt;
  const moved = (atMs: number | null) => (atMs === null ? null : Math.min(endedAtMs, atMs + surplusMs));
  return {
    ...attempt,
    allocatedAtMs: Math.min(endedAtMs, attempt.allocatedAtMs + surplusMs),
    runningAtMs: moved(attempt.runningAtMs),
    savedAtMs: moved(attempt.savedAtMs),
    stoppingAtMs: moved(attempt.stoppingAtMs),
  };
}

/**
 * Milliseconds by which the coordinator's clock has counted more than the nodes; negative if it has counted less. Of several tasks the
 * one that agrees best decides, because a report that arrives late only looks like more time.
 */
function surplusOf({ tasks, runningAtMs }: Attempt, endedAtMs: number): number {
  const measured = tasks.flatMap(({ startedAtMs, ranForMs, exit }) => {
    if (startedAtMs === undefined || ranForMs === undefined) return [];
    return [{ startedAtMs, ranForMs, finishedAtMs: exit?.finishedAtMs ?? endedAtMs }];
  });
  if (runningAtMs === null || measured.length === 0) return 0;
  // The moments of the attempt are those of its last task, kept between its allocation and now.
  const startMs = runningAtMs - Math.max(...measured.map(({ startedAtMs }) => startedAtMs));
  const endMs = endedAtMs - Math.max(...measured.map(({ finishedAtMs }) => finishedAtMs));
  const surpluses = measured.map(
    ({ startedAtMs, finishedAtMs, ranForMs }) => finishedAtMs + endMs - (startedAtMs + startMs) - ranForMs,
  );
  return surpluses.reduce((best, each) => (Math.abs(each) < Math.abs(best) ? each : best));
}
