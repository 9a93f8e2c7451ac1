import type { JobId } from '@muster/common/ids';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import { finishJob, startJob, submitJob } from './jobFixture.ts';

let coordinator: TestCoordinator;
beforeEach(async () => {
  coordinator = await startTestCoordinator();
});
afterEach(() => coordinator.close());

const specOf = (name: string, fields: object = {}) => JSON.stringify({ name, command: ['true'], ...fields });
const pendingOf = async (id: string) => (await coordinator.api.getJob(id)).pending;

async function succeed(id: JobId): Promise<void> {
  await startJob(coordinator, id);
  await finishJob(coordinator, id);
}

test('a job comes after whatever names a job, which is kept by its id', async () => {
  const first = await submitJob(coordinator, 'r1', specOf('prepare'));
  const next = await submitJob(coordinator, 'r2', specOf('train', { after: ['prepare:any', 'latest'] }));
  await submitJob(coordinator, 'r3', specOf('prepare'));
  expect((await coordinator.api.getJob(next)).spec).toMatchObject({ after: [`${first}:any`, first] });
  expect(await pendingOf(next)).toMatchObject({ kind: 'dependency', message: `waiting for ${first} to end` });
  const repeated = coordinator.api.submit({
    specJson: specOf('train', { after: ['prepare:any', 'latest'] }),
    requestId: 'r2',
  });
  expect((await repeated).jobIds, 'a name means what it meant').toEqual([next]);
  await expect(submitJob(coordinator, 'r4', specOf('x', { after: ['prepar'] }))).rejects.toThrow(
    /after: no job named "prepar"; did you mean "prepare"/,
  );
});

test('it follows the requeue of what it comes after, also after a restart', async () => {
  const { api } = coordinator;
  const parent = await submitJob(coordinator, 'r1', specOf('parent'));
  const child = await submitJob(coordinator, 'r2', specOf('child', { after: [parent] }));
  await api.stopJobs([parent]);
  expect(await pendingOf(child)).toMatchObject({
    kind: 'dependency_failed',
    message: `dependency ${parent} was cancelled`,
  });
  const { jobId: again } = await api.requeueJob(parent, 'r3');
  expect(await pendingOf(child)).toMatchObject({ message: `waiting for ${again} to succeed` });
  const { memory } = coordinator;
  await coordinator.close();
  coordinator = await startTestCoordinator({ memory });
  await submitJob(coordinator, 'r4');
  expect(await pendingOf(child)).toMatchObject({ message: `waiting for ${again} to succeed` });
  await succeed(again as JobId);
  expect((await pendingOf(child))?.kind).not.toMatch(/dependency/);
});

test('it comes after all jobs of an array, those that run again in place of failed ones', async () => {
  const { api } = coordinator;
  const { arrayId, jobIds } = await api.submit({ specJson: specOf('sweep', { array: 2 }), requestId: 'r1' });
  const [first, second] = jobIds as JobId[];
  const child = await submitJob(coordinator, 'r2', specOf('child', { after: ['sweep'] }));
  const cleaner = await submitJob(coordinator, 'r3', specOf('cleaner', { after: ['sweep:any'] }));
  expect(await pendingOf(child)).toMatchObject({ message: `waiting for ${arrayId} to succeed` });
  await api.stopJobs([first ?? '']);
  expect(await pendingOf(child)).toMatchObject({
    message: `dependency ${arrayId} has a job that did not succeed, ${first}`,
  });
  await succeed(second as JobId);
  expect((await pendingOf(cleaner))?.kind).not.toMatch(/dependency/);
  const { jobId: again } = await api.requeueJob('sweep[0]', 'r4');
  expect(await pendingOf(child)).toMatchObject({ message: `waiting for ${arrayId} to succeed` });
  await succeed(again as JobId);
  expect((await pendingOf(child))?.kind).not.toMatch(/dependency/);
});
