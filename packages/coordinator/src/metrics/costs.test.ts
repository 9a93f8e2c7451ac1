import { expect, test } from 'vitest';
import type { Job } from '../model.ts';
import { aJob, aNode, anInventory, nodeNameOf, someGpus } from '../modelFixture.ts';
import type { GpuPrice } from '../options.ts';
import { runningJob } from '../telemetry/telemetryFixture.ts';
import { Costs, priceOfGpu } from './costs.ts';

const prices: readonly GpuPrice[] = [
  { of: 'type', name: 'A100', usdPerHour: 3.5 },
  { of: 'type', name: 'a100-sxm4-80gb', usdPerHour: 5 },
  { of: 'node', name: 'node-2', usdPerHour: 1 },
];

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
