/** Evaluations by the API, with jobs that are begun and ended by hand. */
import type { JobId } from '@muster/common/ids';
import type { TaskEnd } from '@muster/common/views';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { report } from '../commands/nodes.ts';
import { startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import { aCaller, aCheckpoint, aNode, anExit, aReport } from '../modelFixture.ts';
import { finishJob, startJob, submitJob } from '../rpc/jobFixture.ts';
import { applyJobEvent } from '../state/applyJobEvent.ts';
import { Memory, MemoryStore } from '../store/memory/memoryStore.ts';
import type { Store } from '../store/store.ts';

const memories: Memory[] = [];
let coordinator: TestCoordinator;
beforeEach(async () => {
  const memory = new Memory('test');
  memories.push(memory);
  coordinator = await startTestCoordinator({ memory });
});
afterEach(() => coordinator.close());

const file = {
  name: 'train',
  command: ['train'],
  checkpoint: { dir: '/ckpt', keep_last: 1 },
  evaluate: { command: ['eval', '{checkpoint}'], every: 1, metric: { name: 'eval_loss' } },
};

async function restart(): Promise<void> {
  await coordinator.close();
  coordinator = await startTestCoordinator({ memory: memories.at(-1) as Memory });
}

async function train(change: object = {}): Promise<JobId> {
  const id = await submitJob(coordinator, 'train', JSON.stringify({ ...file, ...change }));
  await startJob(coordinator, id);
  return id;
}

function save(jobId: JobId, step: number, fields: object = {}): Promise<void> {
  const checkpoint = { ...aCheckpoint(step), ...fields };
  return coordinator.loop.run(aCaller, (draft, nowMs) => {
    const event = {
      kind: 'checkpoint',
      attempt: 1,
      nodeRank: 0,
      checkpoint,
      shared: true,
      afterStop: false,
    } as const;
    applyJobEvent(draft, jobId, event, nowMs);
  });
}

async function evaluationsOf(jobId: JobId): Promise<readonly JobId[]> {
  await coordinator.evaluations.run();
  const { jobs } = await coordinator.api.listJobs({ label: `muster.evaluates=${jobId}` });
  return jobs.map(({ id }) => id as JobId).reverse();
}

/** Runs an evaluation to its end. @param latest what it printed last */
async function evaluate(
  jobId: JobId,
  latest: object,
  exitCode = 0,
  end: Partial<TaskEnd> = { rowsEnd: 1 },
): Promise<void> {
  await startJob(coordinator, jobId);
  const training = { framework: null, latest, totalSteps: null, etaMs: null, rows: 1, atMs: 0 };
  const task = { jobId, attempt: coordinator.state.jobs.get(jobId)?.lastAttempt ?? 1, nodeRank: 0 };
  const ended = aReport(task, { state: 'ended', exit: anExit({ exitCode, training, ...end }) });
  await coordinator.loop.run(aCaller, (draft, nowMs) =>
    report(draft, aNode('node-1').name, [ended], () => null, nowMs),
  );
  await coordinator.evaluations.run();
}

const rows = async (jobId: JobId) =>
  (await coordinator.api.getJob(jobId)).checkpoints.map((each) => each.evaluation);

test('each verified checkpoint is evaluated once, over restarts, and its row has the metrics', async () => {
  const id = await train();
  await save(id, 10);
  // The coordinator dies between the commit of the checkpoint and that of its evaluation, and after it.
  await restart();
  const [first = id] = await evaluationsOf(id);
  await restart();
  expect(await evaluationsOf(id)).toEqual([first]);
  const job = await coordinator.api.getJob(first);
  expect(job).toMatchObject({
    name: 'train-eval-10',
    resumedFrom: { jobId: id, name: '/ckpt/checkpoint-10', step: 10 },
    spec: { command: ['eval', '{resume}'], priority: 40, preemptible: true },
  });
  expect(await rows(id)).toMatchObject([{ state: 'running', jobId: first, best: false }]);

  await evaluate(first, { eval_loss: 2, step: 10 });
  await save(id, 20);
  const [, second = id] = await evaluationsOf(id);
  await evaluate(second, { eval_loss: 3 });
  expect(await rows(id)).toMatchObject([
    { state: 'complete', metrics: { eval_loss: 2, step: 10 }, cause: null, best: true },
    { state: 'complete', metrics: { eval_loss: 3 }, best: false },
  ]);
  expect(await evaluationsOf(id)).toEqual([first, second]);
  const kinds = [...(memories.at(-1)?.events.values() ?? [])].map(({ kind }) => kind);
  expect(kinds.filter((kind) => kind === 'checkpoint.evaluated')).toHaveLength(2);
});

test('a job whose evaluation cannot be recorded keeps no other from its own, and is named', async () => {
  await coordinator.close();
  let broken: JobId | null = null;
  const memory = memories.at(-1) as Memory;
  const store = new MemoryStore(memory);
  const readJob: Store['readJob'] = (id) =>
    id === broken ? Promise.reject(new Error('its row is broken')) : store.readJob(id);
  coordinator = await startTestCoordinator({
    memory,
    store: () => Object.assign(Object.create(store) as Store, { readJob }),
  });
  const first = await train();
  const other = await submitJob(coordinator, 'other', JSON.stringify({ ...file, checkpoint: { dir: '/b' } }));
  await startJob(coordinator, other);
  await save(first, 10);
  const [ofFirst = first] = await evaluationsOf(first);
  broken = ofFirst;
  await expect(evaluate(ofFirst, { eval_loss: 2 })).rejects.toThrow(
    `a pass over ${first} has failed: its row is broken`,
  );
  await save(other, 10);
  await expect(coordinator.evaluations.run()).rejects.toThrow(first);
  const statesOf = (id: JobId) =>
    coordinator.state.evaluations.byJob.get(id)?.evaluations.map(({ state }) => state);
  expect([statesOf(first), statesOf(other)]).toEqual([['running'], ['running']]);
  broken = null;
  await coordinator.evaluations.run();
  expect(statesOf(first)).toEqual(['complete']);
});

test('an evaluation counts when the last metric of its output is here, and not when that is lost', async () => {
  const id = await train();
  await save(id, 10);
  await save(id, 20);
  const [first = id, second = id] = await evaluationsOf(id);
  const task = { jobId: first, attempt: 1, nodeRank: 0 };
  await evaluate(first, { eval_loss: 9 }, 0, {});
  await evaluate(second, { eval_loss: 8 }, 0, {});
  coordinator.clock.nowMs += 30 * 24 * 3_600_000;
  await coordinator.evaluations.run();
  expect(await rows(id)).toMatchObject([{ state: 'running' }, { state: 'running' }]);
  const last = { position: 7, atMs: coordinator.wallMs(), values: { eval_loss: 2 }, lossNotFinite: false };
  await coordinator.rowKeeping.rows.append(task, [last], 2 ** 20, coordinator.wallMs());
  await coordinator.rowKeeping.ended(task, 'complete');
  await coordinator.evaluations.run();
  expect((await rows(id))[0]).toMatchObject({ state: 'complete', metrics: { eval_loss: 2 } });
  await coordinator.loop.run(aCaller, (draft) => draft.removeNode(aNode('node-1').name));
  await coordinator.evaluations.run();
  expect((await rows(id))[1]).toMatchObject({ state: 'failed', cause: 'metrics_lost' });
});

test('an evaluation that fails leaves the training alone, and the row says why', async () => {
  const id = await train();
  await save(id, 10);
  await save(id, 20);
  await save(id, 30);
  const [first = id, second = id, third = id] = await evaluationsOf(id);
  await evaluate(first, { train_loss: 1 });
  await evaluate(second, {}, 1);
  await evaluate(second, {}, 1);
  await save(id, 30, { version: 'v2' });
  await evaluate(third, { eval_loss: 1 });
  const now = await rows(id);
  expect(now[0]).toMatchObject({ state: 'failed', cause: 'no_metric', metrics: { train_loss: 1 } });
  expect(now[1]).toMatchObject({ state: 'failed', cause: 'exit_code', metrics: {} });
  // That of the version that was saved over the other one's name.
  expect(now[2]).toMatchObject({ state: 'running' });
  const [, , replaced] = coordinator.state.evaluations.byJob.get(id)?.evaluations ?? [];
  expect(replaced).toMatchObject({ state: 'failed', cause: 'gone' });
  expect((await coordinator.api.getJob(id)).state).toBe('running');
});

test('the final checkpoint is evaluated after the end of its job, which may be removed by then', async () => {
  const id = await train({ evaluate: { command: ['eval', '{checkpoint}'], on: 'final' } });
  await save(id, 10);
  expect(await evaluationsOf(id)).toEqual([]);
  await finishJob(coordinator, id);
  await restart();
  const [only = id] = await evaluationsOf(id);
  await evaluate(only, { eval_loss: 1 });
  expect(await rows(id)).toMatchObject([{ state: 'complete', jobId: only, metrics: { eval_loss: 1 } }]);
});
