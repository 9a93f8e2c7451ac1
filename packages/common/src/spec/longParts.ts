/**
 * Lists and mappings of a spec may hold as many wrong items as fit into its bytes, and people are shown the first ones. What is
 * long is looked at in pieces, so that the check of a spec ends soon after the last problem that is shown.
 */
import * as z from 'zod';
import { specProblemsMax } from './limits.ts';
import { isMapping, type SpecPath, valueAt, withValueAt } from './path.ts';
import { jobSpecSchema } from './schema.ts';

/** Items that are checked at once. What fits into one piece costs too little to be cut. */
const pieceLength = 256;

interface Part {
  readonly path: SpecPath;
  readonly schema: z.ZodType;
}

/** Every list and mapping whose length is the user's. */
const parts: readonly Part[] = partsOf(jobSpecSchema, []);

function partsOf(schema: z.ZodType, path: SpecPath): readonly Part[] {
  const inner: unknown = schema instanceof z.ZodOptional ? schema.unwrap() : schema;
  if (inner instanceof z.ZodObject) {
    const fields = Object.entries(inner.shape);
    return fields.flatMap(([key, field]) => partsOf(field, [...path, key]));
  }
  const forms: readonly unknown[] = inner instanceof z.ZodUnion ? inner.options : [inner];
  const isLong = forms.some((form) => form instanceof z.ZodArray || form instanceof z.ZodRecord);
  return isLong ? [{ path, schema }] : [];
}

export interface CutSpec {
  /** Has the problems of the whole spec that are shown. */
  readonly value: unknown;
  /** The same with its long parts whole again: for what passed the check of `value`. */
  restore<T>(checked: T): T;
}

/**
 * Cuts long parts behind the last piece that is not right, or that is looked at; the first piece always stays. Positions in lists
 * stay what they are.
 * @param problemsOf how many problems there are in a piece
 */
export function cutLongParts(
  value: unknown,
  problemsOf: (issues: readonly z.core.$ZodIssue[], piece: unknown) => number,
): CutSpec {
  const cuts = parts.flatMap(({ path, schema }) => {
    const whole = valueAt(value, path);
    const size = Array.isArray(whole) ? whole.length : isMapping(whole) ? Object.keys(whole).length : 0;
    if (size <= pieceLength) return [];
    const slice = slicer(whole as object);
    let end = pieceLength;
    let problems = 0;
    for (let begin = 0; begin < size && problems <= specProblemsMax; begin += pieceLength) {
      const piece = slice(begin, begin + pieceLength);
      const result = schema.safeParse(piece, { jitless: true });
      if (result.success) continue;
      problems += problemsOf(result.error.issues, piece);
      end = begin + pieceLength;
    }
    return [{ path, whole, shown: slice(0, end) }];
  });
  return {
    value: cuts.reduce<unknown>((spec, { path, shown }) => withValueAt(spec, path, shown), value),
    restore: <T>(checked: T) =>
      cuts.reduce<unknown>((spec, { path, whole }) => withValueAt(spec, path, whole), checked) as T,
  };
}

function slicer(whole: object): (begin: number, end: number) => unknown {
  if (Array.isArray(whole)) return (begin, end) => whole.slice(begin, end);
  const entries = Object.entries(whole);
  return (begin, end) => Object.fromEntries(entries.slice(begin, end));
}
