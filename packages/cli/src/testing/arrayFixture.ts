/** A fake coordinator with one array. */
import type { JobView } from '@muster/common/views';
import { jobStateWire } from '@muster/common/wire/codec';
import { type Answers, aJob, wire } from './fakeCoordinator.ts';

export const arrayId = 'arr_0123456789ab';

/** @param size how many jobs were submitted with the array */
export function aMember(index: number, given: Partial<JobView> = {}, size = 4): JobView {
  return aJob({
    id: memberId(index),
    name: 'sweep',
    submitSeq: index + 1,
    array: { id: arrayId, index, size },
    ...given,
  });
}

export function memberId(index: number): string {
  return `job_${String(index).padStart(12, '0')}`;
}

interface ListRequest {
  readonly states: readonly string[];
  readonly arrayId: string;
  readonly beforeSubmitSeq?: number;
}

/** @param jobs as they are at each look, in any order. @param pageSize jobs that one answer holds */
export function arrayAnswers(
  jobs: () => readonly JobView[],
  size: number,
  pageSize = 2,
  notStored: () => number = () => 0,
): Answers {
  return {
    ResolveJob: () => ({ array: { id: arrayId, size, name: 'sweep' } }),
    ListJobs: ({ states, beforeSubmitSeq = Number.POSITIVE_INFINITY }: ListRequest) => {
      const wanted = states.map((state) => jobStateWire.fromWire(state));
      const found = jobs()
        .filter(({ state }) => wanted.length === 0 || wanted.includes(state))
        .filter(({ submitSeq }) => submitSeq < beforeSubmitSeq)
        .toSorted((a, b) => b.submitSeq - a.submitSeq);
      const shown = found.slice(0, pageSize).map((job) => wire.job(job));
      return { jobs: shown, more: found.length > pageSize, notStored: notStored() };
    },
  };
}
