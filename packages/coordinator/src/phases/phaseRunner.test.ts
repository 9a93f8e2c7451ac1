/** Phases by the API, with attempts that are begun and ended by hand. */
import type { JobId } from '@muster/common/ids';
import type { TrainingValues } from '@muster/common/training';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { report } from '../commands/nodes.ts';
import { startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import { aCaller, aCheckpoint, aNode, anExit, aReport } from '../modelFixture.ts';
import { startJob, submitJob } from '../rpc/jobFixture.ts';
import { attemptSpec } from '../spec/phaseSpec.ts';
import { applyJobEvent } from '../state/applyJobEvent.ts';
import { Memory, MemoryStore } from '../store/memory/memoryStore.ts';
import type { Store } from '../store/store.ts';

let memory: Memory;
let coordinator: TestCoordinator;
beforeEach(async () => {
  memory = new Memory('test');
  coordinator = await startTestCoordinator({ memory });
});
afterEach(() => coordinator.close());

const file = {
  name: 'train',
  command: ['train', '--lr={lr}', '--until={phase_end}'],
  params: { mix: 'web' },
  retry: { on: ['exit_code'] },
  phases: [
    {
      name: 'broad',
      steps: 100,
      params: { lr: 0.1 },
      success: 'loss < 4 && eval_loss < 3',
      unmet: 'continue',
    },
    {
      name: 'cooldown',
      steps: 50,
      params: { lr: 0.01, mix: 'books' },
      success: 'step >= 150.0',
      extend: { steps: 25 },
    },
  ],
};

async function restart(): Promise<void> {
  await coordinator.close();
  coordinator = await startTestCoordinator({ memory });
}

/** One attempt that ends well, with what it has printed last. */
async function runTo(
  id: JobId,
  latest: TrainingValues,
  change: Parameters<typeof anExit>[0] = {},
): Promise<void> {
  await startJob(coordinator, id);
  await endAt(id, latest, change);
}

async function endAt(
  id: JobId,
  latest: TrainingValues,
  change: Parameters<typeof anExit>[0] = {},
): Promise<void> {
  const attempt = coordinator.state.jobs.get(id)?.lastAttempt ?? 0;
  const training = { framework: null, latest, totalSteps: null, etaMs: null, rows: 1, atMs: 0 };
  const task = { jobId: id, attempt, nodeRank: 0 };
  const ended = aReport(task, { state: 'ended', exit: anExit({ training, rowsEnd: 1, ...change }) });
  await coordinator.loop.run(aCaller, (draft, nowMs) => {
    const saved = { kind: 'checkpoint', attempt, nodeRank: 0, shared: true, afterStop: false } as const;
    const checkpoint = aCheckpoint(latest.step ?? 1, { metrics: latest });
    applyJobEvent(draft, id, { ...saved, checkpoint }, nowMs);
    return report(draft, aNode('node-1').name, [ended], () => null, nowMs);
  });
}

const shown = (id: JobId) => coordinator.api.getJob(id);
const kinds = () =>
  [...memory.events.values()].map(({ kind }) => kind).filter((kind) => kind.startsWith('phase.'));

test('the end of a phase is judged by what it has printed, over restarts, and once', async () => {
  const id = await submitJob(coordinator, 'train', JSON.stringify(file));
  expect((await shown(id)).phases).toMatchObject({
    unit: 'steps',
    index: 0,
    done: 0,
    total: 150,
    percent: 0,
  });
  await runTo(id, { step: 60, eval_loss: 2.5, train_loss: 5 }, { exitCode: 1 });
  // The coordinator dies between the end of the attempt and the verdict, and after it.
  await restart();
  await runTo(id, { step: 100, train_loss: 3 });
  await restart();
  await coordinator.phases.run();
  await restart();
  await coordinator.phases.run();
  // The eval loss is from the first attempt of the phase, the train loss from the second.
  expect((await shown(id)).phases).toMatchObject({
    index: 1,
    done: 100,
    phases: [
      { name: 'broad', state: 'ended', step: 100, verdict: 'met', values: { loss: 3, eval_loss: 2.5 } },
      { name: 'cooldown', state: 'current', start: 100, target: 50 },
    ],
  });
  expect(kinds()).toEqual(['phase.started', 'phase.ended']);
  await runTo(id, { step: 140 });
  await coordinator.phases.run();
  expect((await shown(id)).phases).toMatchObject({ index: 1, total: 175, done: 140 });
  await runTo(id, { step: 175 });
  await coordinator.phases.run();
  expect(await shown(id)).toMatchObject({ state: 'succeeded', phases: { done: 175, percent: 100 } });
  expect(kinds().slice(2)).toEqual(['phase.started', 'phase.extended', 'phase.ended']);
});

test('a job that cannot be judged keeps no other from its verdict, and is named', async () => {
  await coordinator.close();
  let broken: JobId | null = null;
  const store = new MemoryStore(memory);
  const readJob: Store['readJob'] = (id) =>
    id === broken ? Promise.reject(new Error('its row is broken')) : store.readJob(id);
  coordinator = await startTestCoordinator({
    memory,
    store: () => Object.assign(Object.create(store) as Store, { readJob }),
  });
  const first = await submitJob(coordinator, 'r1', JSON.stringify(file));
  const second = await submitJob(coordinator, 'r2', JSON.stringify(file));
  const indexOf = (id: JobId) => coordinator.state.jobs.get(id)?.phase?.index;
  broken = first;
  for (const id of [first, second]) await runTo(id, { step: 100, train_loss: 3 });
  await expect(coordinator.phases.run()).rejects.toThrow(
    `a pass over ${first} has failed: its row is broken`,
  );
  expect([indexOf(first), indexOf(second)]).toEqual([0, 1]);
  broken = null;
  await coordinator.phases.run();
  expect(indexOf(first)).toBe(1);
});

test('phases in tokens follow those of the output, also in a job that continues from a checkpoint', async () => {
  const phases = [
    { name: 'broad', tokens: 4_000 },
    { name: 'domain', tokens: 1_000, success: 'tokens >= 5000.0' },
  ];
  const { phases: _steps, ...rest } = file;
  const spec = { ...rest, command: ['train', '--tokens={phase_end}'], checkpoint: { dir: '/ckpt' }, phases };
  const id = await submitJob(coordinator, 'train', JSON.stringify(spec));
  await startJob(coordinator, id);
  const task = { jobId: id, attempt: 1, nodeRank: 0 };
  const training = { framework: null, latest: { step: 7, tokens: 1_000 }, totalSteps: null, etaMs: null };
  coordinator.taskStatus.record(aReport(task, { training: { ...training, rows: 1, atMs: 0 } }));
  expect((await shown(id)).phases).toMatchObject({
    unit: 'tokens',
    done: 1_000,
    total: 5_000,
    percent: 20,
    phases: [
      { state: 'current', step: 7, tokens: 1_000 },
      { state: 'waiting', tokens: null },
    ],
  });
  await endAt(id, { step: 30, tokens: 4_010 });
  expect((await shown(id)).phases).toMatchObject({ done: 4_000, phases: [{ step: 30, tokens: 4_010 }, {}] });
  await runTo(id, { step: 40, tokens: 5_000 });
  await coordinator.phases.run();
  expect(await shown(id)).toMatchObject({
    state: 'succeeded',
    phases: { phases: [{}, { verdict: 'met', values: { tokens: 5_000 }, tokens: 5_000 }] },
  });
  // Steps say nothing of where a count of tokens begins: what the checkpoint is known by does.
  const other = JSON.stringify({ ...spec, phases: [{ name: 'tuning', tokens: 500 }] });
  const next = await coordinator.api.requeueJob(id, 'tuning', { kind: 'newest' }, other);
  expect((await shown(next.jobId as JobId)).phases?.phases).toMatchObject([{ start: 5_000, target: 500 }]);
});

test('a metric that was not printed, or a loss that became NaN, meets nothing, and the job says so', async () => {
  const phases = [{ ...file.phases[0], unmet: 'stop' }];
  const id = await submitJob(coordinator, 'train', JSON.stringify({ ...file, phases }));
  await startJob(coordinator, id);
  await coordinator.loop.run(aCaller, (draft, nowMs) => {
    const sign = { kind: 'nan_loss', step: 9, lastGoodStep: 8, rank: 0, line: 1, text: 'loss nan' } as const;
    applyJobEvent(draft, id, { kind: 'trainingSign', attempt: 1, nodeRank: 0, sign }, nowMs);
    const training = {
      framework: null,
      latest: { train_loss: 1 },
      totalSteps: null,
      etaMs: null,
      rows: 1,
      atMs: 0,
    };
    const exit = anExit({ training, rowsEnd: 1 });
    applyJobEvent(draft, id, { kind: 'taskEnded', attempt: 1, nodeRank: 0, exit, failedAtMs: null }, nowMs);
  });
  await coordinator.phases.run();
  expect(await shown(id)).toMatchObject({
    state: 'failed',
    cause: {
      kind: 'phase_unmet',
      message:
        'phase broad did not meet loss < 4 && eval_loss < 3: loss unknown, for no output of the phase shows it, ' +
        'eval_loss unknown, for no output of the phase shows it',
    },
    phases: { phases: [{ verdict: 'unknown', values: {} }] },
  });
  // It runs again in its phase, with a criterion that can be met.
  const spec = {
    ...file,
    phases: [{ ...file.phases[0], success: undefined, unmet: undefined }, file.phases[1]],
  };
  const again = await coordinator.api.requeueJob(id, 'again', { kind: 'newest' }, JSON.stringify(spec));
  expect((await shown(again.jobId as JobId)).phases).toMatchObject({ index: 0, total: 150 });
});

test('a metric whose newest value is NaN meets nothing, whatever was printed before, and the job says so', async () => {
  const phases = [{ name: 'broad', steps: 100, success: '!(eval_loss > 3.0)' }];
  const id = await submitJob(coordinator, 'train', JSON.stringify({ ...file, phases }));
  await runTo(id, { step: 60, eval_loss: 2.5 }, { exitCode: 1 });
  const training = {
    framework: null,
    latest: { step: 100 },
    totalSteps: null,
    etaMs: null,
    rows: 1,
    atMs: 0,
  };
  await runTo(id, { step: 100 }, { training: { ...training, notFinite: ['eval_loss'] } });
  await coordinator.phases.run();
  expect(await shown(id)).toMatchObject({
    state: 'failed',
    cause: {
      message:
        'phase broad did not meet !(eval_loss > 3.0): eval_loss NaN, for its newest value is not a finite number',
    },
    phases: { phases: [{ verdict: 'unmet', values: {} }] },
  });
});

test('a job that runs another one again, or continues it, begins in the phase where that one was', async () => {
  const [broad, cooldown] = file.phases;
  const phases = [broad, { ...cooldown, success: 'loss < 1', extend: undefined }];
  const id = await submitJob(coordinator, 'train', JSON.stringify({ ...file, phases }));
  await runTo(id, { step: 100, train_loss: 3, eval_loss: 2 });
  await coordinator.phases.run();
  await runTo(id, { step: 150, train_loss: 2 });
  await coordinator.phases.run();
  expect((await shown(id)).cause?.message).toBe('phase cooldown did not meet loss < 1: loss 2');
  const easier = { ...file, checkpoint: { dir: '/elsewhere' }, phases: [broad, { ...cooldown, steps: 80 }] };
  const continued = { specJson: JSON.stringify(easier), requestId: 'continued', resumeFromJob: id };
  const { jobIds } = await coordinator.api.submit(continued);
  expect((await shown(jobIds[0] as JobId)).phases).toMatchObject({ index: 1, done: 100, total: 180 });
  const again = await coordinator.api.requeueJob(id, 'again', { kind: 'newest' });
  expect((await shown(again.jobId as JobId)).phases).toMatchObject({
    index: 1,
    phases: [
      { state: 'ended', verdict: 'met' },
      { state: 'current', start: 100 },
    ],
  });
});

test('while a verdict is awaited the job waits for that, and no attempt is planned', async () => {
  const id = await submitJob(coordinator, 'train', JSON.stringify(file));
  const runner = vi.spyOn(coordinator.phases, 'run').mockResolvedValue();
  await runTo(id, { step: 100 });
  const { state, pending, phases } = await shown(id);
  expect({ state, kind: pending?.kind, message: pending?.message }).toEqual({
    state: 'queued',
    kind: 'phase',
    message: 'the end of phase broad is being judged: loss < 4 && eval_loss < 3',
  });
  expect(phases).toMatchObject({ done: 100, phases: [{ state: 'judged', step: 100 }, { state: 'waiting' }] });
  runner.mockRestore();
  await coordinator.phases.run();
  expect((await shown(id)).phases).toMatchObject({ index: 1, phases: [{ verdict: 'unknown' }, {}] });
});

test('an attempt runs with the parameters of its phase', async () => {
  const id = await submitJob(
    coordinator,
    'train',
    JSON.stringify({ ...file, env: { MUSTER_PHASE: 'mine' } }),
  );
  await runTo(id, { step: 100 });
  await coordinator.phases.run();
  const job = coordinator.state.jobs.get(id);
  if (job === undefined) throw new Error('it has ended');
  expect(attemptSpec({ ...job, lrScale: 0.1 })).toMatchObject({
    phases: [],
    params: {
      mix: 'books',
      lr: 0.01,
      phase: 'cooldown',
      phase_index: 1,
      phase_steps: 50,
      phase_start: 100,
      phase_end: 150,
    },
    env: {
      MUSTER_PHASE: 'mine',
      MUSTER_PHASE_INDEX: '1',
      MUSTER_PHASES: '2',
      MUSTER_PHASE_STEPS: '50',
      MUSTER_PHASE_START: '100',
      MUSTER_PHASE_END: '150',
      MUSTER_PARAM_mix: 'books',
      MUSTER_PARAM_lr: '0.001',
    },
  });
});

test('each job of an array goes through the phases by itself', async () => {
  const array = { ...file, name: 'all-{array_index}', array: 2, env: { SEED: '{array_index}' } };
  await coordinator.api.submit({ specJson: JSON.stringify(array), requestId: 'array' });
  const ids = Array.from(coordinator.state.jobs.keys());
  expect(ids).toHaveLength(2);
  const [first, second] = ids as [JobId, JobId];
  await runTo(first, { step: 100, train_loss: 3, eval_loss: 2 });
  await coordinator.phases.run();
  const specs = [first, second].flatMap((id) => {
    const job = coordinator.state.jobs.get(id);
    return job === undefined ? [] : [attemptSpec(job).env];
  });
  expect(specs).toMatchObject([
    { SEED: '0', MUSTER_PHASE: 'cooldown' },
    { SEED: '1', MUSTER_PHASE: 'broad' },
  ]);
});

test('every criterion is checked before anything is stored', async () => {
  const phases = [
    { name: 'a', steps: 1, success: 'evl_loss < 3' },
    { name: 'b', steps: 1, success: 'step' },
  ];
  const submit = (fields: object) =>
    coordinator.api.submit({ specJson: JSON.stringify({ command: ['a'], ...fields }), requestId: 'x' });
  await expect(submit({ phases })).rejects.toMatchObject({
    code: 'invalid',
    problems: [
      { path: 'phases[0].success', message: 'column 1: unknown name "evl_loss"; did you mean "eval_loss"?' },
      { path: 'phases[1].success' },
    ],
  });
  expect((await coordinator.api.listJobs()).jobs).toEqual([]);
});

test('a phase is judged when the last metric of its output is here, however late that is', async () => {
  const phases = [{ name: 'broad', steps: 100, success: 'loss < 2' }];
  const id = await submitJob(coordinator, 'train', JSON.stringify({ ...file, phases }));
  await startJob(coordinator, id);
  const task = { jobId: id, attempt: 1, nodeRank: 0 };
  const row = (position: number, train_loss: number) => ({
    position,
    atMs: coordinator.wallMs(),
    values: { step: position, train_loss },
    lossNotFinite: false,
  });
  const { rows } = coordinator.rowKeeping;
  await rows.append(task, [row(90, 1)], 2 ** 20, coordinator.wallMs());
  // The agent could not read the output to its end in time.
  await endReported(id, { step: 90, train_loss: 1 });
  coordinator.clock.nowMs += 30 * 24 * 3_600_000;
  await coordinator.phases.run();
  expect(await shown(id)).toMatchObject({
    state: 'queued',
    pending: { message: expect.stringMatching(/; waits for the last metrics of attempt 1 from node-1,/) },
  });
  await rows.append(task, [row(100, 3)], 2 ** 20, coordinator.wallMs());
  await coordinator.rowKeeping.ended(task, 'complete');
  await coordinator.phases.run();
  expect(await shown(id)).toMatchObject({
    state: 'failed',
    cause: { message: 'phase broad did not meet loss < 2: loss 3' },
  });
});

test('a phase does not take a value of which the rest is lost, and says so', async () => {
  const phases = [{ name: 'broad', steps: 100, success: 'loss < 2' }];
  const id = await submitJob(coordinator, 'train', JSON.stringify({ ...file, phases }));
  await startJob(coordinator, id);
  await endReported(id, { step: 90, train_loss: 1 });
  await coordinator.loop.run(aCaller, (draft) => draft.removeNode(aNode('node-1').name));
  await coordinator.phases.run();
  const lost = 'metrics of attempt 1 are lost: node-1 was removed before it had sent them';
  expect(await shown(id)).toMatchObject({
    state: 'failed',
    cause: { message: `phase broad did not meet loss < 2: loss unknown, for ${lost}` },
    phases: { phases: [{ verdict: 'unknown', values: {} }] },
  });
});

/** The end of a task whose agent had not read its output to the end. */
async function endReported(id: JobId, latest: TrainingValues): Promise<void> {
  await coordinator.loop.run(aCaller, (draft, nowMs) => {
    const training = { framework: null, latest, totalSteps: null, etaMs: null, rows: 1, atMs: 0 };
    const exit = anExit({ training, exitCode: 0 });
    applyJobEvent(draft, id, { kind: 'taskEnded', attempt: 1, nodeRank: 0, exit, failedAtMs: null }, nowMs);
  });
}
