import { causeOf } from '@muster/common/cause';
import type { KeptCheckpoints } from '@muster/common/checkpoints';
import type { CoordinatorMessage } from '@muster/common/gen/muster/v1/CoordinatorMessage';
import type { TaskRef } from '@muster/common/ids';
import type { TaskStateKind, TerminalJobState } from '@muster/common/states';
import { afterEach, describe, expect, test } from 'vitest';
import type { LeaseGrants } from '../leases/leases.ts';
import type { Job, JobState, Outcome } from '../model.ts';
import {
  aCheckpoint,
  aJob,
  anAgent,
  anAttempt,
  anExit,
  aReport,
  aSpec,
  aTask,
  jobIdOf,
  nodeNameOf,
  queuedState,
  someMs,
} from '../modelFixture.ts';
import { Story } from '../storyFixture.ts';
import { desiredOf, verdictOn } from './desired.ts';
import { AgentSession } from './session.ts';

const node = nodeNameOf('node-1');
const settings = { heartbeatIntervalMs: 1_000, leaseMs: 6_000, term: 1, termProof: 'p', clusterId: 'c' };
const master = { addr: '10.0.0.1', port: 29_500 };
const outcome: Outcome = {
  next: 'cancelled',
  cause: causeOf('cancelled', 'stopped'),
};

function ref(attempt = 1, nodeRank = 0): TaskRef {
  return { jobId: jobIdOf(1), attempt, nodeRank };
}

/** Grants the lease of the attempt, and records each node that gets one. */
const granted: string[] = [];
const leases: LeaseGrants = {
  grant(to, { number, leaseMs }) {
    granted.push(`${to} ${number}`);
    return leaseMs ?? 0;
  },
  proofOf: (to, task, submitSeq) => `${submitSeq}.${to}.${task.attempt}`,
};
afterEach(() => {
  granted.length = 0;
});

function attemptOf(state: 'allocated' | 'released' | 'running', task: TaskStateKind, number = 1) {
  const exit = task === 'ended' ? anExit() : null;
  return anAttempt(number, { state, tasks: [aTask(0, { state: task, exit })], master });
}

function jobIn(state: JobState, lastAttempt = 1): Job {
  return aJob(1, { state, lastAttempt });
}

const allocated = jobIn({ kind: 'starting', attempt: attemptOf('allocated', 'assigned') });
const released = jobIn({ kind: 'starting', attempt: attemptOf('released', 'checked') });
const running = jobIn({ kind: 'running', attempt: attemptOf('running', 'running') });
const stopping = jobIn({ kind: 'stopping', attempt: attemptOf('running', 'running'), outcome });
const taskEnded = jobIn({ kind: 'stopping', attempt: attemptOf('running', 'ended'), outcome });
const queued = jobIn(queuedState());
const superseded = jobIn({ kind: 'starting', attempt: attemptOf('allocated', 'assigned', 2) }, 2);
const ended = jobIn({ kind: 'succeeded', endedAtMs: someMs });

test.each([
  ['not released', allocated, 'prepare'],
  ['released', released, 'start'],
  ['running', running, 'start'],
  ['stopping', stopping, 'stop'],
  ['its task has ended', taskEnded, 'forget'],
  ['back in the queue', queued, 'forget'],
  ['at a later attempt', superseded, 'forget'],
  ['ended', ended, 'forget'],
  ['not in memory', undefined, 'forget'],
] as const)('what a node should do about a task of a job that is %s', (_, job, kind) => {
  expect(desiredOf(job, ref(), node).kind).toBe(kind);
  expect(desiredOf(job, ref(), nodeNameOf('node-2')).kind, 'on a node that does not hold it').toBe('forget');
});

/** A session whose agent records each message that it receives. */
function aSession() {
  const messages: CoordinatorMessage[] = [];
  const stream = { write: (message: CoordinatorMessage) => void messages.push(message), end: () => {} };
  const session = new AgentSession(
    { caller: anAgent(node), instanceId: 'instance', bootId: 'boot' },
    stream,
    leases,
  );
  /** Kinds since the last call. */
  const sent = () => messages.splice(0).map((message) => Object.keys(message).join());
  return { session, messages, sent };
}

function welcomed(jobs: readonly Job[], observed: readonly TaskRef[] = [], existed = true) {
  const { session, messages, sent } = aSession();
  session.welcome(
    settings,
    jobs,
    observed,
    (id) => jobs.find((job) => job.id === id),
    () => existed,
  );
  return { session, messages, sent };
}

test('each change is sent once', () => {
  const { session, sent } = aSession();
  for (const job of [allocated, allocated, released, running, stopping, taskEnded, taskEnded, ended])
    session.syncChanged(ref(), job);
  expect(sent()).toEqual(['prepare', 'start', 'stop', 'forget']);
});

test('which checkpoints are needed is said when it changes, and again after a reconnect', () => {
  const messages: CoordinatorMessage[] = [];
  let kept: KeptCheckpoints | null = null;
  const connect = () =>
    new AgentSession(
      { caller: anAgent(node), instanceId: 'i', bootId: 'b' },
      { write: (message) => void messages.push(message), end: () => {} },
      leases,
      null,
      null,
      () => kept,
    );
  const session = connect();
  session.syncChanged(ref(), released);
  kept = { held: [{ name: 'step_1', version: 'v' }], decidedSavedAtMs: 5 };
  for (const job of [running, running, ended]) session.syncChanged(ref(), job);
  const again = () =>
    connect().welcome(
      settings,
      [running],
      [],
      () => running,
      () => true,
    );
  again();
  const sent = messages.flatMap(({ keepCheckpoints }) => keepCheckpoints ?? []);
  expect(sent).toEqual([1, 2].map(() => ({ task: ref(), ...kept })));
});

test('an end of a task that the agent never got needs no message', () => {
  const { session, sent } = aSession();
  session.syncChanged(ref(), ended);
  expect(sent()).toEqual([]);
});

test('asked about a task, it is asked to drop what is over, however often it asks', () => {
  const { session, sent } = aSession();
  session.sync(ref(), undefined);
  session.sync(ref(), superseded);
  expect(sent()).toEqual(['forget', 'forget']);
});

test('a stop says how: signal, grace and the task', () => {
  const { session, messages } = aSession();
  session.sync(ref(), stopping);
  expect(messages).toEqual([
    { stop: { task: ref(), graceMs: stopping.spec.stopGraceMs, signal: 'SIGTERM' } },
  ]);
});

test('a stop is sent with the signal of the job, and again without grace once its last checkpoint is safe', () => {
  const { session, messages } = aSession();
  const spec = aSpec({ stop_signal: 'SIGUSR1', stop_grace: '30s' });
  const attempt = attemptOf('running', 'running');
  const stopWith = (savedAfterStop: boolean) =>
    session.syncChanged(ref(), {
      ...stopping,
      spec,
      state: { kind: 'stopping', attempt: { ...attempt, savedAfterStop }, outcome },
    });
  stopWith(false);
  stopWith(false);
  expect(messages.splice(0)).toEqual([{ stop: { task: ref(), graceMs: 30_000, signal: 'SIGUSR1' } }]);
  stopWith(true);
  stopWith(true);
  expect(messages).toEqual([{ stop: { task: ref(), graceMs: 0, signal: 'SIGUSR1' } }]);
});

test('an assignment tells where to begin, with what scales, what to set aside and what to read again', () => {
  const predecessor = jobIdOf(9);
  const checkpoints = [
    aCheckpoint(1, { verdict: 'corrupt', reread: true }),
    aCheckpoint(2),
    aCheckpoint(7, { verdict: 'corrupt' }),
    aCheckpoint(3, { verdict: 'corrupt', node: 'node-2' }),
    aCheckpoint(4, { verdict: 'corrupt', node: 'node-2', shared: true, reread: true }),
    // Of one name, written again and again.
    aCheckpoint(5, { name: 'last.pt', verdict: 'corrupt' }),
    aCheckpoint(6, { name: 'last.pt' }),
  ];
  const attempt = { ...attemptOf('allocated', 'assigned'), resume: { name: 'checkpoint-2', step: 2 } };
  const job: Job = {
    ...jobIn({ kind: 'starting', attempt }),
    checkpoints,
    checkpointJobId: predecessor,
    batchScale: 0.25,
    lrScale: 0.1,
  };
  const { messages } = welcomed([job]);
  expect(messages[0]?.welcome?.desired).toMatchObject([
    {
      resume: { name: 'checkpoint-2', step: 2 },
      checkpointJobId: predecessor,
      batchScale: 0.25,
      lrScale: 0.1,
      quarantine: [aCheckpoint(1), aCheckpoint(4)].map(({ name, version }) => ({ name, version })),
      // Found so once.
      doubted: [aCheckpoint(7)].map(({ name, version }) => ({ name, version })),
    },
  ]);
  const first = welcomed([allocated]).messages[0]?.welcome?.desired;
  const nothing = { resume: null, checkpointJobId: jobIdOf(1), batchScale: 1, lrScale: 1, quarantine: [] };
  expect(first).toMatchObject([nothing]);
});

test.each([
  ['not released', allocated, { start: null, check: null, stop: null }],
  [
    'running',
    running,
    { start: { task: ref(), masterAddr: master.addr, masterPort: master.port }, check: null, stop: null },
  ],
  ['stopping', stopping, { start: null, check: null, stop: { signal: 'SIGTERM' } }],
])(
  'a welcome carries a task that is %s with all that was said of it, and it is not said again',
  (_, job, wanted) => {
    const { session, messages, sent } = welcomed([job], [ref()]);
    expect(messages[0]?.welcome?.desired).toMatchObject([
      { task: ref(), nodeCount: 1, leaseMs: 60_000, ...wanted },
    ]);
    expect(sent()).toEqual(['welcome']);
    session.syncChanged(ref(), job);
    expect(sent()).toEqual([]);
  },
);

test.each([
  ['ended', [], true, ['welcome', 'forget']],
  ['never existed: it is nobody here to judge it', [], false, ['welcome']],
  ['is at a later attempt', [superseded], true, ['welcome', 'forget']],
  ['waits in the queue', [queued], true, ['welcome', 'forget']],
])('a welcome to an agent that has a task of a job that %s', (_, jobs, existed, wanted) => {
  expect(welcomed(jobs, [ref()], existed).sent()).toEqual(wanted);
});

test('a task of another node is not desired here, and one that a report names here is dropped', () => {
  const elsewhere = jobIn({
    kind: 'running',
    attempt: anAttempt(1, { state: 'running', tasks: [aTask(0, { node: nodeNameOf('node-2') })] }),
  });
  const { messages, sent } = welcomed([elsewhere], [ref()]);
  expect(messages[0]?.welcome?.desired).toEqual([]);
  expect(sent()).toEqual(['welcome', 'forget']);
});

test.each<[string, Job, TaskStateKind | undefined, number]>([
  ['an assignment not claimed yet', allocated, undefined, 1],
  ['a release not acted upon', released, 'prepared', 1],
  ['a release acted upon', running, 'running', 0],
  ['a stop not finished', stopping, 'running', 1],
  ['a stop finished', stopping, 'ended', 0],
])('a heartbeat brings back %s', (_, job, observed, count) => {
  const { session, messages } = welcomed([job]);
  messages.length = 0;
  const reports = observed === undefined ? [] : [aReport(ref(), { state: observed })];
  session.remind(reports, () => job);
  expect(messages).toHaveLength(count);
  for (const message of messages) expect(message.prepare?.task).toEqual(ref());
});

describe('a gang', () => {
  const [one, two] = [nodeNameOf('node-1'), nodeNameOf('node-2')];
  const gang = () => new Story({ resources: { nodes: 2 } }).allocated();
  const check = (round: number) => ({
    round,
    addresses: ['10.0.0.1', '10.0.0.2'],
    peers: [{ nodeRank: 1, node: 'node-2', address: '10.0.0.2', port: 29_501 }],
  });

  test('is asked to try its paths, once a round, and then released with everybody’s address', () => {
    const { session, messages } = aSession();
    const story = gang();
    const step = () => session.syncChanged(ref(), story.job);
    step();
    messages.length = 0;
    story.prepared(0);
    step();
    story.prepared(1);
    step();
    story.checked(1);
    step();
    expect(messages.splice(0)).toEqual([{ check: { task: ref(), check: check(1) } }]);
    // Its agent was restarted, and answers on another port.
    story.prepared(1, { testPort: 4_000 });
    step();
    step();
    const peers = [{ ...check(2).peers[0], port: 4_000 }];
    expect(messages.splice(0)).toEqual([{ check: { task: ref(), check: { ...check(2), peers } } }]);
    story.checked(0).checked(1);
    step();
    const addresses = ['10.0.0.1', '10.0.0.2'];
    const start = {
      resume: { resume: null },
      masterAddr: '10.0.0.1',
      masterPort: 29_500,
      addresses,
      leaseMs: 60_000,
    };
    expect(messages).toEqual([{ start: { task: ref(), ...start } }]);
  });

  test('that tries its paths is informed in a welcome, and reminded until it answers', () => {
    const story = gang().allPrepared();
    const { session, messages } = welcomed([story.job]);
    expect(messages.splice(0)[0]?.welcome?.desired).toMatchObject([{ check: check(1), start: null }]);
    session.remind([aReport(ref(), { state: 'prepared' })], () => story.job);
    expect(messages.splice(0)).toMatchObject([{ prepare: { check: check(1) } }]);
    story.checked(0);
    session.remind([aReport(ref(), { state: 'prepared' })], () => story.job);
    expect(messages).toEqual([]);
  });

  test('asks for the lease of what it tells to run, and of nothing else', () => {
    const story = new Story({ resources: { nodes: 2 }, lease: '10s' }).allocated();
    const { session, messages } = aSession();
    const step = () => session.syncChanged(ref(), story.job);
    step();
    expect([messages.splice(0)[0]?.prepare?.leaseMs, granted.splice(0)]).toEqual([10_000, ['node-1 1']]);
    story.allPrepared();
    step();
    expect(granted).toEqual([]);
    story.checked(0).checked(1);
    step();
    expect([messages.at(-1)?.start?.leaseMs, granted.splice(0)]).toEqual([10_000, ['node-1 1']]);
    story.stopped();
    step();
    expect(granted).toEqual([]);
  });

  test('that is to be held has no lease', () => {
    const spec = aSpec({ node_loss: 'hold' });
    const story = new Story({}, { spec }).allocated();
    expect(welcomed([story.job]).messages[0]?.welcome?.desired).toEqual([
      expect.not.objectContaining({ leaseMs: expect.anything() }),
    ]);
  });

  const outcomes = new Map<Job['id'], TerminalJobState>([[jobIdOf(7), 'failed']]);
  const runningGang = new Story({ resources: { nodes: 2 } }).allRunning();
  const stoppingGang = new Story({ resources: { nodes: 2 } }).allRunning().stopped();
  test.each([
    ['prepares', gang().job, ref(), one, 'VERDICT_RUN', 60_000],
    ['tries its paths', gang().allPrepared().job, ref(), one, 'VERDICT_RUN', 60_000],
    ['runs', runningGang.job, ref(), one, 'VERDICT_RUN', 60_000],
    ['is being stopped: the grace needs it', stoppingGang.job, ref(), one, 'VERDICT_STOP', 60_000],
    ['is another node’s', runningGang.job, ref(), two, 'VERDICT_FORGET', undefined],
    ['is of an attempt that is over', runningGang.job, ref(0), one, 'VERDICT_FORGET', undefined],
    [
      'is of an attempt that is newer than all we know',
      runningGang.job,
      { ...ref(), attempt: 9 },
      one,
      'VERDICT_UNKNOWN',
      undefined,
    ],
    [
      'is of a job that has ended',
      runningGang.job,
      { ...ref(), jobId: jobIdOf(7) },
      one,
      'VERDICT_FORGET',
      undefined,
    ],
    [
      'is of a job nobody knows',
      runningGang.job,
      { ...ref(), jobId: jobIdOf(8) },
      one,
      'VERDICT_UNKNOWN',
      undefined,
    ],
  ] as const)('the verdict on a task that %s', (_, job, task, of, verdict, leaseMs) => {
    const state = { jobs: new Map([[job.id, job]]), outcomes };
    const answer = verdictOn(task, of, state, leases);
    expect(answer).toEqual({ task, verdict, ...(leaseMs === undefined ? {} : { leaseMs }) });
    expect(granted).toHaveLength(leaseMs === undefined ? 0 : 1);
  });
});
