/** What attempts begin from, on made-up histories: a choice that is wrong is seen, and one that is right is not. */
import type { ResumeChoice } from '@muster/common/checkpoints';
import type { StoredEvent } from '@muster/coordinator/model';
import { expect, test } from 'vitest';
import { Grants } from '../grants.ts';
import type { Fact } from '../history.ts';
import { Life, Timeline } from '../timeline.ts';
import { JobStories } from './jobStories.ts';
import { ResumeCheck } from './resumes.ts';
import { Verdict } from './verdict.ts';

const before = 'job_000000000001';
const after = 'job_000000000002';

type Event = Pick<StoredEvent, 'kind' | 'subject' | 'data'>;

function judge(...history: readonly (Event | Fact)[]): readonly string[] {
  return judgeOn('lasting', history);
}

/** @returns the violations that the check reports */
function judgeOn(network: 'lasting' | 'lossy', history: readonly (Event | Fact)[]): readonly string[] {
  const verdict = new Verdict(() => 0);
  const stories = new JobStories(() => ({ command: ['train'] }));
  const check = new ResumeCheck(
    verdict,
    stories,
    new Grants(new Timeline(new Life('world'))),
    network === 'lossy',
  );
  for (const each of history) {
    if (!('subject' in each)) {
      check.see(each);
      continue;
    }
    const event = { ...each, seq: 1, id: 'c-1', subjectSeq: 1, timeMs: 0, by: 'test', peer: '' };
    stories.follow(event);
    check.see({ kind: 'committed', events: [event], steps: [], trials: [] });
  }
  return verdict.violations.map(({ what }) => what);
}

const submitted = (subject: string, requeuedFrom?: string): Event => {
  return { kind: 'job.submitted', subject, data: requeuedFrom === undefined ? {} : { requeuedFrom } };
};
const allocated = (subject: string, attempt: number, node: string, resume: string | null): Event => {
  const step = Number(resume?.slice(5));
  const data = { attempt, tasks: [{ node }], resume: resume === null ? null : { name: resume, step } };
  return { kind: 'attempt.allocated', subject, data };
};
const saved = (subject: string, attempt: number, node: string, step: number): Event => {
  return {
    kind: 'checkpoint.saved',
    subject,
    data: { attempt, node, step, checkpoint: `step-${step}` },
  };
};
const ofAttempt = (kind: StoredEvent['kind'], subject: string, attempt: number): Event => {
  return { kind, subject, data: { attempt } };
};
const wanted = (from: ResumeChoice): Fact => ({ kind: 'requeueWanted', jobId: before as never, from });

/** Job A saves step 7 on node-3. */
const saver: readonly Event[] = [
  submitted(before),
  allocated(before, 1, 'node-3', null),
  ofAttempt('attempt.released', before, 1),
  saved(before, 1, 'node-3', 7),
  ofAttempt('attempt.ended', before, 1),
];

/** Its successor saves step 9 on node-1, and is moved to node-3, where only A's lies. */
const moved = (resume: string | null): readonly Event[] => [
  submitted(after, before),
  allocated(after, 1, 'node-1', null),
  ofAttempt('attempt.released', after, 1),
  saved(after, 1, 'node-1', 9),
  ofAttempt('attempt.ended', after, 1),
  allocated(after, 2, 'node-3', resume),
];

test('a job that begins from the start never has the checkpoints of the one before it', () => {
  expect(judge(...saver, wanted({ kind: 'start' }), ...moved(null))).toEqual([]);
  expect(judge(...saver, wanted({ kind: 'start' }), ...moved('step-7'))).toEqual([
    'job_000000000002.2 on node-3 begins from step-7, and  is the newest it can read',
  ]);
});

test('a job that continues has them wherever they can be read', () => {
  const continuing = [submitted(after, before), allocated(after, 1, 'node-3', null)];
  expect(judge(...saver, wanted({ kind: 'newest' }), ...continuing)).toEqual([
    'job_000000000002.1 on node-3 begins from undefined, and step-7 is the newest it can read',
  ]);
});

test('of two requests for a successor it cannot be seen from outside which one it came of', () => {
  const both = [wanted({ kind: 'start' }), wanted({ kind: 'newest' })];
  for (const resume of [null, 'step-7']) {
    const begun = [submitted(after, before), allocated(after, 1, 'node-3', resume)];
    expect(judge(...saver, ...both, ...begun)).toEqual([]);
  }
});

test('a checkpoint that is not whole is no place to begin, unless the message that it was replaced may be lost', () => {
  const task = { jobId: before as never, attempt: 1, nodeRank: 0 };
  const written: Fact = {
    kind: 'saved',
    machine: 'node-3',
    task,
    step: 7,
    quality: 'good',
    beganMs: 0,
    isLast: false,
  };
  const started: Fact = {
    kind: 'started',
    machine: 'node-3',
    task: { ...task, attempt: 2 },
    nodeCount: 1,
    gpuUuids: [],
    portWasHeld: true,
    phase: null,
    resume: { name: 'step-7', state: 'corrupt' },
  };
  const once = [...saver, written, started];
  const twice = [...saver, written, { ...written, quality: 'corrupt' } as const, started];
  const violation = 'job_000000000001.2.0 begins from step-7, which is corrupt';
  expect(judgeOn('lossy', once)).toEqual([violation]);
  expect(judgeOn('lasting', twice)).toEqual([violation]);
  expect(judgeOn('lossy', twice)).toEqual([]);
});
