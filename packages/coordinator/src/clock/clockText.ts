/** The condition of the coordinator's clock, in words. Pure. */
import type { ClockView } from '@muster/common/clockView';
import { formatDuration } from '@muster/common/spec/duration';

/** @returns null while the system clock is trusted */
export function clockProblem({ systemWallMs, trustedWallMs, steppedSinceMs }: ClockView): string | null {
  if (steppedSinceMs === null) return null;
  const byMs = systemWallMs - trustedWallMs;
  const direction = byMs < 0 ? 'behind' : 'ahead of';
  return (
    `clock_stepped: the clock of the coordinator's machine is ${formatDuration(roundedMs(Math.abs(byMs)))} ${direction} the time that the coordinator ` +
    'trusts, and nothing confirms it; nothing is removed and no credential of a node expires until both agree; if the clock is right: ' +
    'muster clock accept'
  );
}

/** In the largest unit of which there are at least two. */
function roundedMs(ms: number): number {
  const unitMs = [86_400_000, 3_600_000, 60_000].find((each) => ms >= 2 * each) ?? 1_000;
  return Math.round(ms / unitMs) * unitMs;
}
