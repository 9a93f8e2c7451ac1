/** Which jobs of an array `muster metrics` shows. */
import { isTrainingMetricName } from '@muster/common/training';
import type { JobView } from '@muster/common/views';
import type { MusterApi } from '@muster/common/wire/client';
import { byMetric } from '../jobs/jobTable.ts';
import { collectJobs } from '../jobs/pages.ts';

/** In the order of their indexes; of an index that was requeued the newest. */
export async function arrayJobs(
  api: Pick<MusterApi, 'listJobs'>,
  arrayId: string,
): Promise<readonly JobView[]> {
  const { jobs } = await collectJobs(api, { arrayId, brief: true }, Number.POSITIVE_INFINITY);
  const newest = new Map<number, JobView>();
  // The newest come first.
  for (const job of jobs) {
    const index = job.array?.index ?? 0;
    if (!newest.has(index)) newest.set(index, job);
  }
  return [...newest].toSorted(([a], [b]) => a - b).map(([, job]) => job);
}

/**
 * At most so many of the jobs: those with the smallest newest value, as far as it is known.
 * @param what is done with them, for the note: `drawn`
 * @returns a note for the reader where some are not among them
 */
export function chosenFor(
  jobs: readonly JobView[],
  metric: string,
  max: number,
  what: string,
): { readonly jobs: readonly JobView[]; readonly note: string | null } {
  if (jobs.length <= max) return { jobs, note: null };
  const isSorted = isTrainingMetricName(metric);
  const chosen = (isSorted ? byMetric(jobs, metric) : jobs).slice(0, max);
  const which = isSorted ? `those with the smallest newest ${metric}` : 'the first';
  return { jobs: chosen, note: `${max} of ${jobs.length} jobs are ${what}: ${which}. -o csv has all.` };
}
