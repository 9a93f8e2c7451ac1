import { expect, test } from 'vitest';
import type { Job } from '../model.ts';
import { aJob, aNode, anInventory, aTask, nodeNameOf, someGpus } from '../modelFixture.ts';
import type { GpuPrice } from '../options.ts';
import { costOf, priceOfGpu } from '../prices.ts';
import { runningJob } from '../telemetry/telemetryFixture.ts';
import { Costs } from './costs.ts';

const prices: readonly GpuPrice[] = [
  { of: 'type', name: 'A100', usdPerHour: 3.5 },
  { of: 'type', name: 'a100-sxm4-80gb', usdPerHour: 5 },
  { of: 'node', name: 'node-2', usdPerHour: 1 },
];

test('a job costs the time for which its attempts held GPUs, and nothing is said where that is not known', () => {
  const gpus = someGpus('node-1', 2).map((gpu) => ({ ...gpu, model: 'NVIDIA A100-PCIE-40GB' }));
  const node = aNode('node-1', { inventory: anInventory({ gpus }) });
  const held = (name: string, allocatedAtMs: number, endedAtMs: number | null) => ({
    allocatedAtMs,
    endedAtMs,
    tasks: [aTask(0, { node: nodeNameOf(name), gpuUuids: gpus.map(({ uuid }) => uuid) })],
  });
  const nodes = new Map([[node.name, node]]);
  const [first, second] = [held('node-1', 0, 3_600_000), held('node-1', 7_200_000, null)];
  expect(costOf([first, second], nodes, prices, 9_000_000)).toBe(10.5);
  expect(costOf([], nodes, prices, 0)).toBe(0);
  expect(costOf([first], nodes, [], 0)).toBeNull();
  expect(costOf([first, held('gone', 0, 1)], nodes, prices, 0), 'its GPUs are not known').toBeNull();
  expect(costOf([held('node-2', 0, 3_600_000)], nodes, prices, 0), 'the node has a price').toBe(2);
});

test('a node has its own price, and of types the most exact one counts', () => {
  expect(priceOfGpu(nodeNameOf('node-1'), 'NVIDIA A100-SXM4-80GB', prices)).toBe(5);
  expect(priceOfGpu(nodeNameOf('node-1'), 'NVIDIA A100-PCIE-40GB', prices)).toBe(3.5);
  expect(priceOfGpu(nodeNameOf('node-1'), 'Tesla T4', prices)).toBeNull();
  expect(priceOfGpu(nodeNameOf('node-2'), 'NVIDIA A100-SXM4-80GB', prices)).toBe(1);
});

test('GPUs cost while they are held, from when this process began, and never less than before', () => {
  let nowMs = 0;
  const gpus = (name: string) => someGpus(name, 2).map((gpu) => ({ ...gpu, model: 'NVIDIA A100-PCIE-40GB' }));
  const nodes = new Map(
    ['node-1', 'node-2'].map((name) => {
      const node = aNode(name, { inventory: anInventory({ gpus: gpus(name) }) });
      return [node.name, node];
    }),
  );
  const queued = aJob(2);
  const jobs = new Map<Job['id'], Job>([runningJob, queued].map((job) => [job.id, job]));
  const costs = new Costs({ state: { jobs, nodes }, prices, monotonicMs: () => nowMs });
  const { project } = runningJob.spec;
  nowMs = 1_800_000;
  expect([...costs.byProject()]).toEqual([[project, 2.25]]);
  expect([...costs.byProject()]).toEqual([[project, 2.25]]);
  nowMs = 3_600_000;
  // What follows changes nothing of its GPUs.
  costs.committed([{ ...runningJob, failedStarts: 1 }]);
  costs.committed([{ ...runningJob, state: { kind: 'succeeded', endedAtMs: 0 } }]);
  nowMs = 9_000_000;
  expect([...costs.byProject()]).toEqual([[project, 4.5]]);
});
