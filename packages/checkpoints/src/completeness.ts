/** Whether a program has finished writing a checkpoint. Pure: from two looks at it and the time between them. */
import type { CheckpointCandidate } from './scan.ts';
import type { Verification } from './verification.ts';

/** A program that saves writes without long pauses; a pause longer than this means that it is done. */
export const stableMs = 2_000;
/** A temporary name that nobody has touched for this duration was left behind by a program that died. */
export const abandonedMs = 5 * 60_000;

/**
 * A marker of its format decides at once; else it is complete when it has not changed for `stableMs`. One that shows that
 * it is unfinished is complete only when it has been abandoned, so that a verification reports what is wrong with it.
 * @param earlier an older look at the one with this name, the oldest since it last changed; null: it was not there
 * @param betweenMs from that look to this one, ≥ 0
 */
export function isComplete(
  candidate: CheckpointCandidate,
  earlier: CheckpointCandidate | null,
  betweenMs: number,
): boolean {
  if (candidate.unfinished === null && candidate.marker !== null) return true;
  if (earlier === null || earlier.version !== candidate.version) return false;
  return betweenMs >= (candidate.unfinished === null ? stableMs : abandonedMs);
}

const wholeWhenVerified: readonly string[] = ['torch', 'lightning', 'json'];

/**
 * Whether what a quick verification has found makes waiting needless: PyTorch writes the directory of a file last, so a
 * file that has a whole one is complete, and JSON that can be parsed has its last bracket. The other formats have their
 * sizes before they have their contents.
 */
export function isWholeAlready(candidate: CheckpointCandidate, found: Verification): boolean {
  return (
    candidate.kind === 'file' &&
    found.verdict === 'verified' &&
    found.version === candidate.version &&
    wholeWhenVerified.includes(found.format)
  );
}
