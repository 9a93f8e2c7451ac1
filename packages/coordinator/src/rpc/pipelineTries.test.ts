/** How steps are tried: with the checkpoints of the try before, within their time, and once nothing is in their way. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import { pipelineActions } from './pipelineFixture.ts';

let coordinator: TestCoordinator;
beforeEach(async () => {
  coordinator = await startTestCoordinator();
});
afterEach(() => coordinator.close());

const { start, look, states, jobOf, endStepBy } = pipelineActions(() => coordinator);

test('a stop lets steps under finally that run already end by themselves', async () => {
  const id = await start({
    steps: { train: { run: 'x' } },
    finally: { tidy: { run: 'x' }, tell: { run: 'x', after: 'tidy' } },
  });
  await endStepBy(id, 'train');
  expect(await states(id)).toEqual(['train.0 succeeded', 'tidy.0 running', 'tell.0 waiting']);
  await coordinator.api.stopPipeline(id, '');
  expect(await states(id)).toEqual(['train.0 succeeded', 'tidy.0 running', 'tell.0 waiting']);
  await endStepBy(id, 'tidy');
  await endStepBy(id, 'tell');
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
