/**
 * Arrays. What their jobs share is stored first, in one row, and with it the promise that all of them will be; the jobs follow
 * some at a time, because a hundred thousand in one commit would keep every heartbeat waiting.
 */
import { type ArrayId, newArrayId, type RandomBytes } from '@muster/common/ids';
import { arrayIndexAt, arraySize, type JobArraySpec } from '@muster/common/spec/array';
import type { JobSpec } from '@muster/common/spec/types';
import { userOf } from '../caller.ts';
import type { Draft } from '../state.ts';
import type { JobArrayRecord } from '../store/store.ts';
import { addJob, aNewJob } from './newJob.ts';

/** Jobs that one turn of the loop stores or changes for one caller: some tens of milliseconds of work. */
export const jobsPerTurn = 100;

/** Stores an array and the first of its jobs. */
export function addArray(
  draft: Draft,
  { spec, array: wanted }: { readonly spec: JobSpec; readonly array: JobArraySpec },
  random: RandomBytes,
  nowMs: number,
): JobArrayRecord {
  const array = {
    ...{ id: newArrayId(random), spec, size: arraySize(wanted) },
    ...{ filled: 0, by: draft.by, submittedAtMs: nowMs },
  };
  draft.addArray(array);
  fillArray(draft, array.id, random, nowMs);
  return array;
}

/** Stores the next of its jobs. Does nothing once all of them are stored. */
export function fillArray(draft: Draft, arrayId: ArrayId, random: RandomBytes, nowMs: number): void {
  const array = draft.array(arrayId);
  if (array === undefined) return;
  const { spec, size, submittedAtMs } = array;
  const user = userOf(array.by);
  const filled = Math.min(size, array.filled + jobsPerTurn);
  for (let position = array.filled; position < filled; position += 1) {
    // Arrays of earlier versions have no indexes in their spec: theirs count from 0.
    const index = (spec.array === null ? undefined : arrayIndexAt(spec.array, position)) ?? position;
    const place = { id: arrayId, index, size };
    addJob(
      draft,
      aNewJob(draft, { spec, array: place, requeuedFrom: null, submittedAtMs, user }, random),
      nowMs,
    );
  }
  draft.putArray({ ...array, filled });
}
