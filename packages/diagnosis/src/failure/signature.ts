/** What a rule about one line of output is made of. */
import type { Blame, CauseKind } from '@muster/common/spec/causes';
import type { RetryAdvice } from '../model.ts';
import type { FailureVerdict, Strength } from './finding.ts';

/**
 * What a line has to have: one thing, or two of which the second comes somewhere after the first. Written as one pattern
 * with a gap (`A.*B`), two things take time with the square of a line that repeats the first.
 */
export type LinePattern = RegExp | readonly [first: RegExp, later: RegExp];

export interface SignatureRule {
  /** Unique. */
  readonly name: string;
  readonly kind: CauseKind;
  readonly strength: Strength;
  /** One of them is enough. */
  readonly patterns: readonly LinePattern[];
  /** One of these is in every line that a pattern matches: most lines are passed over by looking for them. */
  readonly hints: readonly string[];
  /** Not when this matches as well. */
  readonly unless?: RegExp;
  /** Only when the traceback above it has this. */
  readonly within?: RegExp;
  /** It follows from the end of another process. */
  readonly consequence?: true;
  /** A warning with this text counts as much as an error. */
  readonly atAnyLevel?: true;
  /** Only the kernel can prove it: see `ProcessEnd.oomKilled`. */
  readonly needsProof?: true;
  /** The verdict when several ranks report it, since one GPU cannot be the reason then. */
  readonly onSeveralRanks?: FailureVerdict;
  /** In place of what is usual for the kind. */
  readonly blame?: Blame;
  readonly retry?: RetryAdvice;
  readonly advice?: string;
  /** What the line itself shows about the blame. */
  readonly weigh?: (text: string) => FailureVerdict;
}

/** Where the first of the patterns that matches does. null: none does. */
export function placeOf(patterns: readonly LinePattern[], text: string): number | null {
  for (const pattern of patterns) {
    const place = placeOfOne(pattern, text);
    if (place !== null) return place;
  }
  return null;
}

function placeOfOne(pattern: LinePattern, text: string): number | null {
  if (pattern instanceof RegExp) return pattern.exec(text)?.index ?? null;
  const [first, later] = pattern;
  const found = first.exec(text);
  if (found === null || !later.test(text.slice(found.index + found[0].length))) return null;
  return found.index;
}
