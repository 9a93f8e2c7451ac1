/** The metrics of a job: every row of its output, once, whatever is restarted meanwhile. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test, vi } from 'vitest';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { tempDir } from '../support/services.ts';

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster({ gpus: 0 });
});

/** Prints the steps from the one to before the other; before each of these it waits for a file of that name. */
function program(directory: string, from: number, to: number, pauses: readonly number[] = []): string[] {
  const text = `
    const { existsSync } = require('node:fs');
    const settle = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
    (async () => {
      for (let step = ${from}; step < ${to}; step += 1) {
        while (${JSON.stringify(pauses)}.includes(step) && !existsSync(${JSON.stringify(directory)} + '/' + step)) await settle(20);
        const loss = step === 7 ? NaN : 1 / (step + 1);
        console.log(JSON.stringify({ step, loss, lr: 0.001, grad_norm: 2 }).replace('null', 'NaN'));
      }
    })();`;
  return [process.execPath, '-e', text];
}

const stepsOf = async (jobId: string, name: 'train_loss' | 'grad_norm' = 'train_loss') => {
  const { series } = await cluster.api.queryMetrics({ jobId, name });
  return series.flatMap(({ points }) => points.map(({ step }) => step));
};
const range = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => from + index);

test('3,000 steps are there once each, over restarts of the coordinator and of the agent', async () => {
  const { path: directory } = tempDir('steps');
  const goOn = (step: number) => writeFileSync(join(directory, String(step)), '');
  const jobId = await cluster.submit({ command: program(directory, 0, 3_000, [700, 1_400, 2_100, 2_800]) });
  const arrived = (steps: number) => vi.waitFor(async () => expect(await stepsOf(jobId)).toHaveLength(steps));
  await arrived(700);
  await cluster.coordinator.kill();
  goOn(700);
  await cluster.coordinator.start();
  await arrived(1_400);
  await cluster.agent(0).kill();
  goOn(1_400);
  await cluster.agent(0).start();
  await arrived(2_100);
  await Promise.all([cluster.coordinator.kill(), cluster.agent(0).kill()]);
  goOn(2_100);
  await cluster.coordinator.start();
  await cluster.agent(0).start();
  await arrived(2_800);
  goOn(2_800);
  await cluster.untilEnded(jobId);
  await arrived(3_000);
  expect(await stepsOf(jobId)).toEqual(range(0, 3_000));
  expect(await stepsOf(jobId, 'grad_norm')).toEqual(range(0, 3_000));
  const { metrics, thinned } = await cluster.api.summarizeTraining({ jobId });
  expect(thinned).toBe(false);
  expect(metrics[0]).toMatchObject({
    name: 'train_loss',
    rows: 3_000,
    last: 1 / 3_000,
    bestStep: 2_999,
    notFinite: 1,
    notFiniteStep: 7,
  });
  const { series } = await cluster.api.queryMetrics({ jobId, name: 'train_loss' });
  const times = series[0]?.points.map(({ atMs }) => atMs) ?? [];
  expect(
    times.toSorted((a, b) => a - b),
    'rows are in the order of their times',
  ).toEqual(times);
  // A stream of steps tells what the question does, each step once, until the last of them is closed.
  const shape = { jobId, name: 'grad_norm', stepMs: 1_000, startTime: '-1h', aggregation: 'max' } as const;
  const streamed: (number | null)[] = [];
  for await (const update of cluster.api.watchMetrics({ ...shape, follow: true })) {
    const points = update.series.flatMap((each) => each.points);
    streamed.push(...points.map(({ step = null }) => step));
    if (points.some(({ step }) => step === 2_999)) break;
  }
  const asked = await cluster.api.queryMetrics(shape);
  expect(streamed).toEqual(asked.series.flatMap(({ points }) => points.map(({ step = null }) => step)));
});

test('a run that is over before anybody has looked has every point', async () => {
  const { id } = await cluster.run({ command: program('', 0, 24) });
  await vi.waitFor(async () => expect(await stepsOf(id)).toEqual(range(0, 24)));
});

test('rows that come faster than they are taken keep ends, extremes and NaN, and the loss of the others is told', async () => {
  const count = 240_000;
  const middle = 150_000;
  const special = {
    [middle]: { loss: 0.01 },
    [middle + 1]: { loss: 'NaN' },
    [middle + 2]: { eval_loss: 0.1 },
  };
  const text = `
    const special = ${JSON.stringify({ ...special, [middle + 3]: { grad_norm: 999 } })};
    const startedMs = Date.now();
    let step = 0;
    const print = () => {
      const due = Math.min(${count}, (Date.now() - startedMs) * 30);
      const lines = [];
      for (; step < due; step += 1) {
        const usual = { step, loss: 1 + (step % 100) / 1000, grad_norm: 1, ...(step % 1000 === 0 ? { eval_loss: 0.5 } : {}) };
        lines.push(JSON.stringify({ ...usual, ...special[step] }).replace('"NaN"', 'NaN') + '\\n');
      }
      process.stdout.write(lines.join(''), () => step < ${count} && setTimeout(print, 20));
    };
    print();`;
  const jobId = await cluster.submit({ command: [process.execPath, '-e', text] });
  await cluster.untilEnded(jobId);
  const losses = await vi.waitFor(async () => {
    const { metrics } = await cluster.api.summarizeTraining({ jobId });
    expect(metrics[0]?.lastStep).toBe(count - 1);
    return metrics;
  });
  const of = (name: string) => losses.find((each) => each.name === name);
  const loss = of('train_loss');
  expect(loss).toMatchObject({ best: 0.01, bestStep: middle, notFinite: 1, notFiniteStep: middle + 1 });
  expect(loss).toMatchObject({ last: 1.099, firstStep: 0, greatest: 1.099, greatestStep: 99 });
  expect(loss?.omitted).toBeGreaterThan(0);
  expect((loss?.rows ?? 0) + (loss?.omitted ?? 0)).toBe(count);
  expect(of('eval_loss')).toMatchObject({ best: 0.1, bestStep: middle + 2 });
  expect(of('grad_norm')).toMatchObject({ greatest: 999, greatestStep: middle + 3 });
  const { stderr } = await cluster.muster(['metrics', jobId]);
  expect(stderr).toContain(`${loss?.omitted} of ${count} (train_loss)`);
});
