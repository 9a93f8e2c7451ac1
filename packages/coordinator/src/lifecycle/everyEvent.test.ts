/** Every event about rank 1 in every state of a gang of two. A new event or state must be added to the table. */
import { InvariantViolation } from '@muster/common/errors';
import { isTerminal } from '@muster/common/states';
import { expect, it } from 'vitest';
import { currentAttempt, type Job } from '../model.ts';
import { aCheckpoint, allocation, anEndpoint, anExit, placementsFor, someMs } from '../modelFixture.ts';
import { aGang, crash, imageMissing, nodeLost, type Story } from '../storyFixture.ts';
import { type JobEvent, transition } from './transition.ts';

const phases = [
  { name: 'broad', steps: 10, success: 'loss < 3' },
  { name: 'cooldown', steps: 5 },
];
const gang = () => aGang({ max_runtime: '1h', retry: { max_attempts: 3, on: ['exit_code'] } });

const states: Readonly<Record<string, () => Story>> = {
  queued: () => gang(),
  'queued again': () => gang().allRunning().requeued().ended(0).ended(1),
  assigned: () => gang().allocated(),
  'rank 0 prepared': () => gang().allocated().prepared(0),
  'tries paths': () => gang().allocated().allPrepared(),
  'rank 0 checked': () => gang().allocated().allPrepared().checked(0),
  'rank 1 checked': () => gang().allocated().allPrepared().checked(1),
  released: () => gang().released(),
  'rank 0 runs': () => gang().released().running(0),
  running: () => gang().allRunning(),
  'rank 0 is done': () => gang().allRunning().ended(0),
  'to be queued': () => gang().allRunning().ended(0, crash),
  'is preempted': () => gang().allRunning().preempted(),
  'to be cancelled': () => gang().allRunning().stopped(),
  'rank 1 ended': () => gang().allRunning().ended(1, crash),
  'awaits a verdict': () => aGang({ max_runtime: '1h', phases }).allRunning().ended(0).ended(1),
  succeeded: () => gang().allRunning().ended(0).ended(1),
  failed: () => gang().allRunning().on({ kind: 'timeLimit', attempt: 1 }).ended(0).ended(1),
  cancelled: () => gang().stopped(),
};

/** As they come for the job of a story. */
const events: Readonly<Record<string, (job: Job) => JobEvent>> = {
  allocate: (job) => allocation(placementsFor(job)),
  prepared: () => ({
    kind: 'prepared',
    attempt: 1,
    nodeRank: 1,
    master: null,
    testPort: 29_501,
    endpoints: [anEndpoint({ address: '10.0.0.2' })],
  }),
  checked: () => ({
    kind: 'checked',
    attempt: 1,
    nodeRank: 1,
    findings: { round: 1, paths: [{ nodeRank: 0, error: null, roundTripUs: 1 }], preflight: null },
  }),
  unreachable: () => ({
    kind: 'checked',
    attempt: 1,
    nodeRank: 1,
    findings: { round: 1, paths: [{ nodeRank: 0, error: 'refused', roundTripUs: 0 }], preflight: null },
  }),
  taskRunning: () => ({ kind: 'taskRunning', attempt: 1, nodeRank: 1 }),
  'ended well': () => ({ kind: 'taskEnded', attempt: 1, nodeRank: 1, exit: anExit(), failedAtMs: null }),
  'ended badly': () => ({ kind: 'taskEnded', attempt: 1, nodeRank: 1, exit: crash, failedAtMs: null }),
  'no start': () => ({ kind: 'taskEnded', attempt: 1, nodeRank: 1, exit: imageMissing, failedAtMs: null }),
  taskLost: () => ({ kind: 'taskLost', attempt: 1, nodeRank: 1, message: 'rebooted' }),
  startFailed: () => ({ kind: 'startFailed', attempt: 1, cause: nodeLost, excludeNodes: [] }),
  prepareTimeout: () => ({ kind: 'prepareTimeout', attempt: 1, doing: [] }),
  rendezvousTimeout: () => ({ kind: 'rendezvousTimeout', attempt: 1 }),
  stop: () => ({ kind: 'stop', reason: '' }),
  requeue: () => ({ kind: 'requeue', from: { kind: 'newest' } }),
  'requeue from a step': () => ({ kind: 'requeue', from: { kind: 'step', step: 5 } }),
  preempt: () => ({ kind: 'preempt', attempt: 1, message: 'is preempted', by: null }),
  checkpoint: () => ({
    kind: 'checkpoint',
    attempt: 1,
    nodeRank: 1,
    checkpoint: aCheckpoint(10),
    shared: false,
    afterStop: false,
  }),
  trainingComplete: () => ({ kind: 'trainingComplete', attempt: 1, nodeRank: 1 }),
  firstStep: () => ({ kind: 'firstStep', attempt: 1, nodeRank: 1, step: 1, atMs: 0 }),
  trainingSign: () => ({
    kind: 'trainingSign',
    attempt: 1,
    nodeRank: 1,
    sign: { kind: 'nan_loss', step: 9, lastGoodStep: 8, rank: null, line: 1, text: 'loss nan' },
  }),
  hung: () => ({
    kind: 'hung',
    attempt: 1,
    nodeRank: 1,
    sign: { quietForMs: 1_000, usualMs: 1, gpus: 'idle', rank: null },
  }),
  extend: () => ({ kind: 'extend', byMs: 1_000 }),
  timeLimit: () => ({ kind: 'timeLimit', attempt: 1 }),
  met: () => ({ kind: 'phaseJudged', attempt: 1, verdict: 'met', values: {}, notFinite: [] }),
  unmet: () => ({ kind: 'phaseJudged', attempt: 1, verdict: 'unmet', values: {}, notFinite: [] }),
};

/** The result: `-` nothing, `!` refused, else the state of the job, and of rank 1 while its attempt has not ended. */
function cell(story: Story, event: JobEvent): string {
  try {
    const { job } = transition(story.job, event, story.nowMs + 1_000);
    if (job === story.job) return '-';
    const task = currentAttempt(job)?.tasks[1];
    return task === undefined ? job.state.kind : `${job.state.kind}/${task.state}`;
  } catch (error) {
    if (error instanceof InvariantViolation) return '!';
    throw error;
  }
}

const nothing = Object.fromEntries(Object.keys(events).map((event) => [event, '-']));
const over = { ...nothing, allocate: '!' };

/** What is only noted down changes no state. */
const noted = (now: string) => ({ checkpoint: now, extend: now });
const notedOnceItRuns = (now: string) => ({ ...noted(now), firstStep: now, trainingSign: now });

/** Before the release: whatever ends it, ends it at once. */
const preparing = (now: string) => ({
  ...over,
  ...noted(now),
  'ended well': 'queued',
  'ended badly': 'queued',
  'no start': 'queued',
  taskLost: 'queued',
  startFailed: 'queued',
  prepareTimeout: 'queued',
  stop: 'cancelled',
  requeue: 'queued',
  'requeue from a step': 'queued',
  preempt: 'queued',
  timeLimit: 'failed',
});

/** After the release: the job is `stopping` until its tasks have ended on their nodes. */
const started = (job: string, task: string) => ({
  ...over,
  ...notedOnceItRuns(`${job}/${task}`),
  'ended badly': 'stopping/ended',
  'no start': 'stopping/ended',
  taskLost: 'stopping/ended',
  stop: `stopping/${task}`,
  requeue: `stopping/${task}`,
  'requeue from a step': `stopping/${task}`,
  preempt: `stopping/${task}`,
  trainingComplete: `stopping/${task}`,
  timeLimit: `stopping/${task}`,
});

const underway = { ...started('running', 'running'), hung: 'running/running' };

const waiting = {
  ...nothing,
  allocate: 'starting/assigned',
  stop: 'cancelled',
  extend: 'queued',
  'requeue from a step': 'queued',
};

const stopping = {
  ...over,
  ...notedOnceItRuns('stopping/running'),
  'ended well': 'stopping/ended',
  'ended badly': 'stopping/ended',
  'no start': 'stopping/ended',
  taskLost: 'stopping/ended',
};

const table: Readonly<Record<keyof typeof states, Readonly<Record<string, string>>>> = {
  queued: waiting,
  'queued again': waiting,
  assigned: { ...preparing('starting/assigned'), prepared: 'starting/prepared' },
  'rank 0 prepared': { ...preparing('starting/assigned'), prepared: 'starting/prepared' },
  'tries paths': {
    ...preparing('starting/prepared'),
    checked: 'starting/checked',
    unreachable: 'starting/prepared',
  },
  'rank 0 checked': { ...preparing('starting/prepared'), checked: 'starting/checked', unreachable: 'queued' },
  'rank 1 checked': preparing('starting/checked'),
  released: {
    ...started('starting', 'checked'),
    taskRunning: 'starting/running',
    'ended well': 'starting/ended',
    rendezvousTimeout: 'stopping/checked',
  },
  'rank 0 runs': {
    ...started('starting', 'checked'),
    taskRunning: 'running/running',
    'ended well': 'running/ended',
    rendezvousTimeout: 'stopping/checked',
  },
  running: { ...underway, 'ended well': 'running/ended' },
  'rank 0 is done': {
    ...underway,
    'ended well': 'succeeded',
    'ended badly': 'queued',
    'no start': 'queued',
    taskLost: 'failed',
  },
  'to be queued': {
    ...stopping,
    'ended well': 'queued',
    'ended badly': 'queued',
    'no start': 'queued',
    taskLost: 'queued',
    stop: 'stopping/running',
    'requeue from a step': 'stopping/running',
    // It may have been left before rank 0 failed.
    trainingComplete: 'stopping/running',
  },
  'is preempted': {
    ...stopping,
    stop: 'stopping/running',
    'requeue from a step': 'stopping/running',
    // There is nothing left to come back for.
    trainingComplete: 'stopping/running',
  },
  'to be cancelled': stopping,
  'rank 1 ended': {
    ...over,
    ...notedOnceItRuns('stopping/ended'),
    stop: 'stopping/ended',
    'requeue from a step': 'stopping/ended',
    trainingComplete: 'stopping/ended',
  },
  'awaits a verdict': { ...waiting, allocate: '!', met: 'queued', unmet: 'failed' },
  succeeded: over,
  failed: over,
  cancelled: over,
};

it.each(Object.keys(states))('a gang that is %s', (state) => {
  const story = states[state];
  if (story === undefined) throw new Error(`there is no state ${state}`);
  const cells = Object.entries(events).map(([name, event]) => {
    const fresh = story();
    return [name, cell(fresh, event(fresh.job))];
  });
  expect(Object.fromEntries(cells)).toEqual(table[state]);
});

it('an event of another attempt changes nothing, in any state', () => {
  for (const [name, story] of Object.entries(states)) {
    for (const event of Object.values(events)) {
      const { job } = story();
      const stale = event(job);
      if (!('attempt' in stale)) continue;
      for (const attempt of [0, 2, 7]) {
        const after = transition(job, { ...stale, attempt }, someMs).job;
        expect(after, `${stale.kind} of attempt ${attempt} of a gang that is ${name}`).toBe(job);
      }
    }
  }
});

it('nor does an event of a rank that there is not', () => {
  for (const [name, story] of Object.entries(states)) {
    for (const event of Object.values(events)) {
      const { job } = story();
      const stray = event(job);
      if (!('nodeRank' in stray)) continue;
      const after = transition(job, { ...stray, nodeRank: 2 }, someMs).job;
      expect(after, `${stray.kind} of rank 2 of a gang that is ${name}`).toBe(job);
    }
  }
});

it('what has ended never changes', () => {
  for (const story of Object.values(states)) {
    const { job } = story();
    if (!isTerminal(job.state.kind)) continue;
    for (const event of Object.values(events)) {
      if (event(job).kind !== 'allocate') expect(transition(job, event(job), someMs).job).toBe(job);
    }
  }
});
