/** The checks of a pipeline's steps, of which there may be thousands. */
import { readPipeline } from '@muster/pipelines/file/pipelineFile';
import { expect, test } from 'vitest';
import { requireSteps } from './stepChecks.ts';

const items = Array.from({ length: 1_000 }, (_, index) => index);

/** A pipeline with so many steps, each of which runs for each of a thousand items. */
function check(steps: number): Promise<void> {
  const file = Object.fromEntries(
    Array.from({ length: steps }, (_, index) => [`s${index}`, { for_each: items, run: 'x' }]),
  );
  const read = readPipeline({ name: 'wide', steps: file });
  if (!read.ok) throw new Error(read.findings[0]?.message);
  const agents = { heartbeatIntervalMs: 1_000 };
  return requireSteps(read.pipeline, {}, { agents, vault: { require: () => Promise.resolve() } });
}

test('other work gets its turn while many steps are checked', async () => {
  let turns = 0;
  let isDone = false;
  const work = check(1).finally(() => {
    isDone = true;
  });
  const turn = (): void => {
    turns += 1;
    if (!isDone) setImmediate(turn);
  };
  setImmediate(turn);
  await work;
  expect(turns).toBeGreaterThanOrEqual(10);
});

test('a run has at most ten thousand instances of steps', async () => {
  await expect(check(11)).rejects.toThrow(
    'steps: the run would start steps 11000 times; expected at most 10000',
  );
});
