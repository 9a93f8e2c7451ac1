import { setTimeout as sleep } from 'node:timers/promises';
import type { JobView } from '@muster/common/views';
import type { JobFilter, MusterApi } from '@muster/common/wire/client';
import type { Session } from '../session.ts';

/** What the API gives at once; it gives less where specs are large. */
const pageSizeMax = 1_000;

type Listing = Omit<JobFilter, 'limit' | 'beforeSubmitSeq'>;
type Page = Awaited<ReturnType<MusterApi['listJobs']>>;

/**
 * The newest jobs that match, page after page.
 * @param limit at most so many; may be infinite
 */
export async function* pagesOfJobs(
  api: Pick<MusterApi, 'listJobs'>,
  filter: Listing,
  limit: number,
): AsyncGenerator<Page> {
  let read = 0;
  let last: JobView | undefined;
  for (;;) {
    const page = await api.listJobs({
      ...filter,
      limit: Math.min(pageSizeMax, limit - read),
      ...(last === undefined ? {} : { beforeSubmitSeq: last.submitSeq }),
    });
    yield page;
    read += page.jobs.length;
    last = page.jobs.at(-1);
    if (!page.more || last === undefined || read >= limit) return;
  }
}

/**
 * The newest jobs that match. `notStored` is as it was before the first page: a job that is stored meanwhile stands before that
 * page and is in none.
 * @param limit at most so many; may be infinite
 */
export async function collectJobs(
  api: Pick<MusterApi, 'listJobs'>,
  filter: Listing,
  limit: number,
): Promise<Page> {
  const jobs: JobView[] = [];
  let more = false;
  let notStored: number | undefined;
  for await (const page of pagesOfJobs(api, filter, limit)) {
    jobs.push(...page.jobs);
    more = page.more;
    notStored ??= page.notStored;
  }
  return { jobs, more, notStored: notStored ?? 0 };
}

const answerWithinMs = 1_000;

/** Jobs that hold nodes. @returns null when the coordinator does not answer in a second: that keeps nobody from stopping it */
export async function activeJobs({ api }: Session): Promise<readonly JobView[] | null> {
  const unknown = sleep(answerWithinMs, null);
  const asked = collectJobs(api, { states: ['starting', 'running', 'stopping'] }, 1_000).then(
    ({ jobs }) => jobs,
    () => null,
  );
  return Promise.race([asked, unknown]);
}
