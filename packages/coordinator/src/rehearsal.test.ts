/** What a dry run promises: what the planner would do with the job behind the real queue. */
import { MusterError } from '@muster/common/errors';
import { silentLogger } from '@muster/common/log';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { submit } from './commands/jobs.ts';
import { countingBytes, TestClock } from './coordinatorFixture.ts';
import { type Command, Loop } from './loop.ts';
import { aCaller, aCheckpoint, aNode, aSpec } from './modelFixture.ts';
import { WaitTimes } from './planning/waitTimes.ts';
import { reserveAfterMs } from './scheduler/plan.ts';
import { ClusterState } from './state/state.ts';
import { Memory, MemoryStore } from './store/memory/memoryStore.ts';
import type { RequestRecord } from './store/store.ts';
import { Contained } from './work/contained.ts';

const random = countingBytes();
const clock = new TestClock();
let memory: Memory;
let state: ClusterState;
let loop: Loop;
let paused: string | null;

/** A cluster of two nodes with two GPUs and 64 CPUs each. */
beforeEach(async () => {
  paused = null;
  memory = new Memory('test');
  for (const name of ['node-1', 'node-2']) memory.nodes.set(name, aNode(name));
  const store = new MemoryStore(memory);
  state = new ClusterState(await store.load());
  loop = new Loop({
    state,
    store,
    clock,
    log: silentLogger,
    waitTimes: new WaitTimes(),
    onlineNodes: () => new Set(state.nodes.keys()),
    paused: () => paused,
    leaseMs: 60_000,
    leaseFreeBootId: null,
    orphanGpus: () => new Set<string>(),
    needsPreflight: () => false,
    onViolation: () => {},
    contained: new Contained(silentLogger, () => 0),
    followers: {},
    onFatal: (error) => {
      throw error;
    },
  });
});
afterEach(() => loop.stop());

type File = Parameters<typeof aSpec>[0];
let requests = 0;

function submitting(file: File, inherited: Parameters<typeof submit>[4] = null): Command<RequestRecord> {
  const requestId = `r${(requests += 1)}`;
  const command = { spec: aSpec(file), requestId, digest: 'd', requeuedFrom: null, place: null };
  return (draft, nowMs) => submit(draft, command, random, nowMs, inherited);
}

const submitted = async (file: File) => loop.run(aCaller, submitting(file));
const rehearsed = (file: File) => loop.rehearse(aCaller, submitting(file));
const gpus = (each: number, priority = 50): NonNullable<File> => ({ resources: { gpus: each }, priority });

test('a job starts where there is room, and nothing of it is kept', async () => {
  await submitted(gpus(2));
  const before = { seq: state.lastSubmitSeq, jobs: [...state.jobs.values()] };
  expect(rehearsed(gpus(2))).toMatchObject({ kind: 'start', nodes: ['node-2'], ahead: 0 });
  expect({ seq: state.lastSubmitSeq, jobs: [...state.jobs.values()] }).toEqual(before);
  expect(memory.jobs.size).toBe(1);
  // What the rehearsal promised is what becomes of the job.
  await submitted(gpus(2));
  expect([...state.jobs.values()].at(-1)?.state).toMatchObject({
    attempt: { tasks: [{ node: 'node-2' }] },
  });
});

test('it waits behind those that are queued, as its priority and its turn have it', async () => {
  for (let count = 0; count < 4; count += 1) await submitted(gpus(2));
  expect(rehearsed(gpus(1))).toMatchObject({ kind: 'wait', ahead: 2, reason: { kind: 'no_gpus_free' } });
  expect(rehearsed(gpus(1, 90))).toMatchObject({ kind: 'wait', ahead: 0 });
  expect(rehearsed({}), 'what is left is used meanwhile').toMatchObject({ kind: 'start', ahead: 2 });
});

test('it is not promised what is reserved for a job that has waited longer', async () => {
  for (let count = 0; count < 2; count += 1) await submitted(gpus(1));
  await submitted({ resources: { gpus: 2, nodes: 2 } });
  expect(rehearsed(gpus(1))).toMatchObject({ kind: 'start', ahead: 1 });
  clock.nowMs += reserveAfterMs;
  expect(rehearsed(gpus(1))).toMatchObject({
    kind: 'wait',
    reason: { kind: 'reserved', by: 'waitedLonger' },
    ahead: 1,
  });
});

test('it preempts, and nothing ends for it; what waits for the place of another does not get it', async () => {
  await submitted({ ...gpus(2, 10), preemptible: true });
  await submitted({ ...gpus(1, 90) });
  const [victim] = [...state.jobs.values()];
  expect(rehearsed(gpus(2, 80))).toMatchObject({
    kind: 'wait',
    reason: { kind: 'preempting', victims: [{ id: victim?.id, priority: 10 }] },
    ahead: 0,
  });
  expect(state.jobs.get(victim?.id ?? ('' as never))).toBe(victim);
  // An attempt that runs takes time to end. Until then its node is kept for the job that preempts it.
  await loop.run(aCaller, (draft) => {
    const job = draft.job(victim?.id as never);
    if (job?.state.kind !== 'starting') throw new Error('it has not started');
    const attempt = { ...job.state.attempt, state: 'running', runningAtMs: 1 } as const;
    const tasks = attempt.tasks.map((task) => ({ ...task, state: 'running' as const }));
    draft.putJob({ ...job, state: { kind: 'running', attempt: { ...attempt, tasks } } });
  });
  await submitted({ resources: { gpus: 2, cpus: 60 }, priority: 80 });
  expect(state.jobs.get(victim?.id as never)?.state.kind).toBe('stopping');
  const [node] = victim?.state.kind === 'starting' ? victim.state.attempt.tasks : [];
  const elsewhere = rehearsed({ resources: { gpus: 0, cpus: 60 } });
  expect(elsewhere).toMatchObject({ kind: 'start', ahead: 1 });
  expect(elsewhere.kind === 'start' ? elsewhere.nodes : []).not.toContain(node?.node);
  expect(rehearsed({ resources: { nodes: 2, cpus: 60 } })).toMatchObject({
    kind: 'wait',
    reason: { kind: 'reserved', by: 'ahead' },
  });
});

test('one that continues from a checkpoint on one node waits for that node', async () => {
  await submitted(gpus(2));
  const [job] = [...state.jobs.values()];
  const home = job?.state.kind === 'starting' ? job.state.attempt.tasks[0]?.node : undefined;
  const inherited = { checkpoints: [aCheckpoint(500, { node: home ?? '' })] };
  expect(loop.rehearse(aCaller, submitting(gpus(2), inherited))).toMatchObject({
    kind: 'wait',
    reason: { kind: 'checkpoint', node: home, home: 'busy' },
  });
  expect(rehearsed(gpus(2))).toMatchObject({ kind: 'start' });
});

test('of an array, it is about the first job', async () => {
  await submitted(gpus(2));
  expect(rehearsed({ ...gpus(2), array: 3 })).toMatchObject({ kind: 'start', nodes: ['node-2'], ahead: 0 });
  expect(rehearsed({ ...gpus(2), array: 300, resources: { gpus: 0 } })).toMatchObject({ kind: 'start' });
});

test('while nothing is started, it waits for that; what would be refused is refused', () => {
  paused = 'three nodes are silent';
  expect(rehearsed({})).toMatchObject({ kind: 'wait', reason: { kind: 'paused', why: paused } });
  expect(() => rehearsed({ after: ['job_000000000001'] })).toThrow(MusterError);
});
