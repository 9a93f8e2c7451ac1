/**
 * Arrays. What their jobs share is stored first, in one row, and with it the promise that all of them will be; the jobs follow
 * some at a time, because a hundred thousand in one commit would keep every heartbeat waiting.
 */
import { type ArrayId, newArrayId, type RandomBytes } from '@muster/common/ids';
import { arraySize, type JobArraySpec } from '@muster/common/spec/array';
import type { JobSpec } from '@muster/common/spec/types';
import { budgetOf, traceparentOf, userOf } from '../caller.ts';
import type { Draft } from '../state/state.ts';
import { indexAt, isMissing, positionOf } from '../store/arrayIndexes.ts';
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
    id: newArrayId(random),
    spec,
    size: arraySize(wanted),
    filled: 0,
    early: new Set<number>(),
    by: draft.by,
    submittedAtMs: nowMs,
    // Whatever is submitted while its jobs are being stored comes after them.
    firstSubmitSeq: draft.takeSubmitSeqs(arraySize(wanted)),
  };
  draft.arrays.add(array);
  fillArray(draft, array.id, random, nowMs);
  return array;
}

/** Stores the next of its jobs. Does nothing once all of them are stored. */
export function fillArray(draft: Draft, arrayId: ArrayId, random: RandomBytes, nowMs: number): void {
  const array = draft.arrays.get(arrayId);
  if (array === undefined) return;
  const filled = Math.min(array.size, array.filled + jobsPerTurn);
  for (let position = array.filled; position < filled; position += 1) {
    const index = indexAt(array, position);
    if (!array.early.has(index)) addMember(draft, array, { position, index }, random, nowMs);
  }
  draft.arrays.put({ ...array, filled });
}

/** Stores the job of an index before its turn. Does nothing where it is stored, or where the array has no such index. */
export function fillMember(
  draft: Draft,
  { arrayId, index }: { readonly arrayId: ArrayId; readonly index: number },
  random: RandomBytes,
  nowMs: number,
): void {
  const array = draft.arrays.get(arrayId);
  const position = array === undefined ? undefined : positionOf(array, index);
  if (array === undefined || position === undefined || !isMissing(array, index)) return;
  addMember(draft, array, { position, index }, random, nowMs);
  draft.arrays.put({ ...array, early: new Set([...array.early, index]) });
}

function addMember(
  draft: Draft,
  { id, spec, size, by, submittedAtMs, firstSubmitSeq }: JobArrayRecord,
  { position, index }: { readonly position: number; readonly index: number },
  random: RandomBytes,
  nowMs: number,
): void {
  const submitSeq = firstSubmitSeq + position;
  const place = { id, index, size };
  const user = userOf(by);
  const budget = budgetOf(by);
  const traceparent = traceparentOf(by);
  const job = { spec, array: place, requeuedFrom: null, submittedAtMs, submitSeq, user, budget, traceparent };
  addJob(draft, aNewJob(draft, job, random), nowMs);
}
