import { expect, test } from 'vitest';
import { aJob } from '../testing/fakeCoordinator.ts';
import { collectJobs } from './pages.ts';

test('jobs of an array that are stored while its pages are read are counted as not stored', async () => {
  const stored = [2, 1].map((submitSeq) => aJob({ submitSeq }));
  let notStored = 5;
  const listJobs = async ({ beforeSubmitSeq = Number.POSITIVE_INFINITY } = {}) => {
    const [job, ...others] = stored.filter(({ submitSeq }) => submitSeq < beforeSubmitSeq);
    const page = { jobs: job === undefined ? [] : [job], more: others.length > 0, notStored };
    // All of them, before the next page.
    notStored = 0;
    return page;
  };
  const found = await collectJobs({ listJobs }, {}, Number.POSITIVE_INFINITY);
  expect(found).toEqual({ jobs: stored, more: false, notStored: 5 });
});
