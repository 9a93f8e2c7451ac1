import type { JobId } from '@muster/common/ids';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import { finishJob, startJob, submitJob } from './jobFixture.ts';

let coordinator: TestCoordinator;
beforeEach(async () => {
  coordinator = await startTestCoordinator();
});
afterEach(() => coordinator.close());

const specOf = (name: string) => JSON.stringify({ name, command: ['true'] });

let requests = 0;
async function submitArray(name: string, arraySize: number) {
  requests += 1;
  return coordinator.api.submit({ specJson: specOf(name), requestId: `a${requests}`, arraySize });
}
const refusal = (code: string, message: RegExp) =>
  expect.objectContaining({ code, message: expect.stringMatching(message) });

test('a name and latest mean the newest submission: a job, or an array', async () => {
  const { api } = coordinator;
  await expect(api.resolveJob('latest')).rejects.toEqual(refusal('not_found', /there is no job yet/));
  const first = await submitJob(coordinator, 'r1', specOf('train'));
  const second = await submitJob(coordinator, 'r2', specOf('train'));
  expect(second).not.toBe(first);
  expect(await api.resolveJob('train')).toEqual({ kind: 'job', id: second });
  const { arrayId } = await submitArray('sweep', 3);
  const array = { kind: 'array', id: arrayId, name: 'sweep', size: 3 };
  expect(await api.resolveJob('sweep')).toEqual(array);
  expect(await api.resolveJob('latest')).toEqual(array);
  expect(await api.resolveJob(arrayId?.slice(0, -1) ?? '')).toEqual(array);
  expect((await api.listJobs({ arrayId: 'sweep' })).jobs).toHaveLength(3);
});

test('one job of an array is named by its index, whatever names the array', async () => {
  const { api } = coordinator;
  const { arrayId, jobIds } = await submitArray('sweep', 3);
  await submitJob(coordinator, 'r1', specOf('sweep'));
  for (const text of ['sweep[2]', `${arrayId}[2]`, `${arrayId?.slice(0, 10)}[2]`, `${jobIds[0]}[2]`])
    expect((await api.getJob(text)).id, text).toBe(jobIds[2]);
  await expect(api.getJob('sweep[3]')).rejects.toEqual(
    refusal('not_found', /no job sweep\[3\]: arr_\w+ has 3 jobs/),
  );
  await submitJob(coordinator, 'r2', specOf('alone'));
  await expect(api.getJob('alone[0]')).rejects.toEqual(refusal('invalid', /a single job/));
});

test('where one job is meant, an array is refused with the way to name one; an array of one job is that job', async () => {
  const { api } = coordinator;
  await submitArray('sweep', 3);
  const several = refusal('invalid', /sweep is an array of 3 jobs, .* such as "sweep\[2\]"/);
  await expect(api.explainJob('sweep')).rejects.toEqual(several);
  const { jobIds } = await submitArray('one', 1);
  expect((await api.getJob('one')).id).toBe(jobIds[0]);
});

test('a name that nobody has is answered with the nearest', async () => {
  const { api } = coordinator;
  await submitJob(coordinator, 'r1', specOf('llama-8b'));
  await expect(api.getJob('lama-8b')).rejects.toEqual(
    refusal('not_found', /no job named "lama-8b"; did you mean "llama-8b"\?/),
  );
  await expect(api.stopJobs(['quite-other'])).rejects.toEqual(
    refusal('not_found', /no job named "quite-other"; `muster jobs/),
  );
});

test('a job of an array that is requeued after its end keeps its index, and is what the index means', async () => {
  const { api } = coordinator;
  const { arrayId, jobIds } = await submitArray('sweep', 2);
  const member = jobIds[1] as JobId;
  await startJob(coordinator, member);
  await finishJob(coordinator, member);
  const { jobId, newJob } = await api.requeueJob('sweep[1]', 'again');
  expect(newJob).toBe(true);
  expect(await api.getJob('sweep[1]')).toMatchObject({
    id: jobId,
    array: { id: arrayId, index: 1, size: 2 },
  });
  expect(
    (await api.submit({ specJson: specOf('sweep'), requestId: `a${requests}`, arraySize: 2 })).jobIds,
  ).toEqual(jobIds);
});

test('events of a job are found by its name, unless a node is called so', async () => {
  const { api } = coordinator;
  const id = await submitJob(coordinator, 'r1', specOf('train'));
  for await (const event of api.watchEvents({ sinceSeq: 0, follow: false, subject: 'train' }))
    expect(event.subject).toBe(id);
});

test('jobs of an array have the indexes that the spec gives, and their own index in their spec', async () => {
  const { api } = coordinator;
  const spec = { name: 'sweep-{array_index}', command: ['run', '--seed={array_index}'], array: '1,3,5%1' };
  const { arrayId, jobIds } = await api.submit({ specJson: JSON.stringify(spec), requestId: 'r1' });
  expect(jobIds).toHaveLength(3);
  const third = await api.getJob('sweep-3');
  expect(third).toMatchObject({
    id: jobIds[1],
    name: 'sweep-3',
    spec: { name: 'sweep-3', command: ['run', '--seed=3'] },
    array: { id: arrayId, index: 3, size: 3 },
  });
  expect(third.spec, 'it makes no array itself').not.toHaveProperty('array');
  expect((await api.listJobs({ arrayId: 'sweep-5' })).jobs.map(({ name }) => name)).toEqual([
    'sweep-5',
    'sweep-3',
    'sweep-1',
  ]);
  await expect(api.getJob(`${arrayId}[2]`)).rejects.toEqual(refusal('not_found', /no job arr_\w+\[2\]/));
});

test('an array is given in the spec or beside it, which is the same request, and not both', async () => {
  const { api } = coordinator;
  const spec = { name: 'sweep', command: ['true'] };
  const beside = await api.submit({ specJson: JSON.stringify(spec), requestId: 'r1', arraySize: 2 });
  const within = await api.submit({ specJson: JSON.stringify({ ...spec, array: 2 }), requestId: 'r1' });
  expect(within).toMatchObject({ jobIds: beside.jobIds, repeatedRequest: true });
  const both = api.submit({ specJson: JSON.stringify({ ...spec, array: 2 }), requestId: 'r2', arraySize: 2 });
  await expect(both).rejects.toEqual(refusal('invalid', /give one of the two/));
  const other = api.submit({ specJson: JSON.stringify({ ...spec, array: '0-1%1' }), requestId: 'r1' });
  await expect(other).rejects.toEqual(refusal('already_exists', /used for another request/));
});
