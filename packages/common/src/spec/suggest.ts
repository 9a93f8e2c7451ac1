/** "Did you mean": from what was written to what was probably meant. Pure. */
import { specPlaces } from './fields.ts';
import { type AnyField, plainWord } from './kinds.ts';
import type { SpecPath } from './path.ts';

/** Longer words than this are no typing slips of ours, and comparing them costs time. */
const wordLengthMax = 40;

/**
 * The candidate closest to a word: the same but for case, `-` and `_`, or few typing slips away, or the only one that
 * begins or is begun with it. null when none is close.
 */
export function closest(word: string, candidates: readonly string[]): string | null {
  if (word.length > wordLengthMax) return null;
  const plain = plainWord(word);
  if (plain === '') return null;
  const ranked = candidates
    .map((candidate) => ({ candidate, distance: editDistance(plain, plainWord(candidate)) }))
    .sort((a, b) => a.distance - b.distance || (a.candidate < b.candidate ? -1 : 1));
  const [best] = ranked;
  // A short word is close to many; one slip in three letters is the most that still looks like a slip.
  if (best && best.distance <= Math.min(3, Math.floor(plain.length / 3))) return best.candidate;
  const related = candidates.filter((candidate) => sharesPrefix(plain, plainWord(candidate)));
  return related.length === 1 ? (related[0] ?? null) : null;
}

function sharesPrefix(a: string, b: string): boolean {
  return Math.min(a.length, b.length) >= 3 && (a.startsWith(b) || b.startsWith(a));
}

/** Damerau-Levenshtein, adjacent letters swapped counting once (optimal string alignment). */
export function editDistance(a: string, b: string): number {
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const substitution = cell(previous, column - 1) + (a[row - 1] === b[column - 1] ? 0 : 1);
      let cost = Math.min(substitution, cell(previous, column) + 1, cell(current, column - 1) + 1);
      const swapped = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      if (swapped) cost = Math.min(cost, cell(beforePrevious, column - 2) + 1);
      current.push(cost);
    }
    beforePrevious = previous;
    previous = current;
  }
  return cell(previous, b.length);
}

function cell(row: readonly number[], column: number): number {
  return row[column] ?? Number.POSITIVE_INFINITY;
}

const aliases: ReadonlyMap<string, string> = new Map(
  specPlaces.flatMap(({ path, field }) => (field.aliases ?? []).map((alias) => [alias, path.join('.')])),
);

/** The known keys of each mapping, by the mapping's path: `resources.nodes` has `min` and `max`. */
export const specKeys: ReadonlyMap<string, readonly string[]> = keysByMapping();

function keysByMapping(): ReadonlyMap<string, readonly string[]> {
  const keys = new Map<string, string[]>();
  for (const { path } of specPlaces) {
    const mapping = path.slice(0, -1).join('.');
    keys.set(mapping, [...(keys.get(mapping) ?? []), path.at(-1) ?? '']);
  }
  return keys;
}

/** The known mapping with the keys of this one: `evaluate.resources` has those of `resources`. */
export function knownMapping(mapping: SpecPath): string {
  const path = namesIn(mapping).join('.');
  return specKeys.has(path) ? path : mapping.slice(mapping.indexOf('resources')).join('.');
}

/** Without positions in lists of mappings: `phases[1].steps` is the setting `phases.steps`. */
function namesIn(path: SpecPath): SpecPath {
  return path.filter((part) => typeof part === 'string');
}

/**
 * The key meant by an unknown one. Within the same mapping it is returned bare (`gpus`), elsewhere with its whole path
 * (`resources.gpus`).
 * @param mapping path of the mapping that holds the key, such as `resources`; empty for the outermost
 * @param known keys of each mapping by its path
 */
export function suggestKey(
  key: string,
  mapping: string,
  known: ReadonlyMap<string, readonly string[]>,
): string | null {
  const siblings = known.get(mapping) ?? [];
  const elsewhere = new Map<string, string>();
  for (const [path, keys] of known) {
    if (path === mapping) continue;
    // What several mappings have is meant in the first of them: the job's own before that of its evaluations.
    for (const other of keys)
      if (!elsewhere.has(other)) elsewhere.set(other, path === '' ? other : `${path}.${other}`);
  }
  const alias = aliases.get(plainWord(key));
  if (alias !== undefined) return relativeTo(mapping, alias);
  const exact = elsewhere.get(key);
  if (exact !== undefined) return exact;
  const sibling = closest(key, siblings);
  if (sibling !== null) return sibling;
  const distant = closest(key, [...elsewhere.keys()]);
  return distant === null ? null : (elsewhere.get(distant) ?? null);
}

function relativeTo(mapping: string, path: string): string {
  const prefix = `${mapping}.`;
  return mapping !== '' && path.startsWith(prefix) ? path.slice(prefix.length) : path;
}

const fieldAt: ReadonlyMap<string, AnyField> = new Map(
  specPlaces.map(({ path, field }) => [path.join('.'), field]),
);

/** The value meant by a wrong one of the right idea: `64G` for a number of MB, `yes` for true, `24 hours`. */
export function suggestValue(path: SpecPath, written: unknown): string | null {
  if (typeof written !== 'string') return null;
  const at = typeof path.at(-1) === 'number' ? path : namesIn(path);
  const suggestion = fieldAt.get(at.join('.'))?.suggest?.(written) ?? null;
  return suggestion === written && Number.isNaN(Number(written)) ? null : suggestion;
}
