/** How steps are tried: with the checkpoints of the try before, within their time, and once nothing is in their way. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import { aCaller, aCheckpoint } from '../modelFixture.ts';
import { applyJobEvent } from '../state/applyJobEvent.ts';
import { startJob, submitJob } from './jobFixture.ts';
import { pipelineActions } from './pipelineFixture.ts';

let coordinator: TestCoordinator;
beforeEach(async () => {
  coordinator = await startTestCoordinator();
});
afterEach(() => coordinator.close());

const { start, look, states, jobOf, endStepBy } = pipelineActions(() => coordinator);

const savingJob = { command: 'train', checkpoint: { dir: '/checkpoints/v' } };

/** The job of the step runs, and has saved. */
async function save(id: string, name: string, step: number): Promise<string> {
  const jobId = await jobOf(id, name);
  await startJob(coordinator, jobId);
  const of = { kind: 'checkpoint', attempt: 1, nodeRank: 0, shared: true, afterStop: false } as const;
  const saved = { ...of, checkpoint: aCheckpoint(step) };
  await coordinator.loop.run(aCaller, (draft, nowMs) => applyJobEvent(draft, jobId, saved, nowMs));
  return jobId;
}

test('each try of a step, and that of a rerun, continues from the checkpoints of the try before', async () => {
  const id = await start({ steps: { train: { job: savingJob, retries: { max: 1 } } } });
  const first = await save(id, 'train', 100);
  await endStepBy(id, 'train', { exitCode: 1 });
  const second = await jobOf(id, 'train');
  expect(second).not.toBe(first);
  expect(coordinator.state.jobs.get(second)).toMatchObject({
    resumedFrom: { jobId: first, step: 100 },
    checkpointJobId: first,
    checkpoints: [{ step: 100, attempt: 0 }],
  });
  await endStepBy(id, 'train', { exitCode: 1 });
  expect(await look(id)).toMatchObject({ state: 'failed' });
  const again = await coordinator.api.rerunPipeline({ run: id, requestId: 'again' });
  const third = await jobOf(again.id, 'train');
  expect(coordinator.state.jobs.get(third)).toMatchObject({
    resumedFrom: { jobId: second, step: 100 },
    checkpointJobId: first,
  });
  // What fails there is found by the rerun of the rerun.
  await endStepBy(again.id, 'train', { exitCode: 1 });
  await endStepBy(again.id, 'train', { exitCode: 1 });
  const last = await coordinator.api.rerunPipeline({ run: again.id, requestId: 'once-more' });
  const fifth = await jobOf(last.id, 'train');
  expect(coordinator.state.jobs.get(fifth)).toMatchObject({ checkpointJobId: first });
});

test('a step that has failed before it has saved may use its directory again', async () => {
  const id = await start({ steps: { train: { job: savingJob, retries: { max: 1 } } } });
  const first = await jobOf(id, 'train');
  await endStepBy(id, 'train', { exitCode: 1 });
  const second = await jobOf(id, 'train');
  expect(coordinator.state.jobs.get(second)).toMatchObject({ resumedFrom: null, lineage: [first] });
});

test('a stop lets steps under finally that run already end by themselves', async () => {
  const id = await start({
    steps: { train: { run: 'x' } },
    finally: { tidy: { run: 'x' }, report: { run: 'x', after: 'tidy' } },
  });
  await endStepBy(id, 'train');
  expect(await states(id)).toEqual(['train.0 succeeded', 'tidy.0 running', 'report.0 waiting']);
  await coordinator.api.stopPipeline(id, '');
  expect(await states(id)).toEqual(['train.0 succeeded', 'tidy.0 running', 'report.0 waiting']);
  await endStepBy(id, 'tidy');
  await endStepBy(id, 'report');
  expect(await look(id)).toMatchObject({ state: 'stopped', steps: [{}, {}, { state: 'succeeded' }] });
});

test('a change of the wall clock makes the end of a step neither early nor late', async () => {
  const id = await start({ steps: { train: { run: 'x', timeout: '1h' } } });
  const jobId = await jobOf(id, 'train');
  const { clock } = coordinator;
  const wallMs = clock.wallMs.bind(clock);
  clock.wallMs = () => wallMs() + 7_200_000;
  expect((await look(id)).steps[0]?.state).toBe('running');
  clock.wallMs = () => wallMs() - 7_200_000;
  clock.nowMs += 3_600_000;
  await look(id);
  expect((await coordinator.api.getJob(jobId)).state).toBe('cancelled');
});

test('a step whose directory is in use waits until it is free, and burns no try', async () => {
  const other = await submitJob(
    coordinator,
    'other',
    JSON.stringify({ name: 'other', ...savingJob, command: ['x'] }),
  );
  const id = await start({ steps: { train: { job: savingJob, retries: { max: 2 } } } });
  const waiting = { state: 'waiting', tries: 0, jobId: null };
  const reason = expect.stringMatching(
    /^it cannot be started yet: .* saves its checkpoints in \/checkpoints\/v/,
  );
  expect((await look(id)).steps).toMatchObject([{ ...waiting, reason }]);
  await coordinator.api.stopJobs([other]);
  coordinator.clock.nowMs += 10_000;
  expect((await look(id)).steps).toMatchObject([{ state: 'running', tries: 1, reason: null }]);
});

test('what cannot be started for the time of its step has failed, and a stop ends the wait', async () => {
  await submitJob(coordinator, 'holder', JSON.stringify({ name: 'holder', ...savingJob, command: ['x'] }));
  const timed = await start({ steps: { train: { job: savingJob, timeout: '1h' } } });
  const patient = await start({ steps: { train: { job: savingJob } } });
  const stopped = await start({ steps: { train: { job: savingJob } } });
  for (const id of [timed, patient, stopped]) expect(await states(id)).toEqual(['train.0 waiting']);
  await coordinator.api.stopPipeline(stopped, '');
  expect(await look(stopped)).toMatchObject({ state: 'stopped', steps: [{ state: 'blocked' }] });
  coordinator.clock.nowMs += 3_600_000;
  expect(await look(timed)).toMatchObject({
    state: 'failed',
    reason: expect.stringMatching(/^train has failed: it could not be started in time: /),
  });
  expect(await states(patient)).toEqual(['train.0 waiting']);
});
