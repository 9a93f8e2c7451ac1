import type { CoordinatorMessage } from '@muster/common/gen/muster/v1/CoordinatorMessage';
import type { TaskRef } from '@muster/common/ids';
import type { TaskStateKind } from '@muster/common/states';
import { expect, test } from 'vitest';
import type { Job, JobState, Outcome } from '../model.ts';
import { aJob, anAttempt, anExit, aTask, jobIdOf, nodeNameOf, someMs } from '../modelFixture.ts';
import { desiredOf } from './desired.ts';
import { AgentSession } from './session.ts';

const node = nodeNameOf('node-1');
const settings = { heartbeatIntervalMs: 1_000, leaseMs: 6_000, term: 1 };
const master = { addr: '10.0.0.1', port: 29_500 };
const outcome: Outcome = {
  next: 'cancelled',
  cause: { kind: 'cancelled', message: 'stopped', nodeRank: null, node: null },
};

function ref(attempt = 1, nodeRank = 0): TaskRef {
  return { jobId: jobIdOf(1), attempt, nodeRank };
}

function attemptOf(state: 'allocated' | 'claimed' | 'running', task: TaskStateKind, number = 1) {
  const exit = task === 'ended' ? anExit() : null;
  return anAttempt(number, { state, tasks: [aTask(0, { state: task, exit })], master });
}

function jobIn(state: JobState, lastAttempt = 1): Job {
  return aJob(1, { state, lastAttempt });
}

const allocated = jobIn({ kind: 'starting', attempt: attemptOf('allocated', 'assigned') });
const released = jobIn({ kind: 'starting', attempt: attemptOf('claimed', 'claimed') });
const running = jobIn({ kind: 'running', attempt: attemptOf('running', 'running') });
const stopping = jobIn({ kind: 'stopping', attempt: attemptOf('running', 'running'), outcome });
const taskEnded = jobIn({ kind: 'stopping', attempt: attemptOf('running', 'ended'), outcome });
const queued = jobIn({ kind: 'queued', backoffMs: 0, lastCause: null });
const superseded = jobIn({ kind: 'starting', attempt: attemptOf('allocated', 'assigned', 2) }, 2);
const ended = jobIn({ kind: 'succeeded', endedAtMs: someMs });

test.each([
  ['not released', allocated, 'assign'],
  ['released', released, 'release'],
  ['running', running, 'release'],
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

/** An agent at the other end, that notes what it is told. */
function aSession() {
  const messages: CoordinatorMessage[] = [];
  const stream = { write: (message: CoordinatorMessage) => void messages.push(message), end: () => {} };
  const session = new AgentSession({ node, instanceId: 'instance', bootId: 'boot' }, stream);
  /** Kinds since the last call. */
  const told = () => messages.splice(0).map((message) => Object.keys(message).join());
  return { session, messages, told };
}

function welcomed(jobs: readonly Job[], observed: readonly TaskRef[] = [], existed = true) {
  const { session, messages, told } = aSession();
  session.welcome(
    settings,
    jobs,
    observed,
    (id) => jobs.find((job) => job.id === id),
    () => existed,
  );
  return { session, messages, told };
}

test('each change is said once', () => {
  const { session, told } = aSession();
  for (const job of [allocated, allocated, released, running, stopping, taskEnded, taskEnded, ended])
    session.syncChanged(ref(), job);
  expect(told()).toEqual(['assign', 'release', 'stop', 'forget']);
});

test('an end of which the agent was never told the beginning needs no word', () => {
  const { session, told } = aSession();
  session.syncChanged(ref(), ended);
  expect(told()).toEqual([]);
});

test('asked about a task, it is told to drop what is over, however often it asks', () => {
  const { session, told } = aSession();
  session.sync(ref(), undefined);
  session.sync(ref(), superseded);
  expect(told()).toEqual(['forget', 'forget']);
});

test('a stop says how: signal, grace and the task', () => {
  const { session, messages } = aSession();
  session.sync(ref(), stopping);
  expect(messages).toEqual([
    { stop: { task: ref(), graceMs: stopping.spec.stopGraceMs, signal: 'SIGTERM' } },
  ]);
});

test.each([
  ['not released', allocated, { release: null, stop: null }],
  [
    'running',
    running,
    { release: { task: ref(), masterAddr: master.addr, masterPort: master.port }, stop: null },
  ],
  ['stopping', stopping, { release: null, stop: { signal: 'SIGTERM' } }],
])(
  'a welcome carries a task that is %s with all that was said of it, and it is not said again',
  (_, job, wanted) => {
    const { session, messages, told } = welcomed([job], [ref()]);
    expect(messages[0]?.welcome?.desired).toMatchObject([{ task: ref(), nodeCount: 1, ...wanted }]);
    expect(told()).toEqual(['welcome']);
    session.syncChanged(ref(), job);
    expect(told()).toEqual([]);
  },
);

test.each([
  ['ended', [], true, ['welcome', 'forget']],
  ['never existed: it is nobody here to judge it', [], false, ['welcome']],
  ['is at a later attempt', [superseded], true, ['welcome', 'forget']],
  ['waits in the queue', [queued], true, ['welcome', 'forget']],
])('a welcome to an agent that has a task of a job that %s', (_, jobs, existed, wanted) => {
  expect(welcomed(jobs, [ref()], existed).told()).toEqual(wanted);
});

test('a task of another node is not desired here, and one that is claimed to be here is to be dropped', () => {
  const elsewhere = jobIn({
    kind: 'running',
    attempt: anAttempt(1, { state: 'running', tasks: [aTask(0, { node: nodeNameOf('node-2') })] }),
  });
  const { messages, told } = welcomed([elsewhere], [ref()]);
  expect(messages[0]?.welcome?.desired).toEqual([]);
  expect(told()).toEqual(['welcome', 'forget']);
});

test.each<[string, Job, TaskStateKind | undefined, number]>([
  ['an assignment not claimed yet', allocated, undefined, 1],
  ['a release not acted upon', released, 'claimed', 1],
  ['a release acted upon', running, 'running', 0],
  ['a stop not finished', stopping, 'running', 1],
  ['a stop finished', stopping, 'ended', 0],
])('a heartbeat brings back %s', (_, job, observed, count) => {
  const { session, messages } = welcomed([job]);
  messages.length = 0;
  const reports =
    observed === undefined
      ? []
      : [{ task: ref(), state: observed, exit: null, startedAtMs: null, runningForMs: null }];
  session.remind(reports, () => job);
  expect(messages).toHaveLength(count);
  for (const message of messages) expect(message.assign?.task).toEqual(ref());
});
