import { InvariantViolation } from '@muster/common/errors';
import type { JobId } from '@muster/common/ids';
import type { TerminalJobState } from '@muster/common/states';
import { observedMax } from '@muster/common/wire/agentLimits';
import { expect, test } from 'vitest';
import type { Attempt, Job, Node } from '../model.ts';
import {
  aCheckpoint,
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
  queuedState,
  someGpus,
  someMs,
} from '../modelFixture.ts';
import { nodeTasksMax } from '../scheduler/capacity.ts';
import { ClusterState, Draft } from '../state/state.ts';
import { emptySnapshot } from '../store/storeFixture.ts';
import { buildView, planningView } from './planningView.ts';
import { SchedulerState, surveyOf } from './schedulerState.ts';
import { WaitTimes } from './waitTimes.ts';

function viewOf(
  jobs: readonly Job[],
  outcomes: readonly (readonly [JobId, TerminalJobState])[] = [],
  node1: Partial<Node> = {},
  orphaned: ReadonlySet<string> = new Set(),
) {
  const state = new ClusterState({
    ...emptySnapshot,
    activeJobs: jobs,
    outcomes: new Map(outcomes),
    nodes: [aNode('node-1', node1), aNode('node-2')],
  });
  return buildView(new Draft(state), new Set(['node-1']), new WaitTimes(), () => orphaned, 0);
}

test('GPUs that tasks hold which the store does not know are not free, and counted', () => {
  const [node] = viewOf([], [], {}, new Set(['GPU-node-1-0', 'GPU-gone'])).nodes;
  expect(node).toMatchObject({ name: 'node-1', orphanedGpus: 1 });
  expect(node?.freeGpus.map(({ uuid }) => uuid)).not.toContain('GPU-node-1-0');
});

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
  expect([node1?.freeTasks, node2?.freeTasks]).toEqual([nodeTasksMax - 1, nodeTasksMax]);
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
    drainReason: null,
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
  ['failed', { kind: 'failed', on: jobIdOf(1) }],
  ['cancelled', { kind: 'failed', on: jobIdOf(1) }],
  [null, { kind: 'waiting', on: jobIdOf(1) }],
] as const)('a job after one that is %s', (outcome, dependencies) => {
  const job = aJob(2, { spec: aSpec({ after: [jobIdOf(1)] }) });
  const { queue } = viewOf([job], outcome === null ? [] : [[jobIdOf(1), outcome]]);
  expect(queue).toMatchObject([{ id: jobIdOf(2), dependencies }]);
});

test('a job does without the nodes that it failed on before it began, for the reason of each', () => {
  const cause = {
    kind: 'image_pull',
    message: 'no such image',
    nodeRank: 0,
    node: 'node-1',
    evidence: null,
    blame: 'platform',
  } as const;
  const { queue } = viewOf([aJob(1, { excludedNodes: [{ node: 'node-1', cause }] }), aJob(2)]);
  expect(queue.map(({ excludedNodes }) => [...excludedNodes])).toEqual([[['node-1', 'image_pull']], []]);
});

test('a node that is to be left gets nothing, and says why', () => {
  const drain = { reason: 'kernel update', sinceMs: someMs, deadlineMs: null };
  const [node1] = viewOf([], [], {
    drain,
    conditions: [aCondition('xid_79', { action: 'drain_gpu', gpuUuid: 'GPU-node-1-1' })],
  }).nodes;
  expect(node1?.drained).toEqual({
    node: true,
    gpuUuids: new Set(['GPU-node-1-1']),
    kinds: [],
    drainReason: 'kernel update',
  });
});

/** A cluster of two nodes in which one job is, seen again and again. */
class Watched {
  readonly memory = new SchedulerState();
  wallMs = someMs;
  monotonicMs = 1_000;
  online = new Set(['node-1', 'node-2']);
  unmeasured = new Set<string>();
  nodes: readonly Node[] = [aNode('node-1'), aNode('node-2')];

  look(...jobs: readonly Job[]) {
    const state = new ClusterState({
      ...emptySnapshot,
      activeJobs: jobs,
      nodes: this.nodes,
    });
    const draft = new Draft(state);
    const { memory, online, monotonicMs } = this;
    const survey = surveyOf(draft);
    memory.look(survey, online, this);
    const around = {
      onlineNodes: online,
      waitTimes: new WaitTimes(),
      memory,
      leaseMs: 60_000,
      orphanGpus: () => new Set<string>(),
      needsPreflight: (node: string) => this.unmeasured.has(node),
    };
    return planningView(draft, survey, around, monotonicMs);
  }

  pass(ms: number): this {
    this.wallMs += ms;
    this.monotonicMs += ms;
    return this;
  }
}

const twoGpus = { ...onNode1, gpuUuids: ['GPU-node-1-0', 'GPU-node-1-1'] };

function atWork(fields: Partial<Attempt> = {}, job: Partial<Job> = {}): Job {
  const tasks = [aTask(0, { ...twoGpus, state: 'running' })];
  const attempt = anAttempt(1, { state: 'running', tasks, runningAtMs: someMs, ...fields });
  const spec = aSpec({ preemptible: true, retry: { max_preemptions: 2 } });
  return aJob(1, { spec, lastAttempt: 1, state: { kind: 'running', attempt }, ...job });
}

test('work is lost since the newest verified checkpoint, for each GPU, or since it began', () => {
  const watched = new Watched().pass(30_000);
  const [before] = watched.look(atWork()).holders;
  expect(before).toMatchObject({
    lostGpuSeconds: 60,
    lostSince: 'start',
    isPreemptible: true,
    state: 'active',
  });

  const saved = {
    checkpoints: [aCheckpoint(400), aCheckpoint(500), aCheckpoint(600, { verdict: 'corrupt' })],
  };
  const [after] = watched.pass(10_000).look(atWork({ savedAtMs: someMs + 35_000 }, saved)).holders;
  expect(after).toMatchObject({ lostGpuSeconds: 10, lostSince: { step: 500 } });
  const [unknown] = watched.look(atWork({ savedAtMs: someMs + 35_000 })).holders;
  expect(unknown?.lostSince).toEqual({ step: null });

  const [starting] = new Watched().pass(30_000).look(atWork({ runningAtMs: null })).holders;
  expect(starting).toMatchObject({ lostGpuSeconds: 0, lostSince: null });
});

test('a wall clock that is set changes nothing of what would be lost', () => {
  const watched = new Watched().pass(30_000);
  watched.look(atWork());
  watched.wallMs += 86_400_000;
  expect(watched.pass(1_000).look(atWork()).holders[0]?.lostGpuSeconds).toBe(62);
  watched.wallMs -= 2 * 86_400_000;
  expect(watched.pass(1_000).look(atWork()).holders[0]?.lostGpuSeconds).toBe(64);
  // By the clock of its node it has saved before it began: at least it lost no more than all it did.
  const early = atWork({ savedAtMs: watched.wallMs - 86_400_000 });
  expect(watched.pass(1_000).look(early).holders[0]?.lostGpuSeconds).toBe(66);
  const saved = watched.pass(1_000).look(atWork({ savedAtMs: watched.wallMs - 500 })).holders[0];
  expect(saved?.lostGpuSeconds).toBe(1);
});

test.each([
  ['its owner did not offer it', { spec: aSpec() }],
  ['it has given way as often as it may', { preemptions: 2 }],
])('a job is not preemptible when %s', (_, fields) => {
  expect(new Watched().look(atWork({}, fields)).holders).toEqual([]);
});

test('a job that is preempted differs from one that ends, and its preemptor is remembered', () => {
  const cause = {
    kind: 'preempted',
    message: 'gave way',
    nodeRank: null,
    node: null,
    evidence: null,
    blame: 'platform',
  } as const;
  const stopping = (charge: 'preemption' | 'nothing') => {
    const tasks = [aTask(0, { ...twoGpus, state: 'running' }), aTask(1, { state: 'ended', exit: anExit() })];
    const attempt = anAttempt(1, { state: 'running', tasks });
    const outcome = { next: 'queued', cause, backoffMs: 0, charge } as const;
    return aJob(1, { lastAttempt: 1, state: { kind: 'stopping', attempt, outcome } });
  };
  const watched = new Watched();
  watched.memory.preempted(jobIdOf(1), 1, jobIdOf(7));
  const [preempted] = watched.look(stopping('preemption')).holders;
  expect(preempted).toMatchObject({ state: 'preempted', preemptor: jobIdOf(7) });
  expect(preempted?.tasks, 'what has ended holds nothing').toHaveLength(1);
  expect(watched.look(stopping('nothing')).holders).toMatchObject([{ state: 'ending', preemptor: null }]);
  watched.look();
  expect(watched.look(stopping('preemption')).holders, 'until it is over').toMatchObject([
    { preemptor: null },
  ]);
});

test('a node that has just gone is awaited for some seconds, and so is each one at first', () => {
  const watched = new Watched();
  watched.online = new Set(['node-1']);
  const awaited = () => watched.look().nodes.map(({ awaitedUntilMs }) => awaitedUntilMs);
  const untilMs = watched.monotonicMs + 10_000;
  expect(awaited()).toEqual([null, untilMs]);
  watched.pass(9_999);
  expect(awaited()).toEqual([null, untilMs]);
  watched.pass(1);
  expect(awaited()).toEqual([null, null]);
  watched.online = new Set(['node-2']);
  expect(awaited()).toEqual([watched.monotonicMs + 10_000, null]);
});

test('one that should have ended long ago is not waited for, nor asked again', () => {
  const watched = new Watched();
  const stopping = (stoppingAtMs: number) => {
    const tasks = [aTask(0, { ...twoGpus, state: 'running' })];
    const attempt = anAttempt(1, { state: 'running', stoppingAtMs, tasks });
    const outcome = { next: 'succeeded', cause: null } as const;
    const spec = aSpec({ preemptible: true, stop_grace: '30s' });
    return aJob(1, { spec, lastAttempt: 1, state: { kind: 'stopping', attempt, outcome } });
  };
  const job = stopping(watched.wallMs);
  expect(watched.look(job).holders).toMatchObject([{ state: 'ending', isPreemptible: false }]);
  // No clock that is set makes it late.
  watched.wallMs += 86_400_000;
  expect(watched.pass(90_000).look(job).holders).toMatchObject([{ state: 'ending' }]);
  expect(watched.pass(1).look(job).holders).toMatchObject([{ state: 'active', isPreemptible: false }]);
});

const local = { checkpoints: [aCheckpoint(500, { shared: false })] };

test('a job is bound to the node that alone has its newest checkpoint', () => {
  const watched = new Watched();
  expect(watched.look(aJob(1, local)).queue).toMatchObject([
    { pin: { node: 'node-1', nodes: new Set(['node-1']), checkpoint: 'step 500', untilMs: null } },
  ]);
  const shared = { checkpoints: [aCheckpoint(500, { shared: true })] };
  expect(watched.look(aJob(1, shared)).queue).toMatchObject([{ pin: null }]);
  expect(watched.look(aJob(1, { ...local, resumeChoice: { kind: 'start' } })).queue).toMatchObject([
    { pin: null },
  ]);
  const gone = { checkpoints: [aCheckpoint(500, { shared: false, node: 'node-9' })] };
  expect(watched.look(aJob(1, gone)).queue, 'there is no such node any more').toMatchObject([{ pin: null }]);
});

test('nodes of one machine share a directory that the job names, and no other', () => {
  const watched = new Watched();
  watched.nodes = [aNode('node-1', { bootId: 'b' }), aNode('node-2', { bootId: 'b' })];
  const spec = aSpec({ checkpoint: { dir: '/checkpoints' } });
  expect(watched.look(aJob(1, { ...local, spec })).queue[0]?.pin?.nodes).toEqual(
    new Set(['node-1', 'node-2']),
  );
  expect(watched.look(aJob(1, local)).queue[0]?.pin?.nodes).toEqual(new Set(['node-1']));
});

test('what a job may resume from is in order, with who can read each, up to what all can read', () => {
  const watched = new Watched();
  const shared = [100, 200].map((step) => aCheckpoint(step, { shared: true }));
  const local1 = [400, 500].map((step) => aCheckpoint(step));
  const checkpoints = [...shared, aCheckpoint(300, { node: 'node-2' }), ...local1];
  const resumes = () => watched.look(aJob(1, { checkpoints })).queue[0]?.resumes;
  expect(resumes()).toEqual([
    { name: 'checkpoint-500', step: 500, home: 'node-1', readers: new Set(['node-1']) },
    { name: 'checkpoint-300', step: 300, home: 'node-2', readers: new Set(['node-2']) },
    { name: 'checkpoint-200', step: 200, home: 'node-1', readers: null },
  ]);
  expect(watched.look(aJob(1, { checkpoints, resumeChoice: { kind: 'start' } })).queue[0]?.resumes).toEqual(
    [],
  );
});

test('a node whose paths are not measured says so', () => {
  const watched = new Watched();
  watched.unmeasured = new Set(['node-2']);
  expect(watched.look().nodes).toMatchObject([{ needsPreflight: false }, { needsPreflight: true }]);
});

test('a silent node binds for as long as a lease, and one that was lost not at all', () => {
  const watched = new Watched();
  watched.look();
  watched.online = new Set(['node-2']);
  expect(watched.look(aJob(1, local)).queue[0]?.pin).toMatchObject({ untilMs: watched.monotonicMs + 60_000 });
  expect(watched.pass(59_999).look(aJob(1, local)).queue[0]?.pin).not.toBeNull();
  expect(watched.pass(1).look(aJob(1, local)).queue[0]?.pin).toBeNull();

  watched.online = new Set(['node-1', 'node-2']);
  expect(watched.look(aJob(1, local)).queue[0]?.pin, 'it is back').not.toBeNull();
  watched.online = new Set(['node-2']);
  const lastCause = {
    kind: 'node_lost',
    message: 'm',
    nodeRank: 0,
    node: 'node-1',
    evidence: null,
    blame: 'node',
  } as const;
  expect(watched.look(aJob(1, { ...local, state: queuedState({ lastCause }) })).queue[0]?.pin).toBeNull();
});

test('an open breaker says how many failures opened it', () => {
  const open = aJob(1, { failuresInRow: 3, state: queuedState({ breakerOpen: true }) });
  expect(new Watched().look(open, aJob(2, { failuresInRow: 2 })).queue).toMatchObject([
    { breakerFailures: 3 },
    { breakerFailures: null },
  ]);
});

test('a heartbeat can name more tasks than a node is given', () => {
  expect(nodeTasksMax).toBeLessThan(observedMax);
});
