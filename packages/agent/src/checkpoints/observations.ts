/** What was seen of a checkpoint that is not known yet, look by look, and what to do about it next. Pure. */

import { isComplete, stableMs } from '@muster/checkpoints/completeness';
import type { CheckpointCandidate } from '@muster/checkpoints/scan';
import type { VerificationDepth } from '@muster/common/checkpoints';
import { newestFirst } from './retention.ts';

export interface CheckpointObservation {
  readonly candidate: CheckpointCandidate;
  /** Monotonic: of the first look at it since it was last complete. */
  readonly firstSeenMs: number;
  /** Monotonic: of the first look at this version. */
  readonly versionSeenMs: number;
  /** Monotonic: of the last look. */
  readonly lookedMs: number;
  /** Looks that it took to be verified, of this version. */
  readonly tries: number;
  /** A quick verification has found this version whole, though it may be a moment old. */
  readonly isWhole: boolean;
}

export function observed(
  before: CheckpointObservation | null,
  candidate: CheckpointCandidate,
  nowMs: number,
): CheckpointObservation {
  if (before !== null && before.candidate.version === candidate.version) {
    return { ...before, candidate, lookedMs: nowMs };
  }
  const firstSeenMs = before?.firstSeenMs ?? nowMs;
  return { candidate, firstSeenMs, versionSeenMs: nowMs, lookedMs: nowMs, tries: 0, isWhole: false };
}

/** How long it was seen being written. null: it was complete when first seen. */
export function writtenForMs({ firstSeenMs, versionSeenMs }: CheckpointObservation): number | null {
  return versionSeenMs === firstSeenMs ? null : Math.round(versionSeenMs - firstSeenMs);
}

/** Nothing was written for a while: what is wrong with it now will not come right. */
export function isStill({ lookedMs, versionSeenMs }: CheckpointObservation): boolean {
  return lookedMs - versionSeenMs >= stableMs;
}

export interface Step {
  readonly kind:
    | 'verify'
    /** Quickly, for it may be complete already. */
    | 'probe';
  readonly observation: CheckpointObservation;
  readonly depth: VerificationDepth;
}

/** A checkpoint that changed during every read is given up after this many reads. */
export const triesMax = 3;
/** A coordinator keeps as many; older ones that nobody has looked at so far are left alone. */
const lookedAtMax = 64;

/** @returns the newest that there is something to do about; null: nothing, for now */
export function nextStep(
  observations: Iterable<CheckpointObservation>,
  depth: VerificationDepth,
): Step | null {
  for (const observation of newest(observations)) {
    const { candidate, tries, isWhole, lookedMs, versionSeenMs } = observation;
    if (tries >= triesMax) continue;
    const sinceMs = lookedMs - versionSeenMs;
    if (isWhole || isComplete(candidate, sinceMs > 0 ? candidate : null, sinceMs)) {
      // After a first verdict that was not believed, there is another when it has become still.
      if (tries === 0 || isStill(observation)) return { kind: 'verify', observation, depth };
    } else if (candidate.kind === 'file' && candidate.unfinished === null && tries === 0) {
      return { kind: 'probe', observation, depth: 'quick' };
    }
  }
  return null;
}

export function newest(observations: Iterable<CheckpointObservation>): readonly CheckpointObservation[] {
  return [...observations].sort(lastSeenFirst).slice(0, lookedAtMax);
}

/** What appeared last comes first, by this agent's looks. Times of files decide only between those that appeared together. */
function lastSeenFirst(a: CheckpointObservation, b: CheckpointObservation): number {
  const stepOf = ({ candidate: { step } }: CheckpointObservation) => step ?? Number.MAX_SAFE_INTEGER;
  return b.versionSeenMs - a.versionSeenMs || stepOf(b) - stepOf(a) || newestFirst(a.candidate, b.candidate);
}
