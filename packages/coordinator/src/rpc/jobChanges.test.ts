import { type ServiceError, status } from '@grpc/grpc-js';
import type { JobId } from '@muster/common/ids';
import { musterService } from '@muster/common/wire/service';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startTestCoordinator, type TestCoordinator, withToken } from '../coordinatorFixture.ts';
import { aCaller, aCheckpoint, aJob, allocation, aNode } from '../modelFixture.ts';
import { applyJobEvent } from '../state/applyJobEvent.ts';
import { finishJob, startJob, submitJob } from './jobFixture.ts';

let coordinator: TestCoordinator;
beforeEach(async () => {
  coordinator = await startTestCoordinator();
});
afterEach(() => coordinator.close());

const submitOne = (requestId: string, spec?: string) => submitJob(coordinator, requestId, spec);
const start = (jobId: JobId) => startJob(coordinator, jobId);
const finish = (jobId: JobId) => finishJob(coordinator, jobId);

test('a requeue may begin from a step or from nothing, and that belongs to what was asked', async () => {
  const { api, loop, state } = coordinator;
  const id = await submitOne('r1');
  const from = { kind: 'step', step: 10 } as const;
  await expect(api.requeueJob(id, 'q0', from)).rejects.toThrow(/no good checkpoint of step 10/);
  const checkpoints = [aCheckpoint(10), aCheckpoint(20)];
  await loop.run(aCaller, (draft) => draft.putJob({ ...aJob(1), ...state.jobs.get(id), checkpoints }));
  await api.requeueJob(id, 'q1', from);
  expect(state.jobs.get(id)?.resumeChoice).toEqual(from);
  for (const other of [{ kind: 'start' }, { kind: 'newest' }, { kind: 'step', step: 20 }] as const)
    await expect(api.requeueJob(id, 'q1', other)).rejects.toMatchObject({ code: 'already_exists' });
  const named = { kind: 'name', name: 'checkpoint-20' } as const;
  await expect(api.requeueJob(id, 'q5', { ...named, name: 'checkpoint-30' })).rejects.toThrow(
    /no good checkpoint "checkpoint-30"/,
  );
  await api.requeueJob(id, 'q6', named);
  expect(state.jobs.get(id)?.resumeChoice).toEqual(named);
  await api.requeueJob(id, 'q2', { kind: 'start' });
  expect(state.jobs.get(id)?.resumeChoice).toEqual({ kind: 'start' });
  await api.requeueJob(id, 'q3');
  expect(state.jobs.get(id)?.resumeChoice).toEqual({ kind: 'newest' });
  const { path, requestSerialize, responseDeserialize } = musterService.RequeueJob;
  const both = { jobId: id, requestId: 'q4', fromStep: 0, fromStart: true };
  const refusal = await new Promise<ServiceError | null>((resolve) => {
    const token = withToken(coordinator.adminToken);
    coordinator
      .client()
      .makeUnaryRequest(path, requestSerialize, responseDeserialize, both, token, (error) => resolve(error));
  });
  expect(refusal).toMatchObject({ code: status.INVALID_ARGUMENT, details: expect.stringMatching(/exclude/) });
});

test('a job that has ended runs again from the checkpoints that it left', async () => {
  const { api, loop, state } = coordinator;
  const id = await submitOne('r1');
  await start(id);
  await loop.run(aCaller, (draft) =>
    draft.putJob({ ...aJob(1), ...state.jobs.get(id), checkpoints: [aCheckpoint(10)] }),
  );
  await finish(id);
  const { jobId } = await api.requeueJob(id, 'q1', { kind: 'step', step: 10 });
  const job = state.jobs.get(jobId as JobId);
  expect(job).toMatchObject({ checkpointJobId: id, resumeChoice: { kind: 'step', step: 10 } });
  expect((await api.getJob(jobId)).checkpoints).toMatchObject([{ name: 'checkpoint-10' }]);
});

test('a list of jobs names the newest checkpoint of each', async () => {
  const { api, loop, state } = coordinator;
  const id = await submitOne('r1');
  const checkpoints = [aCheckpoint(10), aCheckpoint(20)];
  await loop.run(aCaller, (draft) => draft.putJob({ ...aJob(1), ...state.jobs.get(id), checkpoints }));
  const newest = [{ checkpoints: [{ name: 'checkpoint-20' }] }];
  expect((await api.listJobs()).jobs).toMatchObject(newest);
  expect((await api.getJob(id)).checkpoints).toHaveLength(2);
  expect((await api.stopJobs([id])).jobs).toMatchObject(newest);
});

test('a job gets more time, as much as is asked for and no more than a year', async () => {
  const { api } = coordinator;
  const limited = JSON.stringify({ name: 'train', command: ['true'], max_runtime: '1h' });
  const id = await submitOne('r1', limited);
  for (const byMs of [0, -1, 365 * 86_400_000 + 1])
    await expect(api.extendJob(id, byMs)).rejects.toMatchObject({ code: 'invalid' });
  expect(await api.extendJob(id, 365 * 86_400_000)).toMatchObject({ extraRuntimeMs: 365 * 86_400_000 });
  expect((await api.extendJob(id, 1)).extraRuntimeMs).toBe(365 * 86_400_000 + 1);
  const unlimited = await submitOne('r2');
  await expect(api.extendJob(unlimited, 1)).rejects.toMatchObject({ code: 'failed_precondition' });
  await start(id);
  await finish(id);
  await expect(api.extendJob(id, 1)).rejects.toMatchObject({ code: 'failed_precondition' });
  await expect(api.extendJob('job_zzzzzzzzzzzz', 1)).rejects.toMatchObject({ code: 'not_found' });
});

test('an extension that is sent again adds nothing a second time, at the same moment and by the next coordinator', async () => {
  const { api } = coordinator;
  const spec = JSON.stringify({ name: 'train', command: ['true'], max_runtime: '1h' });
  const id = await submitOne('r1', spec);
  const ask = () => api.extendJob('train', 1_000, 'e1');
  const answer = { id, extraRuntimeMs: 1_000 };
  expect(await Promise.all([ask(), ask()])).toMatchObject([answer, answer]);
  expect((await api.extendJob('train', 1_000, 'e2')).extraRuntimeMs, 'another request').toBe(2_000);
  for (const [named, byMs, requestId] of [
    ['train', 2_000, 'e1'],
    [id, 1_000, 'e1'],
    ['train', 1_000, 'r1'],
  ] as const)
    await expect(api.extendJob(named, byMs, requestId)).rejects.toMatchObject({ code: 'already_exists' });
  await expect(api.extendJob(id, 1_000, '')).rejects.toThrow('request_id must be 1 to 128');
  await submitOne('r2', spec);
  const restarted = await startTestCoordinator({ memory: coordinator.memory });
  try {
    const again = await restarted.api.extendJob('train', 1_000, 'e1');
    expect(again, 'of the job that the name meant then').toMatchObject({ id, extraRuntimeMs: 2_000 });
  } finally {
    await restarted.close();
  }
});

test('a job shows what became of its time, what it has saved and how it goes on', async () => {
  const { api, clock, loop, state } = coordinator;
  const gpus = JSON.stringify({ name: 'train', command: ['true'], resources: { gpus: 2 } });
  const id = await submitOne('r1', gpus);
  const fields = { preemptions: 2, batchScale: 0.5, lrScale: 0.1, checkpoints: [aCheckpoint(10)] };
  await loop.run(aCaller, (draft) => draft.putJob({ ...aJob(1), ...state.jobs.get(id), ...fields }));
  clock.nowMs += 10_000;
  expect(await api.getJob(id)).toMatchObject({
    ...fields,
    ledger: [{ kind: 'queued', cause: null, gpuSeconds: 20 }],
    training: null,
  });
  await loop.run(aCaller, (draft, nowMs) => {
    const placement = { node: aNode('node-1').name, gpuUuids: ['GPU-0'], cpus: 0, memoryMb: 0 };
    const resume = { name: 'checkpoint-10', step: 10 };
    applyJobEvent(draft, id, { ...allocation([placement]), resume }, nowMs);
  });
  expect((await api.getJob(id)).attempts).toMatchObject([{ resume: { name: 'checkpoint-10', step: 10 } }]);
});

describe('a job that continues from another one', () => {
  const saving = (dir: string, more: object = {}) =>
    JSON.stringify({ name: 'train', command: ['true'], checkpoint: { dir }, ...more });
  const checkpoints = [aCheckpoint(10), aCheckpoint(20), aCheckpoint(30, { suspect: true })];

  async function trained(dir = '/runs/a'): Promise<JobId> {
    const { loop, state } = coordinator;
    const id = await submitOne('r1', saving(dir));
    await loop.run(aCaller, (draft) => draft.putJob({ ...aJob(1), ...state.jobs.get(id), checkpoints }));
    await start(id);
    await finish(id);
    return id;
  }

  const submit = async (specJson: string, more: object) => {
    const { jobIds } = await coordinator.api.submit({ specJson, requestId: 'r2', ...more });
    return coordinator.state.jobs.get(jobIds[0] as JobId);
  };

  test('goes on with its checkpoints in the same directory', async () => {
    const id = await trained();
    expect(await submit(saving('/runs/a/', { env: { LR: '1' } }), { resumeFromJob: id })).toMatchObject({
      checkpointJobId: id,
      checkpoints: checkpoints.map((each) => ({ ...each, attempt: 0 })),
      resumedFrom: { jobId: id, name: 'checkpoint-20', step: 20 },
      requeuedFrom: null,
    });
  });

  test('reads them where they are and saves elsewhere, in another directory', async () => {
    const id = await trained();
    const job = await submit(saving('/runs/b'), { resumeFromJob: id.slice(0, 10) });
    expect(job).toMatchObject({
      checkpointJobId: job?.id,
      checkpoints: [{ name: '/runs/a/checkpoint-10' }, { name: '/runs/a/checkpoint-20', attempt: 0 }],
      resumedFrom: { jobId: id, name: '/runs/a/checkpoint-20', step: 20 },
    });
    expect((await coordinator.api.getJob(job?.id ?? '')).resumedFrom).toEqual(job?.resumedFrom);
  });

  test('begins from the checkpoint at a path', async () => {
    const job = await submit(saving('/runs/b'), { resumeFromPath: '/old//checkpoint-7.pt' });
    expect(job?.resumedFrom).toEqual({ jobId: null, name: '/old/checkpoint-7.pt', step: 7 });
    expect(job?.checkpoints).toMatchObject([{ name: '/old/checkpoint-7.pt', step: 7, shared: true }]);
  });

  test('is refused while that saves in the same directory, and where there is nothing to continue from', async () => {
    const id = await submitOne('r1', saving('/runs/a'));
    await expect(submit(saving('/runs/a'), { resumeFromJob: id })).rejects.toThrow(
      `${id} is queued and saves its checkpoints in the same directory; wait until it has ended`,
    );
    await expect(submit(saving('/runs/b'), { resumeFromJob: id })).rejects.toThrow(
      `${id} has no verified checkpoint to continue from; \`muster checkpoints ${id}\` lists what it has saved`,
    );
  });

  test('is refused by the name of a job that saved nothing, and the earlier one that did is named', async () => {
    const id = await trained();
    const newer = await submitOne('r3', saving('/runs/c'));
    await expect(submit(saving('/runs/b'), { resumeFromJob: 'train' })).rejects.toThrow(
      `${newer} has no verified checkpoint to continue from; ${id}, an earlier job of that name, has one: give its id`,
    );
  });

  test.each([
    [{ resumeFromJob: 'job_aaaaaaaaaaaa', resumeFromPath: '/a' }, 'exclude each other'],
    [{ resumeFromPath: 'checkpoint-7' }, 'expected an absolute path'],
    [{ resumeFromJob: 'job_zzzzzzzzzzzz' }, 'there is no job job_zzzzzzzzzzzz'],
  ])('%j is refused', async (more, words) => {
    await expect(submit(saving('/runs/b'), more)).rejects.toThrow(words);
  });

  test('is one job, no array', async () => {
    const array = saving('/runs/{array_index}', { array: 2 });
    await expect(submit(array, { resumeFromPath: '/a' })).rejects.toThrow(
      'the jobs of an array cannot all continue',
    );
  });

  test('has another spec when it is requeued with one, which a job that has not ended never gets', async () => {
    const { api, state } = coordinator;
    const id = await trained();
    const { jobId } = await api.requeueJob(
      id,
      'q1',
      { kind: 'newest' },
      saving('/runs/a', { env: { LR: '1' } }),
    );
    expect(state.jobs.get(jobId as JobId)).toMatchObject({
      spec: { env: { LR: '1' } },
      requeuedFrom: id,
      checkpointJobId: id,
      resumedFrom: { jobId: id, name: 'checkpoint-20', step: 20 },
    });
    const again = api.requeueJob(jobId, 'q2', { kind: 'newest' }, saving('/runs/a'));
    await expect(again).rejects.toThrow(
      `${jobId} has not ended, and the spec of a job never changes: stop it first`,
    );
  });
});
