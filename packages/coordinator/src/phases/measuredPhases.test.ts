/** Phases whose criterion depends on what evaluations of their checkpoints measure, with jobs that are begun and ended by hand. */
import type { JobId } from '@muster/common/ids';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { report } from '../commands/nodes.ts';
import { startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import { aCaller, aCheckpoint, aNode, anExit, aReport } from '../modelFixture.ts';
import { startJob, submitJob } from '../rpc/jobFixture.ts';
import { applyJobEvent } from '../state/applyJobEvent.ts';
import { Memory } from '../store/memory/memoryStore.ts';
import { judgePhase } from './phaseConditions.ts';

let memory: Memory;
let coordinator: TestCoordinator;
beforeEach(async () => {
  memory = new Memory('test');
  coordinator = await startTestCoordinator({ memory });
});
afterEach(() => coordinator.close());

const file = {
  name: 'train',
  command: ['train'],
  checkpoint: { dir: '/ckpt' },
  evaluate: { command: ['eval', '{checkpoint}'], every: 1_000, metric: { name: 'eval_loss' } },
  phases: [
    { name: 'broad', steps: 100, success: 'eval_loss < 3.0 && step >= 100.0', extend: { steps: 50 } },
    { name: 'cooldown', steps: 10 },
  ],
};

let submitted = 0;
const train = (change: object = {}) =>
  submitJob(coordinator, `train-${submitted++}`, JSON.stringify({ ...file, ...change }));

async function restart(): Promise<void> {
  await coordinator.close();
  coordinator = await startTestCoordinator({ memory });
}

/** One attempt that ends well. Its own evaluation loss is far better than what is measured afterwards. */
async function runTo(id: JobId, step: number, saves: readonly number[] = [step]): Promise<void> {
  await startJob(coordinator, id);
  const attempt = coordinator.state.jobs.get(id)?.lastAttempt ?? 0;
  await coordinator.loop.run(aCaller, (draft, nowMs) => {
    const saved = { kind: 'checkpoint', attempt, nodeRank: 0, shared: true, afterStop: false } as const;
    for (const each of saves) applyJobEvent(draft, id, { ...saved, checkpoint: aCheckpoint(each) }, nowMs);
  });
  await end(id, { step, eval_loss: 0.1 });
  await coordinator.phases.run();
}

function end(jobId: JobId, latest: object, exitCode = 0): Promise<void> {
  const training = { framework: null, latest, totalSteps: null, etaMs: null, rows: 1, atMs: 0 };
  const task = { jobId, attempt: coordinator.state.jobs.get(jobId)?.lastAttempt ?? 0, nodeRank: 0 };
  const ended = aReport(task, { state: 'ended', exit: anExit({ exitCode, training, rowsEnd: 1 }) });
  return coordinator.loop.run(aCaller, (draft, nowMs) =>
    report(draft, aNode('node-1').name, [ended], () => null, nowMs),
  );
}

async function evaluationsOf(jobId: JobId): Promise<readonly JobId[]> {
  await coordinator.evaluations.run();
  const { jobs } = await coordinator.api.listJobs({ label: `muster.evaluates=${jobId}` });
  return jobs.map(({ id }) => id as JobId).reverse();
}

async function evaluate(jobId: JobId, latest: object, exitCode = 0): Promise<void> {
  await startJob(coordinator, jobId);
  await end(jobId, latest, exitCode);
  await coordinator.evaluations.run();
  await coordinator.phases.run();
}

const shown = (id: JobId) => coordinator.api.getJob(id);

test('the last checkpoint of a phase is evaluated and judged once, over restarts, and not by what the output shows', async () => {
  const id = await train();
  await runTo(id, 100, [60, 100]);
  await restart();
  await coordinator.phases.run();
  const [first = id, ...others] = await evaluationsOf(id);
  expect(others).toEqual([]);
  await restart();
  await coordinator.phases.run();
  expect(await shown(first)).toMatchObject({ name: 'train-eval-100' });
  expect((await shown(id)).phases).toMatchObject({ index: 0, phases: [{ state: 'judged' }, {}] });
  const { details, nextSteps } = await coordinator.api.explainJob(id);
  expect(details).toContain(`the criterion of its phase needs the evaluation of checkpoint-100: ${first}`);
  expect(nextSteps).toEqual([`see why that takes so long: muster explain ${first}`]);

  await evaluate(first, { eval_loss: 3.5 });
  expect((await shown(id)).phases).toMatchObject({
    index: 0,
    phases: [{ state: 'current', extensions: 1 }, {}],
  });
  await runTo(id, 150);
  const [, second = id] = await evaluationsOf(id);
  await evaluate(second, { eval_loss: 2.5, step: 3 });
  expect(await evaluationsOf(id)).toEqual([first, second]);
  expect((await shown(id)).phases).toMatchObject({
    index: 1,
    phases: [{ verdict: 'met', values: { eval_loss: 2.5, step: 150 }, checkpoint: { step: 150 } }, {}],
  });
});

test.each<[string, object, number]>([
  ['that has failed', { eval_loss: 1 }, 1],
  ['that has shown no number', { train_loss: 1 }, 0],
])('an evaluation %s meets nothing, and the job says so', async (_what, latest, exitCode) => {
  const [phase] = file.phases;
  const id = await train({ phases: [{ ...phase, extend: undefined, success: 'eval_loss < 3.0' }] });
  await runTo(id, 100);
  const [only = id] = await evaluationsOf(id);
  await evaluate(only, latest, exitCode);
  if (exitCode !== 0) await evaluate(only, latest, exitCode);
  const message =
    'phase broad did not meet eval_loss < 3.0: eval_loss unknown, for no evaluation of its last checkpoint shows it';
  expect(await shown(id)).toMatchObject({ state: 'failed', cause: { kind: 'phase_unmet', message } });
});

test('a job that continues one whose evaluation has failed is judged by the same checkpoint, though it saves nothing', async () => {
  const [phase] = file.phases;
  const phases = [{ ...phase, extend: undefined, success: 'eval_loss < 3.0' }];
  const id = await train({ phases });
  await runTo(id, 100);
  const [failed = id] = await evaluationsOf(id);
  await coordinator.api.stopJobs([failed]);
  await coordinator.evaluations.run();
  await coordinator.phases.run();
  expect(await shown(id)).toMatchObject({ state: 'failed', cause: { kind: 'phase_unmet' } });
  const again = (await coordinator.api.requeueJob(id, 'again', { kind: 'newest' })).jobId as JobId;
  await runTo(again, 100, []);
  const [only = id] = await evaluationsOf(again);
  expect(await shown(only)).toMatchObject({ name: 'train-eval-100' });
  await evaluate(only, { eval_loss: 2 });
  expect(await shown(again)).toMatchObject({ state: 'succeeded', phases: { phases: [{ verdict: 'met' }] } });
});

test('nothing is waited for where a phase has saved nothing, or its criterion depends on no evaluation', async () => {
  const unsaved = await train();
  await runTo(unsaved, 100, []);
  expect((await shown(unsaved)).phases).toMatchObject({ phases: [{ extensions: 1 }, {}] });
  const [phase, ...rest] = file.phases;
  const printed = await train({
    checkpoint: { dir: '/other' },
    phases: [{ ...phase, success: 'step >= 100.0' }, ...rest],
  });
  await runTo(printed, 100);
  expect((await shown(printed)).phases).toMatchObject({ index: 1 });
  expect(await evaluationsOf(printed)).toEqual([]);
});

test('a job that is stopped while it waits is no longer judged', async () => {
  const id = await train();
  await runTo(id, 100);
  const [only = id] = await evaluationsOf(id);
  await coordinator.api.stopJobs([id]);
  await evaluate(only, { eval_loss: 1 });
  expect(await shown(id)).toMatchObject({ state: 'cancelled', phases: { index: 0 } });
});

test.each<[string, number | null, string, object]>([
  ['eval_loss < 3.0', 2, 'met', { eval_loss: 2 }],
  ['eval_loss < 3.0', 4, 'unmet', { eval_loss: 4 }],
  ['eval_loss < 3.0 || step > 5.0', null, 'met', { eval_loss: null, step: 9 }],
  ['!(eval_loss > 3.0)', null, 'unknown', { eval_loss: null }],
  ['loss < 3.0', 9, 'met', { loss: 1 }],
])('%s with a measured %s is %s', async (success, value, verdict, values) => {
  const training = {
    framework: null,
    latest: { eval_loss: 1, train_loss: 1, step: 9 },
    totalSteps: null,
    etaMs: null,
    rows: 1,
    atMs: 0,
  };
  const attempts = [{ signs: [], tasks: [{ exit: anExit({ training }) }] }];
  const judged = await judgePhase(success, attempts as never, { name: 'eval_loss', value });
  expect(judged).toEqual({ verdict, values, notFinite: [] });
});
