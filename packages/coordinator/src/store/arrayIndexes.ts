/** The indexes that the jobs of a stored array have. */
import { arrayIndexAt, arrayPositionOf } from '@muster/common/spec/array';
import type { JobArrayRecord } from './store.ts';

/** @param position from 0. Behind the last job: an index that none has and that is higher than all */
export function indexAt({ spec, size }: Pick<JobArrayRecord, 'spec' | 'size'>, position: number): number {
  // Without indexes in the spec, they count from 0.
  if (spec.array === null) return position;
  return arrayIndexAt(spec.array, position) ?? (arrayIndexAt(spec.array, size - 1) ?? size) + 1;
}

/** undefined: no job of it has this index. */
export function positionOf(
  { spec, size }: Pick<JobArrayRecord, 'spec' | 'size'>,
  index: number,
): number | undefined {
  if (spec.array !== null) return arrayPositionOf(spec.array, index);
  return index < size ? index : undefined;
}

/** It has a job with this index, and that is not stored. */
export function isMissing(array: JobArrayRecord, index: number): boolean {
  const position = positionOf(array, index);
  return position !== undefined && position >= array.filled && !array.early.has(index);
}

/** How many of its jobs are not stored. */
export function missingOf({ size, filled, early, spec }: JobArrayRecord): number {
  let ahead = 0;
  for (const index of early) if ((positionOf({ spec, size }, index) ?? 0) >= filled) ahead += 1;
  return size - filled - ahead;
}
