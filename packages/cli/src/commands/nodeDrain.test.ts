import type { Gpu } from '@muster/common/hardware';
import type { JobId } from '@muster/common/ids';
import type { NodeTask, NodeView } from '@muster/common/views';
import { expect, test } from 'vitest';
import { aCluster, aCondition, aGpu, aNode, submittedAtMs, wire } from '../testing/fakeCoordinator.ts';
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

const aTask = (jobId: string, given: Partial<NodeTask> = {}): NodeTask => ({
  task: { jobId: jobId as JobId, attempt: 1, nodeRank: 0 },
  name: 'llama',
  gpus: 2,
  cpus: 8,
  stopAtMs: null,
  stopping: false,
  ...given,
});

test('node drain tells the coordinator, and names every job there with the time when it is stopped', async () => {
  const drain = { reason: 'new disk', sinceMs: submittedAtMs, deadlineMs: submittedAtMs + 660_000 };
  const tasks = [
    aTask('job_aaaaaaaaaaaa', { stopAtMs: submittedAtMs + 600_000 }),
    aTask('job_bbbbbbbbbbbb', { name: 'cpu-only', gpus: 0, stopAtMs: submittedAtMs - 5_000 }),
    aTask('job_cccccccccccc', { stopAtMs: submittedAtMs + 1, stopping: true }),
  ];
  const DrainNode = () => wire.node({ ...busy, drained: true, drain, tasks });
  const { stdout, stderr, requests } = await run(
    ['node', 'drain', 'node-1', '--deadline', '10m', '--reason', 'new disk'],
    { DrainNode },
  );
  expect(requests.at(-1)).toMatchObject({
    request: { node: 'node-1', reason: 'new disk', deadlineMs: 600_000 },
  });
  expect(stdout.replace(/in \d+ min( \d+ s)?/, 'in 9 min')).toBe(
    [
      'node-1 is drained: it gets no new work. 3 jobs will be stopped.',
      'JOB               NAME      GPUS  STOPS',
      'job_aaaaaaaaaaaa  llama        2  in 9 min',
      'job_bbbbbbbbbbbb  cpu-only     0  now',
      'job_cccccccccccc  llama        2  is being stopped',
      '',
    ].join('\n'),
  );
  expect(stderr).toBe('Undo: muster node undrain node-1\n');
  const shown = await run(['node', 'node-1'], { GetNode: DrainNode });
  expect(shown.stdout).toMatch(/Drained +new disk, 1 min ago, jobs stop within \d+ min/);
  expect(shown.stdout).toMatch(/State +online, draining/);
});

test('node drain without a deadline says that jobs run until they end, and that there are none only if so', async () => {
  const drain = { reason: 'new disk', sinceMs: submittedAtMs, deadlineMs: null };
  const of = (tasks: readonly NodeTask[]) => ({
    DrainNode: () => wire.node({ ...busy, drained: true, drain, tasks }),
  });
  const slow = await run(['node', 'drain', 'node-1'], of([aTask('job_aaaaaaaaaaaa', { gpus: 0 })]));
  expect(slow.requests.at(-1)?.request).not.toHaveProperty('deadlineMs', expect.anything());
  expect(slow.stdout).toContain('it gets no new work. 1 job keeps running until it ends.\n');
  expect(slow.stdout).toMatch(/job_aaaaaaaaaaaa .* when it ends\n/);
  const free = await run(['node', 'drain', 'node-1'], of([]));
  expect(free.stdout).toBe('node-1 is drained; no jobs running.\n');
});

test('nodes shows the reason of a drain, and the jobs without GPUs', async () => {
  const drain = { reason: 'new disk', sinceMs: submittedAtMs, deadlineMs: null };
  const tasks = [aTask('job_cccccccccccc', { gpus: 0 })];
  const ListNodes = () => ({ nodes: [{ ...drained, drain, tasks }, aNode()].map(wire.node) });
  const { stdout } = await run(['nodes'], { ListNodes, GetCluster: () => aCluster() });
  expect(stdout).toMatch(/node-3 +online, draining .* job_cccccccccccc +drained: new disk; clock_skew/);
});

test('node undrain says when conditions keep the node drained all the same', async () => {
  const free = await run(['node', 'undrain', 'node-1'], { UndrainNode: () => wire.node(busy) });
  expect(free.stdout).toBe('node-1 is no longer drained.\n');
  const still = await run(['node', 'undrain', 'node-3'], { UndrainNode: () => wire.node(drained) });
  expect(still.stdout).toBe('node-3 is no longer drained, but its conditions still prevent new work.\n');
});
