import type { Client, ServiceError } from '@grpc/grpc-js';
import { MusterError } from '@muster/common/errors';
import type { JobId } from '@muster/common/ids';
import { musterService } from '@muster/common/wire/service';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startTestCoordinator, type TestCoordinator, withToken } from '../coordinatorFixture.ts';
import { aCaller, aCheckpoint, aJob, allocation, aNode } from '../modelFixture.ts';
import { applyJobEvent } from '../state/applyJobEvent.ts';
import { Memory, MemoryStore } from '../store/memory/memoryStore.ts';
import { finishJob, specJson, startJob, submitJob } from './jobFixture.ts';

let coordinator: TestCoordinator;
beforeEach(async () => {
  coordinator = await startTestCoordinator();
});
afterEach(() => coordinator.close());

const submitOne = (requestId: string, spec?: string) => submitJob(coordinator, requestId, spec);
const start = (jobId: JobId) => startJob(coordinator, jobId);
const finish = (jobId: JobId, attempt?: number) => finishJob(coordinator, jobId, attempt);

/** A call as no client of ours would send it. */
function rawCall(name: 'ListJobs' | 'Submit' | 'GetJob', request: object): Promise<ServiceError | object> {
  const client: Client = coordinator.client();
  const { path, requestSerialize, responseDeserialize } = musterService[name];
  const metadata = withToken(coordinator.adminToken);
  return new Promise((resolve) => {
    const deadline = { deadline: Date.now() + 60_000 };
    client.makeUnaryRequest(
      path,
      requestSerialize,
      responseDeserialize as (bytes: Buffer) => object,
      request,
      metadata,
      deadline,
      (error, answer) => resolve(error ?? answer ?? {}),
    );
  });
}

test('the same submit gives the same job, at the same moment and later', async () => {
  const request = { specJson, requestId: 'r1' };
  const [first, second] = await Promise.all([
    coordinator.api.submit(request),
    coordinator.api.submit(request),
  ]);
  expect(second.jobIds).toEqual(first.jobIds);
  expect(first.repeatedRequest).not.toBe(second.repeatedRequest);
  expect(await coordinator.api.submit(request)).toMatchObject({
    jobIds: first.jobIds,
    repeatedRequest: true,
  });
  expect(coordinator.state.jobs.size).toBe(1);
});

test('a request id that was used for another spec or size is refused, at the same moment and later', async () => {
  const other = JSON.stringify({ name: 'other', command: ['true'] });
  const results = await Promise.allSettled([submitOne('r1'), submitOne('r1', other)]);
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
  await expect(submitOne('r1', other)).rejects.toMatchObject({ code: 'already_exists' });
  const array = coordinator.api.submit({ specJson, requestId: 'r1', arraySize: 1 });
  await expect(array).rejects.toThrow(/request id r1 was used for another request/);
});

test('an array is N jobs in order, listed and stopped by its id', async () => {
  const { jobIds, arrayId } = await coordinator.api.submit({ specJson, requestId: 'r1', arraySize: 3 });
  const { jobs } = await coordinator.api.listJobs({ arrayId: arrayId ?? '' });
  expect(jobs.map(({ id, array }) => [id, array?.index, array?.size])).toEqual(
    jobIds.map((id, index) => [id, index, 3]).reverse(),
  );
  const briefly = await coordinator.api.listJobs({ arrayId: arrayId ?? '', brief: true });
  expect(briefly.jobs.map(({ id, name, spec }) => [id, name, spec['command']])).toEqual(
    jobs.map(({ id, name }) => [id, name, undefined]),
  );
  const { jobs: stopped } = await coordinator.api.stopJobs([arrayId ?? '', jobIds[0] ?? '']);
  expect(stopped.map((job) => job.state)).toEqual(['cancelled', 'cancelled', 'cancelled']);
  expect(await coordinator.api.stopJobs([arrayId ?? ''])).toEqual({ jobs: [], total: 0 });
  const last = await submitOne('r2');
  const [shown] = (await coordinator.api.stopJobs([last], 'enough', true)).jobs;
  expect(shown).toMatchObject({ id: last, name: 'train', state: 'cancelled' });
  expect(shown?.spec).not.toHaveProperty('command');
});

test('the jobs of a request are listed in pages, those of an array too', async () => {
  const { jobIds } = await coordinator.api.submit({ specJson, requestId: 'r1', arraySize: 5 });
  const single = await submitOne('r2');
  const listed: string[] = [];
  for (let beforeSubmitSeq = Number.MAX_SAFE_INTEGER, more = true; more; ) {
    const page = await coordinator.api.listJobs({ requestId: 'r1', limit: 2, beforeSubmitSeq });
    listed.push(...page.jobs.map(({ id }) => id));
    expect(listed.length, 'no job is listed twice').toBeLessThanOrEqual(5);
    more = page.more;
    beforeSubmitSeq = page.jobs.at(-1)?.submitSeq ?? 0;
  }
  expect(listed).toEqual(jobIds.toReversed());
  expect(await coordinator.api.listJobs({ requestId: 'r2' })).toMatchObject({
    jobs: [{ id: single }],
    more: false,
  });
  expect((await coordinator.api.listJobs({ requestId: 'r1', states: ['running'] })).jobs).toEqual([]);
  await expect(coordinator.api.listJobs({ requestId: 'r9' })).rejects.toThrow(/no request r9 was accepted/);
});

test.each<[string, { specJson?: string; requestId?: string; arraySize?: number }, RegExp]>([
  [
    'is too large',
    { specJson: `{"name":"${'x'.repeat(256 * 1024)}"}` },
    /the spec has 262155 bytes; at most 262144/,
  ],
  ['is not JSON', { specJson: '{' }, /spec_json is not JSON/],
  ['is wrong', { specJson: '{"name":"a"}' }, /^invalid spec: .+/],
  ['is no mapping', { specJson: '7' }, /^invalid spec: [^:]/],
  ['is a flood', { arraySize: 100_001 }, /array: got 100001/],
  ['has no request id', { requestId: '' }, /request_id must be 1 to 128/],
  ['has a request id with a space', { requestId: 'a b' }, /request_id must be 1 to 128/],
  ['has a long request id', { requestId: 'x'.repeat(129) }, /request_id must be 1 to 128/],
])('a submit that %s is refused', async (_, fields, message) => {
  const submit = coordinator.api.submit({ specJson, requestId: 'r1', ...fields });
  await expect(submit).rejects.toMatchObject({ code: 'invalid', message: expect.stringMatching(message) });
  expect(coordinator.state.jobs.size).toBe(0);
});

test.each([
  ['a long key', { ['k'.repeat(100_000)]: 1 }],
  ['half a character', { '\ud800': 1, name: '\ud800' }],
])('a spec with %s gets an answer that fits', async (_, wrong) => {
  const submit = submitOne('r1', JSON.stringify({ command: ['true'], ...wrong }));
  await expect(submit).rejects.toMatchObject({ code: 'invalid' });
  expect(await submitOne('r2'), 'and the coordinator goes on').toMatch(/^job_/);
});

test('a job comes after jobs that exist, those of its own batch included', async () => {
  const after = (id: string) => JSON.stringify({ name: 'next', command: ['true'], after: [id] });
  const first = await submitOne('r1');
  const second = await submitOne('r2', after(first));
  expect((await coordinator.api.getJob(second)).pending?.kind).toBe('dependency');
  await expect(submitOne('r3', after('job_zzzzzzzzzzzz'))).rejects.toThrow(
    /after: there is no job job_zzzzzzzzzzzz/,
  );
});

test('a disk below its reserve refuses submits and says how much is missing, and repeats what was accepted', async () => {
  const request = { specJson, requestId: 'r1' };
  const accepted = await coordinator.api.submit(request);
  const full = await startTestCoordinator({ reserveBytes: 2 ** 60, memory: coordinator.memory });
  try {
    expect((await full.api.submit(request)).jobIds).toEqual(accepted.jobIds);
    const refused = full.api.submit({ ...request, requestId: 'r2' });
    await expect(refused).rejects.toMatchObject({ code: 'resource_exhausted' });
    await expect(refused).rejects.toThrow(/free at least \d+ bytes/);
    expect((await full.api.stopJobs(accepted.jobIds)).jobs, 'what exists still changes').toMatchObject([
      { state: 'cancelled' },
    ]);
  } finally {
    await full.close();
  }
});

test('a job is named by its id or by the beginning that only it has', async () => {
  const [first, second] = [await submitOne('r1'), await submitOne('r2')];
  let shared = 0;
  while (first[shared] === second[shared]) shared += 1;
  const { api } = coordinator;
  expect((await api.getJob(first.slice(0, Math.max(6, shared + 1)))).id).toBe(first);
  for (const [text, code, message] of [
    ['job_', 'invalid', /give at least 6 characters/],
    ['job_zz', 'not_found', /there is no job job_zz; `muster jobs --all`/],
    [`${first}0`, 'not_found', /there is no job/],
    ['node-1', 'not_found', /no job named "node-1"/],
    ['', 'not_found', /no job named ""/],
    ['job_%%', 'not_found', /there is no job/],
    ['x'.repeat(1_000_000), 'not_found', /no job named "x{100} …"/],
  ] as const)
    await expect(api.getJob(text)).rejects.toMatchObject({ code, message: expect.stringMatching(message) });
  if (shared >= 6) {
    await expect(api.getJob(first.slice(0, shared))).rejects.toThrow(/is the beginning of several jobs/);
  }
});

test('specs at their limit are listed in pages that every client takes', async () => {
  const text = 'x'.repeat(95_000);
  const large = JSON.stringify({ name: 'large', command: ['true'], env: { A: text, B: text } });
  await coordinator.api.submit({ specJson: large, requestId: 'r1', arraySize: 12 });
  const indexes: (number | undefined)[] = [];
  let beforeSubmitSeq = Number.MAX_SAFE_INTEGER;
  for (let more = true; more; ) {
    const page = await coordinator.api.listJobs({ limit: 1_000, beforeSubmitSeq });
    expect(page.jobs.length).toBeLessThanOrEqual(6);
    indexes.push(...page.jobs.map(({ array }) => array?.index));
    beforeSubmitSeq = page.jobs.at(-1)?.submitSeq ?? 0;
    more = page.more;
  }
  expect(indexes).toEqual([11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
});

test('jobs are listed newest first, in pages without gap or repeat, and by state', async () => {
  const ids: string[] = [];
  for (let count = 0; count < 7; count += 1) ids.unshift(await submitOne(`r${count}`));
  const { api } = coordinator;
  await api.stopJobs([ids[3] ?? '']);
  const seen: string[] = [];
  let beforeSubmitSeq = Number.MAX_SAFE_INTEGER;
  for (let more = true; more; ) {
    const page = await api.listJobs({ limit: 3, beforeSubmitSeq });
    seen.push(...page.jobs.map((job) => job.id));
    beforeSubmitSeq = page.jobs.at(-1)?.submitSeq ?? 0;
    more = page.more;
  }
  expect(seen).toEqual(ids);
  expect((await api.listJobs({ states: ['cancelled'] })).jobs.map((job) => job.id)).toEqual([ids[3]]);
  expect((await api.listJobs({ states: ['queued'], limit: 6 })).more).toBe(false);
  expect(await rawCall('ListJobs', { states: ['JOB_STATE_UNSPECIFIED'] })).toMatchObject({
    details: 'states: there is no job state JOB_STATE_UNSPECIFIED',
  });
});

test('a reason for a stop is stored with each job, so it is bounded', async () => {
  const id = await submitOne('r1');
  await expect(coordinator.api.stopJobs([id], 'x'.repeat(1_001))).rejects.toThrow(
    /the reason has 1001 characters/,
  );
  const [job] = (await coordinator.api.stopJobs([id], 'wrong data')).jobs;
  expect(job?.cause?.message).toBe('wrong data');
  await expect(coordinator.api.stopJobs(Array(1_001).fill(id))).rejects.toThrow(/1001 ids; at most 1000/);
});

test('a running job is requeued as itself, an ended one as a new job, once per request', async () => {
  const { api } = coordinator;
  const id = await submitOne('r1');
  await start(id);
  await expect(api.requeueJob(id, 'q1')).rejects.toMatchObject({
    code: 'failed_precondition',
    message: expect.stringMatching(/requeueing it stops attempt 1\. .* --force/),
  });
  expect((await api.getJob(id)).state).not.toBe('stopping');
  expect(await api.requeueJob(id, 'q1', { kind: 'newest' }, null, true)).toEqual({
    jobId: id,
    newJob: false,
  });
  expect((await api.getJob(id)).state).toBe('stopping');
  await finish(id);
  await start(id);
  await finish(id, 2);
  expect((await api.getJob(id)).state).toBe('succeeded');
  const again = await api.requeueJob(id, 'q2');
  expect(again.newJob).toBe(true);
  expect(await api.requeueJob(id, 'q2')).toEqual(again);
  expect(await api.getJob(again.jobId)).toMatchObject({ requeuedFrom: id, state: 'queued' });
});

test('a requeue of a running job that is sent again stops nothing a second time, at the same moment and later', async () => {
  const { api } = coordinator;
  const id = await submitOne('r1');
  await start(id);
  const answer = { jobId: id, newJob: false };
  const ask = () => api.requeueJob(id, 'q1', { kind: 'newest' }, null, true);
  expect(await Promise.all([ask(), ask()])).toEqual([answer, answer]);
  await finish(id);
  await start(id);
  expect(await api.requeueJob(id, 'q1')).toEqual(answer);
  expect((await api.getJob(id)).state, 'its second attempt goes on').not.toBe('stopping');
  await finish(id, 2);
  const restarted = await startTestCoordinator({ memory: coordinator.memory });
  try {
    expect(await restarted.api.requeueJob(id, 'q1'), 'also by the next coordinator').toEqual(answer);
    expect((await restarted.api.listJobs()).jobs).toHaveLength(1);
  } finally {
    await restarted.close();
  }
});

test('a requeue needs a request id of its own', async () => {
  const { api } = coordinator;
  const [id, other] = [await submitOne('r1'), await submitOne('r2')];
  await expect(api.requeueJob(id, '')).rejects.toThrow('request_id must be 1 to 128');
  await expect(api.requeueJob(id, 'r1')).rejects.toMatchObject({ code: 'already_exists' });
  await api.requeueJob(id, 'q1');
  await expect(api.requeueJob(other, 'q1')).rejects.toMatchObject({ code: 'already_exists' });
});

test('a job that ends between being looked at and being requeued becomes a new job, with what it saved last', async () => {
  let afterRead = () => {};
  class WatchedStore extends MemoryStore {
    override async readJob(id: JobId) {
      const record = await super.readJob(id);
      afterRead();
      return record;
    }
  }
  await coordinator.close();
  coordinator = await startTestCoordinator({ store: (memory) => new WatchedStore(memory) });
  const id = await submitOne('r1');
  await start(id);
  const { loop, state } = coordinator;
  let reads = 0;
  // The last look before the command, in front of which the end of the job comes.
  afterRead = () => {
    reads += 1;
    if (reads !== 2) return;
    void loop.run(aCaller, (draft) =>
      draft.putJob({ ...aJob(1), ...state.jobs.get(id), checkpoints: [aCheckpoint(10)] }),
    );
    void finish(id);
  };
  const { jobId, newJob } = await coordinator.api.requeueJob(id, 'q1');
  expect(newJob).toBe(true);
  expect(reads, 'it was read again').toBeGreaterThan(2);
  expect(await coordinator.api.getJob(jobId)).toMatchObject({
    requeuedFrom: id,
    state: 'queued',
    checkpoints: [{ name: 'checkpoint-10' }],
  });
});

test('a job that is being stopped for good is not requeued', async () => {
  const id = await submitOne('r1');
  await start(id);
  await coordinator.api.stopJobs([id], 'enough');
  await expect(coordinator.api.requeueJob(id, 'q1')).rejects.toThrow(
    `${id} is stopping (enough); requeue it once it has ended`,
  );
});

test('an explanation of a waiting job counts what comes before it', async () => {
  await submitOne('r1');
  await submitOne('r2', JSON.stringify({ name: 'urgent', command: ['true'], priority: 100 }));
  const id = await submitOne('r3');
  const { summary, details } = await coordinator.api.explainJob(id);
  expect(summary).toContain('the cluster has no nodes yet');
  expect(details).toContain('2 queued jobs are ahead of it');
});

test('a lease that agents could not keep up is refused at once', async () => {
  const slow = await startTestCoordinator({ heartbeatIntervalMs: 20_000 });
  try {
    const leased = JSON.stringify({ ...JSON.parse(specJson), lease: '30s' });
    const problems = [{ path: 'lease', expected: '40s or more; or to omit it' }];
    for (const dryRun of [true, false])
      await expect(slow.api.submit({ specJson: leased, requestId: 'r1', dryRun })).rejects.toMatchObject({
        code: 'invalid',
        problems,
      });
    expect(slow.state.jobs.size).toBe(0);
  } finally {
    await slow.close();
  }
});

test('a dry run stores nothing and says why it would wait', async () => {
  const answer = await coordinator.api.submit({ specJson, requestId: '', dryRun: true });
  expect(answer).toMatchObject({ jobIds: [], wouldWait: { kind: 'no_nodes' }, wouldStartOn: [] });
  expect(coordinator.state.jobs.size).toBe(0);
  expect(coordinator.memory.requests.size).toBe(0);
});

test('a submit says at once why its job does not start', async () => {
  const answer = await coordinator.api.submit({ specJson, requestId: 'r1' });
  expect(answer).toMatchObject({ waits: { kind: 'no_nodes' }, wouldWait: null });
});

test('jobs that have ended are still there after a restart', async () => {
  const id = await submitOne('r1');
  await coordinator.api.stopJobs([id]);
  const restarted = await startTestCoordinator({ memory: coordinator.memory });
  try {
    expect(await restarted.api.getJob(id.slice(0, 12))).toMatchObject({ id, state: 'cancelled' });
    await expect(restarted.api.getJob('job_zzzzzzzzzzzz')).rejects.toBeInstanceOf(MusterError);
  } finally {
    await restarted.close();
  }
});

test('nodes are listed by name, each with what its own tasks hold', async () => {
  const memory = new Memory('test');
  for (const name of ['node-2', 'node-1']) memory.nodes.set(name, aNode(name));
  const other = await startTestCoordinator({ memory });
  try {
    const { jobIds } = await other.api.submit({ specJson, requestId: 'r1' });
    const placement = { node: aNode('node-2').name, gpuUuids: ['GPU-node-2-0'], cpus: 2, memoryMb: 5 };
    await other.loop.run(aCaller, (draft, nowMs) =>
      applyJobEvent(draft, jobIds[0] as JobId, allocation([placement]), nowMs),
    );
    expect(await other.api.listNodes()).toMatchObject([
      { name: 'node-1', state: 'silent', gpuUses: [], cpusUsed: 0, memoryUsedMb: 0 },
      { name: 'node-2', gpuUses: [{ uuid: 'GPU-node-2-0', jobId: jobIds[0] }], cpusUsed: 2, memoryUsedMb: 5 },
    ]);
    expect((await other.api.getNode('node-2')).cpusUsed).toBe(2);
    for (const [index, cpus] of [0.1, 0.2].entries()) {
      const shared = await other.api.submit({ specJson, requestId: `shared-${index}` });
      const part = { node: aNode('node-1').name, gpuUuids: [], cpus, memoryMb: 1 };
      await other.loop.run(aCaller, (draft, nowMs) =>
        applyJobEvent(draft, shared.jobIds[0] as JobId, allocation([part]), nowMs),
      );
    }
    expect((await other.api.getNode('node-1')).cpusUsed).toBe(0.3);
    await expect(other.api.getNode('Node 3')).rejects.toThrow(/there is no node Node 3; `muster nodes`/);
  } finally {
    await other.close();
  }
});
