import { type ServiceError, status } from '@grpc/grpc-js';
import type { JobId } from '@muster/common/ids';
import { musterService } from '@muster/common/wire/service';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { applyJobEvent } from '../commands/jobs.ts';
import { startTestCoordinator, type TestCoordinator, withToken } from '../coordinatorFixture.ts';
import { aCaller, aCheckpoint, aJob, allocation, aNode } from '../modelFixture.ts';
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
  const from = { kind: 'step', step: 15 } as const;
  await expect(api.requeueJob(id, 'q0', from)).rejects.toThrow(/no good checkpoint at or before step 15/);
  const checkpoints = [aCheckpoint(10), aCheckpoint(20)];
  await loop.run(aCaller, (draft) => draft.putJob({ ...aJob(1), ...state.jobs.get(id), checkpoints }));
  await api.requeueJob(id, 'q1', from);
  expect(state.jobs.get(id)?.resumeChoice).toEqual(from);
  for (const other of [{ kind: 'start' }, { kind: 'newest' }, { kind: 'step', step: 16 }] as const)
    await expect(api.requeueJob(id, 'q1', other)).rejects.toMatchObject({ code: 'already_exists' });
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
  expect(await api.stopJobs([id])).toMatchObject(newest);
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
