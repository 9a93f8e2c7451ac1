import type { Gpu } from '@muster/common/hardware';
import type { NodeView } from '@muster/common/views';
import { expect, test } from 'vitest';
import { aCondition, aGpu, aNode, submittedAtMs, wire } from '../testing/fakeCoordinator.ts';
import { run } from '../testing/testContext.ts';

function withGpus(gpus: readonly Gpu[], given: Partial<NodeView> = {}): NodeView {
  return aNode({ ...given, inventory: { ...aNode().inventory, gpus, ...given.inventory } });
}

const busy = withGpus([aGpu(0), aGpu(1)], {
  gpuUses: [{ uuid: 'GPU-1', jobId: 'job_aaaaaaaaaaaa', attempt: 1 }],
});
const drained = aNode({
  name: 'node-3',
  drained: true,
  conditions: [aCondition({ kind: 'clock_skew', gpuUuid: null, action: 'drain_node' })],
});

test('node drain tells the coordinator, what runs there and how to take it back', async () => {
  const drain = { reason: 'new disk', sinceMs: submittedAtMs, deadlineMs: submittedAtMs + 660_000 };
  const DrainNode = () => wire.node({ ...busy, drained: true, drain });
  const { stdout, requests } = await run(
    ['node', 'drain', 'node-1', '--deadline', '10m', '--reason', 'new disk'],
    { DrainNode },
  );
  expect(requests.at(-1)).toMatchObject({
    request: { node: 'node-1', reason: 'new disk', deadlineMs: 600_000 },
  });
  expect(stdout).toBe(
    'node-1 gets no new work; 1 GPU job is on it and has 10 min to save and go elsewhere. ' +
      'Take it back with: muster node undrain node-1\n',
  );
  const slow = await run(['node', 'drain', 'node-1'], { DrainNode });
  expect(slow.requests.at(-1)?.request).not.toHaveProperty('deadlineMs', expect.anything());
  expect(slow.stdout).toContain('1 GPU job is on it and runs on until it ends.');
  const shown = await run(['node', 'node-1'], { GetNode: DrainNode });
  expect(shown.stdout).toMatch(/Drained +new disk, 1 min ago, jobs are gone in \d+ min/);
});

test('node undrain says when conditions keep the node drained all the same', async () => {
  const free = await run(['node', 'undrain', 'node-1'], { UndrainNode: () => wire.node(busy) });
  expect(free.stdout).toBe('node-1 is not drained any more.\n');
  const still = await run(['node', 'undrain', 'node-3'], { UndrainNode: () => wire.node(drained) });
  expect(still.stdout).toBe('node-3 is not drained any more, but its conditions still keep work from it.\n');
});
