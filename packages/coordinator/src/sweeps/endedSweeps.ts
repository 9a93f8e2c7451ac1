/** Which ended sweeps are no longer kept. Pure. */
import { hasSweepEnded } from '@muster/common/sweeps';
import type { StoredSweep } from '../store/sweeps.ts';

/** Their jobs have gone before, as retention has it. */
const keptMs = 90 * 24 * 60 * 60_000;
/** Of the whole cluster: each is in memory, with its file and its trials. */
export const endedSweepsMax = 10_000;

/**
 * Those to remove, the oldest end first: what is too old, or one too many.
 * @param nowMs wall clock
 */
export function sweepsToRemove(sweeps: Iterable<StoredSweep>, nowMs: number): readonly StoredSweep[] {
  const ended = [...sweeps].filter(({ state }) => hasSweepEnded(state)).sort(byEnd);
  const tooMany = ended.length - endedSweepsMax;
  return ended.filter(({ endedAtMs }, index) => index < tooMany || (endedAtMs ?? 0) + keptMs < nowMs);
}

function byEnd(a: StoredSweep, b: StoredSweep): number {
  return (a.endedAtMs ?? 0) - (b.endedAtMs ?? 0) || (a.id < b.id ? -1 : 1);
}
