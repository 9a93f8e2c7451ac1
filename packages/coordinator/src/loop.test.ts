import { InvariantViolation, MusterError } from '@muster/common/errors';
import type { JobId } from '@muster/common/ids';
import { type Logger, silentLogger } from '@muster/common/log';
import { afterEach, expect, test, vi } from 'vitest';
import { submit } from './commands/jobs.ts';
import { countingBytes, TestClock } from './coordinatorFixture.ts';
import { type Command, Loop, type LoopParts } from './loop.ts';
import {
  aCaller,
  aCheckpoint,
  aJob,
  aNode,
  anExit,
  anInventory,
  aSpec,
  nodeNameOf,
  someGpus,
} from './modelFixture.ts';
import { WaitTimes } from './planning/waitTimes.ts';
import { applyJobEvent } from './state/applyJobEvent.ts';
import type { Committed } from './state/committed.ts';
import { ClusterState } from './state/state.ts';
import { Memory, MemoryStore } from './store/memory/memoryStore.ts';
import { type Batch, StoreError } from './store/store.ts';
import { aCredential } from './store/storeFixture.ts';
import { Contained } from './work/contained.ts';

/** Each commit takes the next of `failures` first. */
class FailingStore extends MemoryStore {
  readonly failures: unknown[] = [];
  readonly batches: Batch[] = [];
  /** Resolved at once unless a test holds commits back. */
  held: Promise<void> = Promise.resolve();

  override async commit(batch: Batch): Promise<void> {
    await this.held;
    if (this.failures.length > 0) throw this.failures.shift();
    this.batches.push(batch);
    await super.commit(batch);
  }
}

const loops: Loop[] = [];
afterEach(async () => {
  for (const loop of loops.splice(0)) await loop.stop();
});

async function aLoop(parts: Partial<LoopParts> = {}, memory = new Memory('test')) {
  const store = new FailingStore(memory);
  const state = new ClusterState(await store.load());
  const commits: Committed[] = [];
  const fatal: StoreError[] = [];
  const loop = new Loop({
    state,
    store,
    clock: new TestClock(),
    log: silentLogger,
    waitTimes: new WaitTimes(),
    onlineNodes: () => new Set(state.nodes.keys()),
    paused: () => null,
    leaseMs: 60_000,
    leaseFreeBootId: null,
    orphanGpus: () => new Set<string>(),
    needsPreflight: () => false,
    onViolation: () => {},
    contained: new Contained(silentLogger, () => 0),
    followers: { test: (committed) => void commits.push(committed) },
    onFatal: (error) => fatal.push(error),
    ...parts,
  });
  loops.push(loop);
  return { loop, store, state, commits, fatal };
}

function reasonOf(loop: Loop, state: ClusterState, id: JobId) {
  const job = state.jobs.get(id);
  return job === undefined ? undefined : loop.reasons.get(job);
}

const random = countingBytes();

function submitting(requestId: string, file: Parameters<typeof aSpec>[0] = {}): Command<JobId> {
  const command = {
    spec: aSpec(file),
    requestId,
    digest: 'd',
    arraySize: 0,
    requeuedFrom: null,
    place: null,
  };
  return (draft, nowMs) => {
    const [jobId] = submit(draft, command, random, nowMs).jobIds;
    if (jobId === undefined) throw new Error('submitted nothing');
    return jobId;
  };
}

const refused = new MusterError('invalid', 'refused');

test('commands that queue together share a commit, and each gets its own answer', async () => {
  const { loop, store, state } = await aLoop();
  const [first, second] = await Promise.all([
    loop.run(aCaller, submitting('a')),
    loop.run(aCaller, submitting('b')),
  ]);
  expect(store.batches).toHaveLength(1);
  expect([...state.jobs.keys()]).toEqual([first, second]);
});

test('a command that throws midway leaves nothing in the commit it would have shared', async () => {
  const { loop, store, state } = await aLoop();
  const before = loop.run(aCaller, submitting('before'));
  const thrown = loop.run(aCaller, (draft, nowMs) => {
    submitting('half')(draft, nowMs);
    draft.putNode(aNode('half'));
    draft.putCredential(aCredential('half', { kind: 'join' }));
    const [job] = draft.activeJobs();
    if (job !== undefined) applyJobEvent(draft, job.id, { kind: 'stop', reason: '' }, nowMs);
    throw refused;
  });
  const after = loop.run(aCaller, submitting('after'));
  await expect(thrown).rejects.toBe(refused);
  const ids = [await before, await after];

  const [batch] = store.batches;
  expect(batch?.newJobs.map(({ id, submitSeq, state: { kind } }) => [id, submitSeq, kind])).toEqual([
    [ids[0], 1, 'queued'],
    [ids[1], 2, 'queued'],
  ]);
  expect(batch?.events.map((event) => [event.seq, event.subject, event.subjectSeq])).toEqual([
    [1, ids[0], 1],
    [2, ids[1], 1],
  ]);
  expect(batch).toMatchObject({ jobs: [], attempts: [], nodes: [], credentials: [] });
  expect(batch?.requests.map((request) => request.requestId)).toEqual(['before', 'after']);
  expect([...state.jobs.keys()]).toEqual(ids);
});

test('a failed commit fails every command of its turn, what queued behind it, and all that follow', async () => {
  const { loop, store, state, commits, fatal } = await aLoop();
  store.failures.push(new StoreError('io', 'disk I/O error'));
  const answers = await Promise.allSettled([
    loop.run(aCaller, submitting('a')),
    loop.run(aCaller, () => 'no change'),
    loop.run(aCaller, () => {
      throw refused;
    }),
  ]);
  expect(answers.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
  expect(fatal.map((error) => error.kind)).toEqual(['io']);
  await expect(loop.run(aCaller, submitting('b'))).rejects.toMatchObject({ code: 'unavailable' });
  expect(state.jobs.size).toBe(0);
  expect(commits).toEqual([]);
});

test('a full disk refuses the commands of the turn with what to free, and the loop continues', async () => {
  const { loop, store, state, fatal } = await aLoop();
  const message = 'the disk of /data is full: free at least 7 bytes';
  store.failures.push(new StoreError('full', message));
  await expect(loop.run(aCaller, submitting('a'))).rejects.toMatchObject({
    code: 'resource_exhausted',
    message,
  });
  expect({ jobs: state.jobs.size, fatal, batches: store.batches }).toEqual({
    jobs: 0,
    fatal: [],
    batches: [],
  });
  const id = await loop.run(aCaller, submitting('a'));
  expect(state.jobs.has(id)).toBe(true);
});

test('a pass whose decisions found the disk full is repeated, and no command is needed for it', async () => {
  const memory = new Memory('test');
  memory.nodes.set('node-1', aNode('node-1', { inventory: anInventory({ gpus: someGpus('a', 1) }) }));
  let paused: string | null = 'not yet';
  const { loop, store, state, fatal } = await aLoop({ paused: () => paused }, memory);
  const id = await loop.run(aCaller, submitting('a', { resources: { gpus: 1 } }));
  paused = null;
  store.failures.push(new StoreError('full', 'database or disk is full'));
  loop.wake();
  await vi.waitFor(() => expect(state.jobs.get(id)?.state.kind).toBe('starting'), { timeout: 60_000 });
  expect({ fatal, left: store.failures }).toEqual({ fatal: [], left: [] });
});

test('a scheduling pass that breaks an invariant starts nothing and hinders no command', async () => {
  const errors: string[] = [];
  const log: Logger = { ...silentLogger, error: (_fields, message) => errors.push(message) };
  const memory = new Memory('test');
  const gpus = [...someGpus('a', 1), ...someGpus('a', 1)];
  memory.nodes.set('node-1', aNode('node-1', { inventory: anInventory({ gpus }) }));
  const { loop, state, fatal } = await aLoop({ log }, memory);
  await loop.run(aCaller, submitting('a', { resources: { gpus: 2 } }));
  const second = await loop.run(aCaller, submitting('b'));
  expect(state.jobs.get(second)?.state.kind).toBe('queued');
  expect(errors).toEqual([expect.stringContaining('GPU-a-0 on node-1 is allocated twice')]);
  expect(fatal).toEqual([]);
});

test('a command that would break a guarantee is refused and logged, with the number and where to read about it', async () => {
  const logged: object[] = [];
  const { loop } = await aLoop({ log: { ...silentLogger, error: (fields) => logged.push(fields) } });
  const violation = new InvariantViolation('G2', 'two attempts');
  const run = loop.run(aCaller, () => {
    throw violation;
  });
  await expect(run).rejects.toBe(violation);
  expect(logged).toEqual([{ guarantee: 'G2' }]);
  expect(violation.message).toBe('guarantee G2 would not hold (docs/guarantees.md#g2): two attempts');
});

test('what is submitted starts in the same commit when there is room, and carries a reason when there is none', async () => {
  const memory = new Memory('test');
  memory.nodes.set('node-1', aNode('node-1'));
  const { loop, store, state } = await aLoop({}, memory);
  const started = await loop.run(aCaller, submitting('a', { resources: { gpus: 2 } }));
  expect(store.batches.map((batch) => batch.events.map((event) => event.kind))).toEqual([
    ['job.submitted', 'attempt.allocated'],
  ]);
  const waiting = await loop.run(aCaller, submitting('b', { resources: { gpus: 1 } }));
  expect(state.jobs.get(started)?.state.kind).toBe('starting');
  expect(reasonOf(loop, state, waiting)?.kind).toBe('no_gpus_free');
});

test('stop lets the turn under way finish, and refuses what waits and what comes', async () => {
  const { loop, store, state } = await aLoop();
  let letGo = () => {};
  store.held = new Promise((resolve) => {
    letGo = resolve;
  });
  const inFlight = loop.run(aCaller, submitting('a'));
  await new Promise((resolve) => setImmediate(resolve));
  const waiting = loop.run(aCaller, submitting('b'));
  const stopped = loop.stop();
  await expect(loop.run(aCaller, submitting('c'))).rejects.toMatchObject({ code: 'unavailable' });
  letGo();
  await stopped;
  await expect(waiting).rejects.toMatchObject({ code: 'unavailable' });
  expect([...state.jobs.keys()]).toEqual([await inFlight]);
});

test('a stopped loop leaves no timer that would keep the process alive', async () => {
  const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
  const timersBefore = timers();
  const { loop, store } = await aLoop();
  let letGo = () => {};
  store.held = new Promise((resolve) => {
    letGo = resolve;
  });
  // It waits for nodes, so the turn ends with a timer for its reservation.
  const submitted = loop.run(aCaller, submitting('a'));
  await new Promise((resolve) => setImmediate(resolve));
  const stopped = loop.stop();
  letGo();
  await Promise.all([submitted, stopped]);
  // A timer of another test file in this process may have ended meanwhile.
  expect(timers()).toBeLessThanOrEqual(timersBefore);
});

test('a job that was requeued while its nodes are free names both attempts in one commit', async () => {
  const memory = new Memory('test');
  memory.nodes.set('node-1', aNode('node-1'));
  const { loop, commits } = await aLoop({}, memory);
  const jobId = await loop.run(aCaller, submitting('a', { resources: { gpus: 2 } }));
  await loop.run(aCaller, (draft, nowMs) =>
    applyJobEvent(draft, jobId, { kind: 'requeue', from: { kind: 'newest' } }, nowMs),
  );
  expect(commits.at(-1)?.attempts.map(({ attempt }) => [attempt.number, attempt.state])).toEqual([
    [1, 'ended'],
    [2, 'allocated'],
  ]);
  expect(commits.at(-1)?.attempts[0]?.attempt.tasks[0]?.node).toBe(nodeNameOf('node-1'));
});

/** A cluster of one node with two GPUs. */
async function aSmallLoop(parts: Partial<LoopParts> = {}) {
  const memory = new Memory('test');
  memory.nodes.set('node-1', aNode('node-1'));
  return aLoop(parts, memory);
}

const twoGpus = { resources: { gpus: 2 } };

test('what has not begun is preempted at once, and who outranks it starts without another push', async () => {
  const { loop, state, commits } = await aSmallLoop();
  const low = await loop.run(aCaller, submitting('low', { ...twoGpus, priority: 10, preemptible: true }));
  const high = await loop.run(aCaller, submitting('high', { ...twoGpus, priority: 80 }));
  await vi.waitFor(() => expect(state.jobs.get(high)?.state.kind).toBe('starting'));
  expect(state.jobs.get(low)).toMatchObject({
    state: {
      kind: 'queued',
      lastCause: { kind: 'preempted', message: `preempted by ${high} (priority 80 over 10) before it began` },
    },
    preemptions: 1,
  });
  const preempted = commits.flatMap(({ events }) => events).find(({ kind }) => kind === 'job.preempted');
  expect(preempted).toMatchObject({ subject: low, data: { by: high } });
  expect(reasonOf(loop, state, low)?.kind).toBe('no_gpus_free');
});

test('what runs is preempted once, and its place is kept until it has stopped', async () => {
  const { loop, state, store } = await aSmallLoop();
  const low = await loop.run(aCaller, submitting('low', { ...twoGpus, priority: 10, preemptible: true }));
  await loop.run(aCaller, (draft, nowMs) => {
    applyJobEvent(
      draft,
      low,
      {
        kind: 'prepared',
        attempt: 1,
        nodeRank: 0,
        master: { addr: '10.0.0.1', port: 1 },
        endpoints: [],
        testPort: null,
      },
      nowMs,
    );
    applyJobEvent(draft, low, { kind: 'taskRunning', attempt: 1, nodeRank: 0 }, nowMs);
  });
  expect(state.jobs.get(low)?.state.kind).toBe('running');
  const high = await loop.run(aCaller, submitting('high', { ...twoGpus, priority: 80 }));
  const middle = await loop.run(aCaller, submitting('middle', { resources: { gpus: 1 }, priority: 50 }));
  expect(state.jobs.get(low)?.state.kind).toBe('stopping');
  expect(reasonOf(loop, state, high)).toEqual({
    kind: 'preempting',
    victims: [{ id: low, priority: 10 }],
  });
  await loop.run(aCaller, (draft, nowMs) => {
    applyJobEvent(
      draft,
      low,
      { kind: 'taskEnded', attempt: 1, nodeRank: 0, exit: anExit({ exitCode: 143 }), failedAtMs: null },
      nowMs,
    );
  });
  expect(state.jobs.get(high)?.state.kind).toBe('starting');
  expect([low, middle].map((id) => state.jobs.get(id)?.state.kind)).toEqual(['queued', 'queued']);
  const asked = store.batches.flatMap(({ events }) => events).filter(({ kind }) => kind === 'job.preempted');
  expect(asked).toHaveLength(1);
});

test('an attempt begins from the newest good checkpoint that its nodes can read', async () => {
  const memory = new Memory('test');
  memory.nodes.set('node-1', aNode('node-1'));
  const checkpoints = [aCheckpoint(400), aCheckpoint(500), aCheckpoint(600, { verdict: 'corrupt' })];
  const job = aJob(1, { lastAttempt: 1, checkpoints });
  memory.jobs.set(job.id, job);
  const { loop, state } = await aLoop({}, memory);
  loop.wake();
  await vi.waitFor(() =>
    expect(state.jobs.get(job.id)?.state).toMatchObject({
      kind: 'starting',
      attempt: { resume: { name: 'checkpoint-500', step: 500 } },
    }),
  );
});

test('a commit that a follower cannot take is answered all the same, passed to the others, and ends nothing', async () => {
  const contained = new Contained(silentLogger, () => 0);
  const counts: number[] = [];
  const followers: LoopParts['followers'] = {
    poisoned: ({ events }) => {
      throw new Error(`cannot take ${events[0]?.kind}`);
    },
    next: ({ events }) => void counts.push(events.length),
  };
  const { loop, fatal } = await aLoop({ contained, followers });
  expect(await loop.run(aCaller, submitting('one'))).toMatch(/^job_/);
  expect(await loop.run(aCaller, submitting('two'))).toMatch(/^job_/);
  expect(counts).toEqual([1, 1]);
  expect(contained.failures.get('poisoned')).toBe(2);
  expect(fatal).toEqual([]);
});

test('jobs of a store that was restored get attempts with numbers that were never given out', async () => {
  const memory = new Memory('test');
  memory.nodes.set('node-1', aNode('node-1', { inventory: anInventory({ gpus: someGpus('a', 8) }) }));
  const { loop, state } = await aLoop({}, memory);
  state.attemptFloor = { number: 1_001, submitSeqMax: 1 };
  const old = await loop.run(aCaller, submitting('old'));
  const young = await loop.run(aCaller, submitting('young'));
  await vi.waitFor(() => expect(state.jobs.get(young)?.state.kind).toBe('starting'));
  expect([state.jobs.get(old)?.lastAttempt, state.jobs.get(young)?.lastAttempt]).toEqual([1_001, 1]);
});
