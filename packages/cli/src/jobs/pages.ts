import type { JobView } from '@muster/common/views';
import type { JobFilter, MusterApi } from '@muster/common/wire/client';

/** What the API gives at once; it gives less where specs are large. */
const pageSizeMax = 1_000;

/**
 * The newest jobs that match, page after page.
 * @param limit at most so many; may be infinite
 */
export async function collectJobs(
  api: Pick<MusterApi, 'listJobs'>,
  filter: Omit<JobFilter, 'limit' | 'beforeSubmitSeq'>,
  limit: number,
): Promise<{ readonly jobs: readonly JobView[]; readonly more: boolean }> {
  const jobs: JobView[] = [];
  for (;;) {
    const last = jobs.at(-1);
    const page = await api.listJobs({
      ...filter,
      limit: Math.min(pageSizeMax, limit - jobs.length),
      ...(last === undefined ? {} : { beforeSubmitSeq: last.submitSeq }),
    });
    jobs.push(...page.jobs);
    if (!page.more || page.jobs.length === 0 || jobs.length >= limit) return { jobs, more: page.more };
  }
}
