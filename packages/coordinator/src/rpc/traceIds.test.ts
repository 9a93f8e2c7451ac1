/** Which trace a job is in: whichever way it was submitted, its view and all of its events say the same. */
import { traceIdOf } from '@muster/common/traceContext';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ask } from '../api/apiFixture.ts';
import { startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import { cloudEventOf } from '../events/cloudEvents.ts';
import { finishJob, startJob, submitWith } from './jobFixture.ts';

const traceId = '0af7651916cd43dd8448eb211c80319c';
const traceparent = `00-${traceId}-b7ad6b7169203331-01`;

let coordinator: TestCoordinator;
beforeEach(async () => {
  coordinator = await startTestCoordinator({ api: {} });
});
afterEach(() => coordinator.close());

async function traceIdsOfEvents(subject: string): Promise<readonly unknown[]> {
  const events = await coordinator.store.readEvents(0, 1_000, subject);
  return [...new Set(events.map((event) => cloudEventOf('test', event)['traceid']))];
}

test('a traceparent in the metadata of gRPC is the trace of the job, and of its events until its end', async () => {
  const jobId = await submitWith(coordinator, { traceparent });
  await startJob(coordinator, jobId);
  await finishJob(coordinator, jobId);
  expect(await coordinator.api.getJob(jobId)).toMatchObject({ state: 'succeeded', traceId });
  expect(await traceIdsOfEvents(jobId)).toEqual([traceId]);
  expect((await coordinator.store.readEvents(0, 1_000, jobId)).length).toBeGreaterThan(4);
});

test('a traceparent in the headers of HTTP is the trace of the job', async () => {
  const { json } = await ask(coordinator, 'POST /jobs', {
    body: { command: ['true'] },
    headers: { traceparent },
  });
  const [jobId = ''] = (json as { jobIds?: string[] }).jobIds ?? [];
  expect(await coordinator.api.getJob(jobId)).toMatchObject({ traceId });
  expect(await traceIdsOfEvents(jobId)).toEqual([traceId]);
});

test('without one, or with one that is not valid, the job has a trace of its own', async () => {
  const jobs = [
    await submitWith(coordinator, {}),
    await submitWith(coordinator, { traceparent: traceparent.toUpperCase() }),
  ];
  for (const jobId of jobs) {
    const own = traceIdOf(jobId, null);
    expect(await coordinator.api.getJob(jobId)).toMatchObject({ traceId: own });
    expect(await traceIdsOfEvents(jobId)).toEqual([own]);
  }
});

test('every job of an array is in the trace of its submit, also those that are stored later', async () => {
  const body = { command: ['true'], array: '0-249' };
  const { json } = await ask(coordinator, 'POST /jobs', { body, headers: { traceparent } });
  const arrayId = (json as { arrayId?: string }).arrayId ?? '';
  while (coordinator.state.arrays.size > 0) await coordinator.reconcile();
  const { jobs } = await coordinator.api.listJobs({ arrayId, limit: 1_000 });
  expect(jobs).toHaveLength(250);
  expect(new Set(jobs.map((job) => job.traceId))).toEqual(new Set([traceId]));
});

test('events of nodes and of the cluster are in no trace', async () => {
  const jobId = await submitWith(coordinator, { traceparent });
  await startJob(coordinator, jobId);
  await coordinator.api.addUser({ name: 'ann', role: 'user', projects: [] });
  expect(await traceIdsOfEvents('cluster')).toEqual([undefined]);
});
