import { setTimeout as sleep } from 'node:timers/promises';
import type { JobView } from '@muster/common/views';
import { collectJobs } from '../jobs/pages.ts';
import type { Session } from '../session.ts';

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
