/**
 * The jobs of an array: which indexes they have, and how many of them run at the same time.
 *
 *     100        indexes 0 to 99
 *     0-9        indexes 0 to 9
 *     1,3,7-9    these indexes
 *     0-9%4      the same as 0-9, at most 4 of them at the same time
 */

/** Indexes from the lowest to the highest; ranges include both ends, and do not overlap. */
export interface JobArraySpec {
  readonly ranges: readonly (readonly [first: number, last: number])[];
  /** How many of its jobs may run at the same time. null: as many as fit. */
  readonly atOnce: number | null;
}

export const arraySizeMax = 100_000;
export const arrayIndexMax = 999_999;
export const arrayForm =
  'a count such as 100, or indexes such as 0-9, 1,3,7 or 0-9%4 (at most 4 at the same time)';

export type ArrayReading =
  | { readonly array: JobArraySpec }
  /** What was expected instead. */
  | { readonly expected: string };

/** A number is a count: indexes from 0. */
export function parseArray(written: string | number): ArrayReading {
  const text = String(written).replaceAll(/\s/g, '');
  const [, list = '', limit] = /^([\d,-]{1,100000})(?:%(\d{1,9}))?$/.exec(text) ?? [];
  if (list === '') return { expected: arrayForm };
  const atOnce = limit === undefined ? null : Number(limit);
  if (atOnce === 0) return { expected: 'at least 1 job at the same time behind "%"' };
  const ranges = /^\d{1,9}$/.test(list) ? countRange(Number(list)) : listedRanges(list);
  if ('expected' in ranges) return ranges;
  const array = { ranges: ranges.ranges, atOnce };
  if (arraySize(array) > arraySizeMax) return { expected: `at most ${arraySizeMax} jobs in one array` };
  return { array };
}

type Ranges = { readonly ranges: JobArraySpec['ranges'] } | { readonly expected: string };

function countRange(count: number): Ranges {
  if (count < 1) return { expected: `a count from 1 to ${arraySizeMax}` };
  return { ranges: [[0, count - 1]] };
}

function listedRanges(list: string): Ranges {
  const ranges: (readonly [number, number])[] = [];
  for (const part of list.split(',')) {
    const [, from, to = from] = /^(\d{1,9})(?:-(\d{1,9}))?$/.exec(part) ?? [];
    if (from === undefined) return { expected: arrayForm };
    const [first, last] = [Number(from), Number(to)];
    if (last < first) return { expected: `the lower index first: ${last}-${first}` };
    if (last > arrayIndexMax) return { expected: `indexes of at most ${arrayIndexMax}` };
    ranges.push([first, last]);
  }
  ranges.sort(([a], [b]) => a - b);
  const merged: [number, number][] = [];
  for (const [first, last] of ranges) {
    const before = merged.at(-1);
    if (before !== undefined && first <= before[1]) return { expected: `index ${first} only once` };
    if (before !== undefined && first === before[1] + 1) before[1] = last;
    else merged.push([first, last]);
  }
  return { ranges: merged };
}

/** The one text that stands for an array; `parseArray` reads it back. */
export function formatArray({ ranges, atOnce }: JobArraySpec): string {
  // A number alone would be a count.
  const isAlone = ranges.length === 1;
  const list = ranges.map(([first, last]) => (first === last && !isAlone ? `${first}` : `${first}-${last}`));
  return `${list.join(',')}${atOnce === null ? '' : `%${atOnce}`}`;
}

/** How many jobs it has. */
export function arraySize({ ranges }: Pick<JobArraySpec, 'ranges'>): number {
  return ranges.reduce((sum, [first, last]) => sum + last - first + 1, 0);
}

/** The position from 0 of its job with an index; `undefined` where it has none. */
export function arrayPositionOf({ ranges }: Pick<JobArraySpec, 'ranges'>, index: number): number | undefined {
  let before = 0;
  for (const [first, last] of ranges) {
    if (index >= first && index <= last) return before + index - first;
    before += last - first + 1;
  }
  return undefined;
}

/** The index of its job at a position from 0; `undefined` behind the last. */
export function arrayIndexAt({ ranges }: Pick<JobArraySpec, 'ranges'>, position: number): number | undefined {
  let left = position;
  for (const [first, last] of ranges) {
    if (left <= last - first) return first + left;
    left -= last - first + 1;
  }
  return undefined;
}
