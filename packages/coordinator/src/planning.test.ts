import { InvariantViolation } from '@muster/common/errors';
import type { JobId } from '@muster/common/ids';
import type { TerminalJobState } from '@muster/common/states';
import { expect, test } from 'vitest';
import type { Job, Node } from './model.ts';
import {
  aCondition,
  aJob,
  aNode,
  anAttempt,
  anExit,
  anInventory,
  aSpec,
  aTask,
  jobIdOf,
  nodeNameOf,
  someGpus,
} from './modelFixture.ts';
import { buildView } from './planning.ts';
import { ClusterState, Draft } from './state.ts';
import { WaitTimes } from './waitTimes.ts';

function viewOf(
  jobs: readonly Job[],
  outcomes: readonly (readonly [JobId, TerminalJobState])[] = [],
  node1: Partial<Node> = {},
) {
  const state = new ClusterState({
    clusterId: 'test',
    activeJobs: jobs,
    outcomes: new Map(outcomes),
    nodes: [aNode('node-2'), aNode('node-1', node1)],
    credentials: [],
    lastSubmitSeq: 9,
    lastEventSeq: 0,
    subjectSeqs: new Map(),
  });
  return buildView(new Draft(state), new Set(['node-1']), new WaitTimes(), 0);
}

const onNode1 = { node: nodeNameOf('node-1'), gpuUuids: ['GPU-node-1-0'], cpus: 1.5, memoryMb: 1_000 };

function runningJob(number: number, fields: Parameters<typeof aTask>[1] = {}): Job {
  const attempt = anAttempt(1, {
    state: 'running',
    tasks: [aTask(0, { ...onNode1, state: 'running', ...fields })],
  });
  return aJob(number, { lastAttempt: 1, state: { kind: 'running', attempt } });
}

test('a task holds what it was given until it has ended, on its own node only', () => {
  const [node1, node2] = viewOf([runningJob(1)]).nodes;
  expect(node1).toMatchObject({ name: 'node-1', online: true, freeCpus: 62.5, freeMemoryMb: 261_144 });
  expect(node1?.freeGpus.map((gpu) => gpu.uuid)).toEqual(['GPU-node-1-1']);
  expect(node2).toMatchObject({ name: 'node-2', online: false, freeCpus: 64, freeMemoryMb: 262_144 });
  const [free] = viewOf([runningJob(1, { state: 'ended', exit: anExit() })]).nodes;
  expect(free).toMatchObject({ freeCpus: 64, freeMemoryMb: 262_144 });
  expect(free?.freeGpus).toHaveLength(2);
});

test('a task keeps a GPU that has vanished, and nothing else is counted as held', () => {
  const [, remaining] = someGpus('node-1', 2);
  const gpus = remaining === undefined ? [] : [remaining];
  const [node1] = viewOf([runningJob(1)], [], { inventory: anInventory({ gpus }) }).nodes;
  expect(node1).toMatchObject({ freeGpus: gpus, freeCpus: 62.5, freeMemoryMb: 261_144 });
});

test.each([
  ['of one GPU', { action: 'drain_gpu', gpuUuid: 'GPU-node-1-1' }, false, ['GPU-node-1-1'], ['GPU-node-1-0']],
  [
    'of a GPU that has vanished',
    { action: 'drain_gpu', gpuUuid: 'GPU-gone' },
    false,
    [],
    ['GPU-node-1-0', 'GPU-node-1-1'],
  ],
  ['of the node', { action: 'drain_node' }, true, [], ['GPU-node-1-0', 'GPU-node-1-1']],
  ['that is only to be known', { gpuUuid: 'GPU-node-1-1' }, false, [], ['GPU-node-1-0', 'GPU-node-1-1']],
] as const)('a condition %s', (_, fields, isNodeDrained, drainedUuids, freeUuids) => {
  const conditions = [aCondition('xid_79', fields), aCondition('clock_skew')];
  const [node1] = viewOf([], [], { conditions }).nodes;
  const isDrained = isNodeDrained || drainedUuids.length > 0;
  expect(node1?.drained).toEqual({
    node: isNodeDrained,
    gpuUuids: new Set(drainedUuids),
    kinds: isDrained ? ['xid_79'] : [],
  });
  expect(node1?.freeGpus.map(({ uuid }) => uuid)).toEqual(freeUuids);
});

test('a drained card drains its MIG instances', () => {
  const [gpu] = someGpus('node-1', 1);
  if (gpu === undefined) throw new Error('no GPU');
  const mig = { parentUuid: 'GPU-card', profile: '1g.10gb', gpuInstanceId: 7, computeInstanceId: 0 };
  const gpus = [
    { ...gpu, uuid: 'MIG-a', mig },
    { ...gpu, uuid: 'MIG-b', mig: { ...mig, parentUuid: 'GPU-other' } },
  ];
  const conditions = [aCondition('ecc_uncorrectable', { action: 'drain_gpu', gpuUuid: 'GPU-card' })];
  const [node1] = viewOf([], [], { inventory: anInventory({ gpus }), conditions }).nodes;
  expect(node1?.freeGpus.map(({ uuid }) => uuid)).toEqual(['MIG-b']);
});

test('a GPU that two tasks hold is a broken invariant', () => {
  expect(() => viewOf([runningJob(1), runningJob(2)])).toThrow(InvariantViolation);
});

test.each([
  ['succeeded', { kind: 'met' }],
  ['failed', { kind: 'failed', job: jobIdOf(1) }],
  ['cancelled', { kind: 'failed', job: jobIdOf(1) }],
  [null, { kind: 'waiting', on: jobIdOf(1) }],
] as const)('a job after one that is %s', (outcome, dependencies) => {
  const job = aJob(2, { spec: aSpec({ after: [jobIdOf(1)] }) });
  const { queue } = viewOf([job], outcome === null ? [] : [[jobIdOf(1), outcome]]);
  expect(queue).toMatchObject([{ id: jobIdOf(2), dependencies }]);
});

test('a job does without the nodes that it failed on before it began, for the reason of each', () => {
  const cause = { kind: 'image_pull', message: 'no such image', nodeRank: 0, node: 'node-1' } as const;
  const { queue } = viewOf([aJob(1, { leftOut: [{ node: 'node-1', cause }] }), aJob(2)]);
  expect(queue.map(({ leftOut }) => [...leftOut])).toEqual([[['node-1', 'image_pull']], []]);
});
