/** What calls tell of arrays whose jobs may not all be stored yet. */
import type { ArrayId, JobId } from '@muster/common/ids';
import { arrayIndexAt } from '@muster/common/spec/array';
import type { JobSpec } from '@muster/common/spec/types';
import type { ArrayFiller } from '../reconcilers/arrayFiller.ts';
import type { ClusterState } from '../state/state.ts';
import { missingOf } from '../store/arrayIndexes.ts';
import type { RequestRecord, Store } from '../store/store.ts';
import { sizeOf } from './jobRequests.ts';

interface ArrayParts {
  readonly state: Pick<ClusterState, 'arrays'>;
  readonly store: Pick<Store, 'names'>;
  readonly arrays: Pick<ArrayFiller, 'begin' | 'jobIds'>;
}

/** An answer names no more jobs than that, and does not wait until more are stored. */
const namedMax = 1_000;

/** Ids of the jobs that a submit has made; of a large array none, because its jobs are stored after the answer. */
export async function idsOfSubmit(
  { arrays }: Pick<ArrayParts, 'arrays'>,
  { arrayId, jobIds }: RequestRecord,
  spec: JobSpec,
): Promise<readonly JobId[]> {
  if (arrayId === null) return jobIds;
  const size = sizeOf(spec);
  if (size <= namedMax) return (await arrays.jobIds(arrayId as ArrayId)).slice(0, size);
  arrays.begin();
  return [];
}

/** Its job of the lowest index, which is stored with the array. */
export async function firstOfArray(
  { store }: Pick<ArrayParts, 'store'>,
  arrayId: string | null,
  { array }: JobSpec,
): Promise<JobId | undefined> {
  const index = array === null ? undefined : arrayIndexAt(array, 0);
  if (arrayId === null || index === undefined) return undefined;
  return (await store.names.member(arrayId as ArrayId, index)) ?? undefined;
}

/** How many of its jobs are queued and in no list, because they are not stored yet. */
export function notStoredOf({ state }: Pick<ArrayParts, 'state'>, arrayId: ArrayId | null): number {
  const array = arrayId === null ? undefined : state.arrays.get(arrayId);
  return array === undefined ? 0 : missingOf(array);
}
