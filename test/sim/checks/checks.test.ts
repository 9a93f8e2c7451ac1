/**
 * The checks on made-up histories: what no removed rule brings about, because two rules would have to be gone at once,
 * is shown here to be seen as well.
 */
import type { JobId, TaskRef } from '@muster/common/ids';
import type { TaskEnd } from '@muster/common/views';
import type { StoredEvent } from '@muster/coordinator/model';
import { expect, test } from 'vitest';
import type { Fact, ProcessStarted } from '../history.ts';
import { ClientCheck } from './clients.ts';
import { ExecutionCheck } from './executions.ts';
import { GangCheck } from './gangs.ts';
import { LogCheck } from './log.ts';
import { Verdict } from './verdict.ts';

const job = 'job_000000000001' as JobId;
const otherJob = 'job_000000000002' as JobId;
const gpu = 'GPU-1';

/** Shows facts to all checks. @returns the violations that they report, as `guarantee: text` */
function judge(facts: readonly Fact[]): readonly string[] {
  const verdict = new Verdict(() => 0);
  const executions = new ExecutionCheck(verdict);
  const log = new LogCheck(verdict);
  const clients = new ClientCheck(verdict, log);
  for (const fact of facts) {
    executions.see(fact, 1);
    log.see(fact);
    clients.see(fact, 1);
  }
  return verdict.violations.map(({ guarantee, what }) => `${guarantee}: ${what}`);
}

function ref(attempt = 1, nodeRank = 0, jobId = job): TaskRef {
  return { jobId, attempt, nodeRank };
}

function started(task: TaskRef, more: Partial<ProcessStarted> = {}): Fact {
  return {
    kind: 'started',
    machine: 'node-1',
    task,
    nodeCount: 1,
    gpuUuids: [gpu],
    portWasHeld: true,
    resume: null,
    ...more,
  };
}

function ended(task: TaskRef, exitCode = 0): Fact {
  return { kind: 'ended', machine: 'node-1', task, exitCode, signal: null, by: 'itself' };
}

/** Events as one commit, numbered on from `seq`. */
function committed(seq: number, ...events: readonly Partial<StoredEvent>[]): Fact {
  const numbered = events.map((event, index) => ({
    seq: seq + index,
    id: `c-${seq + index}`,
    subject: job,
    subjectSeq: seq + index,
    kind: 'job.submitted' as const,
    data: {},
    timeMs: 0,
    by: 'test',
    peer: '',
    ...event,
  }));
  return { kind: 'committed', events: numbered, steps: [], trials: [] };
}

const submitted = { kind: 'job.submitted' } as const;

function allocated(
  attempt: number,
  gpuUuids: readonly string[] = [gpu],
  node = 'node-1',
): Partial<StoredEvent> {
  return { kind: 'attempt.allocated', data: { attempt, tasks: [{ node, gpuUuids }] } };
}

function attemptEvent(kind: StoredEvent['kind'], attempt: number, data: object = {}): Partial<StoredEvent> {
  return { kind, data: { attempt, ...data } };
}

const tasksOfOne = { tasks: [{ node: 'node-1', gpuUuids: [gpu] }] };

/** A task as it should come to run. */
const released: readonly Fact[] = [
  committed(1, submitted, allocated(1)),
  { kind: 'prepared', machine: 'node-1', task: ref() },
  { kind: 'reportedPrepared', machine: 'node-1', task: ref() },
  committed(3, attemptEvent('attempt.released', 1)),
];

/** @param exitCode null: it was not seen */
function exitOf(exitCode: number | null): Partial<TaskEnd> {
  return { exitCode, signal: null };
}

test('a job that does as it should is no violation', () => {
  const story: readonly Fact[] = [
    ...released,
    started(ref()),
    committed(4, attemptEvent('attempt.running', 1)),
    ended(ref()),
    committed(
      5,
      attemptEvent('task.ended', 1, { nodeRank: 0, exit: exitOf(0) }),
      attemptEvent('attempt.ended', 1, tasksOfOne),
      { kind: 'job.succeeded' },
    ),
  ];
  expect(judge(story)).toEqual([]);
});

const endOfFirst = [
  attemptEvent('task.ended', 1, { nodeRank: 0, exit: exitOf(null) }),
  attemptEvent('attempt.ended', 1, tasksOfOne),
];
const unreported = released.filter((fact) => fact.kind !== 'reportedPrepared');
const unprepared = released.filter((fact) => fact.kind !== 'prepared');

test.each<[string, string, readonly Fact[]]>([
  ['G2', 'was started twice', [...released, started(ref()), ended(ref()), started(ref())]],
  [
    'G2',
    'was started after its end was recorded',
    [...released, committed(4, ...endOfFirst), started(ref())],
  ],
  ['G2', 'was started after a newer attempt', [...released, started(ref(2)), ended(ref(2)), started(ref())]],
  ['G2', `runs beside ${job}.1.0`, [...released, started(ref()), started(ref(2))]],
  ['G3', `uses ${gpu} together with ${job}.1.0`, [...released, started(ref()), started(ref(1, 0, otherJob))]],
  ['G3', `was started before ${job}.1.0 was prepared`, [...unprepared, started(ref())]],
  ['G3', `was started before ${job}.1.0 had reported that it is prepared`, [...unreported, started(ref())]],
  ['G3', 'was started before its release was committed', [...released.slice(0, 3), started(ref())]],
  ['G3', 'was allocated to node-1', [...released, started(ref(), { machine: 'node-2' })]],
  ['G3', `was allocated ${gpu}`, [...released, started(ref(), { gpuUuids: ['GPU-2'] })]],
  ['G3', 'received a port that was not held for it', [...released, started(ref(), { portWasHeld: false })]],
  [
    'G3',
    `${gpu} was given to ${job}.2.0 and is held by ${job}.1.0`,
    [...released, committed(4, allocated(2))],
  ],
  ['G7', 'runs, and its end was recorded', [...released, started(ref()), committed(4, ...endOfFirst)]],
  [
    'G7',
    'is recorded with exit 3',
    [
      ...released,
      started(ref()),
      ended(ref()),
      committed(4, attemptEvent('task.ended', 1, { nodeRank: 0, exit: exitOf(3) })),
    ],
  ],
  ['G7', 'succeeded without an attempt', [committed(1, submitted, { kind: 'job.succeeded' })]],
  [
    'G7',
    'succeeded, and',
    [...released, started(ref()), ended(ref(), 1), committed(4, ...endOfFirst, { kind: 'job.succeeded' })],
  ],
])('%s: %s', (guarantee, text, facts) => {
  expect(judge(facts)).toContainEqual(expect.stringMatching(new RegExp(`^${guarantee}: .*${text}`)));
});

test.each<[string, string, readonly Fact[]]>([
  ['G5', 'follows 1', [committed(1, submitted), committed(3, { kind: 'job.queued' })]],
  ['G5', 'repeats the id c-1', [committed(1, submitted, { id: 'c-1' })]],
  ['G5', `follows ${job} 1`, [committed(1, submitted, { kind: 'job.queued', subjectSeq: 3 })]],
  ['G1', 'gives an id a second time', [committed(1, submitted, submitted)]],
  ['G6', 'comes after job.failed', [committed(1, submitted, { kind: 'job.failed' }, { kind: 'job.queued' })]],
  ['G6', 'has number 3 after 1', [committed(1, submitted, allocated(1), ...endOfFirst, allocated(3))]],
  ['G2', 'while attempt 1 has not ended', [committed(1, submitted, allocated(1), allocated(2))]],
  ['G2', 'while attempt 1 has not ended', [committed(1, submitted, allocated(1), { kind: 'job.failed' })]],
  [
    'G6',
    'names attempt 1, and null is current',
    [committed(1, submitted, allocated(1), ...endOfFirst, attemptEvent('attempt.running', 1))],
  ],
  [
    'G6',
    'after its stop was answered',
    [committed(1, submitted), { kind: 'stopAnswered', jobId: job }, committed(2, allocated(1))],
  ],
])('%s: %s', (guarantee, text, facts) => {
  expect(judge(facts)).toContainEqual(expect.stringMatching(new RegExp(`^${guarantee}: .*${text}`)));
});

function answered(requestId: string, ...jobIds: readonly JobId[]): Fact {
  return { kind: 'submitAnswered', requestId, jobIds };
}

function requeued(seq: number): Fact {
  return committed(seq, { kind: 'job.stopping', data: { cause: { message: 'requeued by a user' } } });
}

function listed(state: string, attempt = 1): Fact {
  return { kind: 'listed', askedAtMs: 2, jobs: [{ id: job, state, attempt, submitSeq: 1 }] };
}

function watched(seq: number, id: string, data: object = {}): Fact {
  return { kind: 'watched', event: { seq, id, text: JSON.stringify({ data }) } };
}

test.each<[string, string, readonly Fact[]]>([
  ['G1', 'which was not committed', [answered('r1', job)]],
  ['G1', 'was answered', [committed(1, submitted), answered('r1', job), answered('r1', otherJob)]],
  ['G1', 'which is a job of r1', [committed(1, submitted), answered('r1', job), answered('r2', job)]],
  [
    'G1',
    'a list does not have it',
    [committed(1, submitted), answered('r1', job), { kind: 'listed', askedAtMs: 2, jobs: [] }],
  ],
  [
    'G1',
    'more often than anybody asked for',
    [
      committed(1, submitted),
      { kind: 'requeueWanted', jobId: job, from: { kind: 'newest' } },
      requeued(2),
      requeued(3),
    ],
  ],
  ['G6', 'was failed and is queued', [listed('failed'), listed('queued')]],
  ['G6', 'was at attempt 2 and is at 1', [listed('running', 2), listed('running', 1)]],
  ['G5', 'a watch got 2 after 0', [committed(1, submitted, { kind: 'job.queued' }), watched(2, 'c-2')]],
  ['G5', 'as event 1, which is', [committed(1, submitted), watched(1, 'c-9')]],
  ['G5', 'as event 1, which is', [committed(1, submitted), watched(1, 'c-1', { name: 'another' })]],
])('%s: %s', (guarantee, text, facts) => {
  expect(judge(facts)).toContainEqual(expect.stringMatching(new RegExp(`^${guarantee}: .*${text}`)));
});

test('a gang that runs on without one of its tasks is seen when it had the time to stop', () => {
  const verdict = new Verdict(() => 0);
  const executions = new ExecutionCheck(verdict);
  const gangs = new GangCheck(verdict, executions);
  for (const fact of [started(ref(1, 0)), started(ref(1, 1), { gpuUuids: [] }), ended(ref(1, 1), 1)]) {
    executions.see(fact, 0);
    gangs.see(fact, 0);
  }
  verdict.violations.length = 0;
  gangs.look(25_500, () => -60_000);
  expect(verdict.violations).toEqual([]);
  // Its agent slept until now: it has the time that any other has.
  gangs.look(60_000, (machine) => (machine === 'node-1' ? 30_001 : -60_000));
  expect(verdict.violations).toEqual([]);
  gangs.look(25_501, () => -60_000);
  expect(verdict.violations).toMatchObject([{ guarantee: 'G3' }]);
});
