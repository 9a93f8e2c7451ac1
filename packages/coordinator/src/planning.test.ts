import { InvariantViolation } from '@muster/common/errors';
import type { JobId } from '@muster/common/ids';
import type { TerminalJobState } from '@muster/common/states';
import { expect, test } from 'vitest';
import type { Job } from './model.ts';
import { aJob, aNode, anAttempt, anExit, aSpec, aTask, jobIdOf, nodeNameOf } from './modelFixture.ts';
import { buildView } from './planning.ts';
import { ClusterState, Draft } from './state.ts';
import { WaitTimes } from './waitTimes.ts';

function viewOf(jobs: readonly Job[], outcomes: readonly (readonly [JobId, TerminalJobState])[] = []) {
  const state = new ClusterState({
    clusterId: 'test',
    activeJobs: jobs,
    outcomes: new Map(outcomes),
    nodes: [aNode('node-2'), aNode('node-1')],
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
