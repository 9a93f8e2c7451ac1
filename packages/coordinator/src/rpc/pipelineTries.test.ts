/** How steps are tried: with the checkpoints of the try before, within their time, and once nothing is in their way. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import { pipelineActions } from './pipelineFixture.ts';

let coordinator: TestCoordinator;
beforeEach(async () => {
  coordinator = await startTestCoordinator();
});
afterEach(() => coordinator.close());

const { start, look, states, endStepBy } = pipelineActions(() => coordinator);

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
