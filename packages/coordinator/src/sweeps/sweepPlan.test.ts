import { expect, test } from 'vitest';
import { jobIdOf } from '../modelFixture.ts';
import type { SeedRun } from '../store/sweeps.ts';
import { nextSweepStep, type SweepLook } from './sweepPlan.ts';

type State = SweepLook['trials'][number]['state'];

function look(states: readonly State[], fields: Partial<SweepLook> = {}): SweepLook {
  return {
    sweep: { state: 'running', reason: null, trials: 4 },
    trials: states.map((state, number) => ({
      state,
      jobId: jobIdOf(number),
      endedAtMs: state === 'running' ? null : number,
      cause: state === 'failed' ? 'exit_code' : null,
    })),
    seeds: 1,
    parallel: null,
    maxFailures: 3,
    queued: 0,
    promotions: [],
    spent: null,
    ...fields,
  };
}

test.each<readonly [string, SweepLook, object]>([
  ['starts the first', look([]), { kind: 'start', number: 0 }],
  ['starts the next where none waits for room', look(['running']), { kind: 'start', number: 1 }],
  ['starts none while one waits for room', look(['running'], { queued: 1 }), { kind: 'wait' }],
  ['keeps to its number at the same time', look(['running', 'running'], { parallel: 2 }), { kind: 'wait' }],
  [
    'starts the next of its number whether or not there is room',
    look(['running', 'complete'], { parallel: 2, queued: 1 }),
    { kind: 'start', number: 2 },
  ],
  ['waits for its last trials', look(['complete', 'complete', 'complete', 'running']), { kind: 'wait' }],
  [
    'is done once all of them have ended',
    look(['complete', 'infeasible', 'failed', 'stopped']),
    { kind: 'end', state: 'done', reason: null },
  ],
  [
    'gives up when the last trials have failed',
    look(['failed', 'failed', 'failed']),
    { kind: 'giveUp', reason: 'the last 3 trials have failed: exit_code', isSpent: false },
  ],
  [
    'goes on where one in between was infeasible',
    look(['failed', 'failed', 'infeasible']),
    { kind: 'start', number: 3 },
  ],
  ['counts stopped trials for nothing', look(['failed', 'failed', 'stopped']), { kind: 'start', number: 3 }],
])('%s', (_name, at, step) => {
  expect(nextSweepStep(at)).toEqual(step);
});

test('a sweep whose budget is used up starts and resumes nothing, and is done when what runs has ended', () => {
  const spent = 'the budget of 2 GPU-hours is used up: 2.5';
  const at = { spent, promotions: [{ number: 0, rung: 10 }] };
  const step = { kind: 'giveUp', reason: spent, isSpent: true };
  expect(nextSweepStep(look(['paused', 'running'], at))).toEqual(step);
  // Nothing is missing of one that has all its trials.
  expect(nextSweepStep(look(['complete', 'complete', 'complete', 'running'], at))).toEqual({ kind: 'wait' });
  const sweep = { state: 'running', reason: spent, isSpent: true, trials: 4 } as const;
  expect(nextSweepStep(look(['complete', 'running'], { sweep }))).toEqual({ kind: 'wait' });
  expect(nextSweepStep(look(['complete', 'paused'], { sweep }))).toEqual({ kind: 'prune', numbers: [1] });
  expect(nextSweepStep(look(['complete'], { sweep }))).toEqual({ kind: 'end', state: 'done', reason: spent });
});

const promotions = [0, 1, 2].map((number) => ({ number, rung: 10 }));

test.each<readonly [string, SweepLook, object]>([
  [
    'resumes a paused trial before it starts another',
    look(['complete', 'paused', 'paused'], { promotions }),
    { kind: 'resume', promotion: { number: 1, rung: 10 } },
  ],
  [
    'resumes none while there is no room',
    look(['running', 'paused'], { parallel: 1, promotions }),
    { kind: 'wait' },
  ],
  ['starts another while none may continue', look(['complete', 'paused']), { kind: 'start', number: 2 }],
  [
    'waits with paused trials for those that run',
    look(['complete', 'paused', 'complete', 'running']),
    { kind: 'wait' },
  ],
  [
    'prunes what nothing will resume',
    look(['complete', 'paused', 'paused', 'failed']),
    { kind: 'prune', numbers: [1, 2] },
  ],
  [
    'prunes when it was stopped, whatever may continue',
    look(['complete', 'paused'], { promotions, sweep: { state: 'stopping', reason: 'enough', trials: 4 } }),
    { kind: 'prune', numbers: [1] },
  ],
])('with paused trials it %s', (_name, at, step) => {
  expect(nextSweepStep(at)).toEqual(step);
});

test('a sweep that was given up or stopped starts nothing, and ends with its last trial', () => {
  const givenUp = { state: 'running', reason: 'no budget', trials: 4 } as const;
  expect(nextSweepStep(look(['running'], { sweep: givenUp }))).toEqual({ kind: 'wait' });
  const failed = { kind: 'end', state: 'failed', reason: 'no budget' };
  expect(nextSweepStep(look(['complete'], { sweep: givenUp }))).toEqual(failed);
  const stopping = { state: 'stopping', reason: 'enough', trials: 4 } as const;
  expect(nextSweepStep(look(['running'], { sweep: stopping }))).toEqual({ kind: 'wait' });
  const stopped = { kind: 'end', state: 'stopped', reason: 'enough' };
  expect(nextSweepStep(look([], { sweep: stopping }))).toEqual(stopped);
  expect(nextSweepStep(look([], { sweep: { state: 'done', reason: null, trials: 4 } }))).toEqual({
    kind: 'wait',
  });
});

/** A trial with three seeds, of which some have been started. */
function withSeeds(number: number, ...states: readonly SeedRun['state'][]): SweepLook['trials'][number] {
  const seedRuns = states.map((state, seed): SeedRun => {
    const jobId = jobIdOf(10 * number + seed);
    return { seed, jobId, state, value: null, furtherValues: [], step: null, cause: null };
  });
  return { state: 'running', jobId: jobIdOf(10 * number), endedAtMs: null, cause: null, seedRuns };
}

test.each<readonly [string, SweepLook['trials'], Partial<SweepLook>, object]>([
  [
    'gives a trial its next seed before it starts another',
    [withSeeds(0, 'complete', 'running')],
    { parallel: 2 },
    { kind: 'startSeed', number: 0, seed: 2 },
  ],
  [
    'counts jobs, and not trials, as what runs at the same time',
    [withSeeds(0, 'running', 'running')],
    { parallel: 2 },
    { kind: 'wait' },
  ],
  [
    'starts another trial when the last seeds of the one before run',
    [withSeeds(0, 'running', 'running', 'running')],
    {},
    { kind: 'start', number: 1 },
  ],
  [
    'gives no further seed to parameters that have failed with one',
    [withSeeds(0, 'infeasible', 'running')],
    {},
    { kind: 'start', number: 1 },
  ],
  [
    'closes what gets no further seed once it was stopped',
    [withSeeds(0, 'complete'), withSeeds(1, 'stopped')],
    { sweep: { state: 'stopping', reason: 'enough', trials: 4 } },
    { kind: 'close', numbers: [0, 1] },
  ],
  [
    'gives up for its budget while a trial lacks seeds',
    [withSeeds(0, 'complete')],
    { spent: 'used up', sweep: { state: 'running', reason: null, trials: 1 } },
    { kind: 'giveUp', reason: 'used up', isSpent: true },
  ],
])('with seeds it %s', (_name, trials, fields, step) => {
  expect(nextSweepStep(look([], { trials, seeds: 3, ...fields }))).toEqual(step);
});

test('failures from before an extension do not end the sweep a second time', () => {
  const extended = { state: 'running', reason: null, trials: 9, failuresFrom: 3 } as const;
  const failed = ['failed', 'failed', 'failed'] as const;
  expect(nextSweepStep(look(failed, { sweep: extended }))).toEqual({ kind: 'start', number: 3 });
  expect(nextSweepStep(look([...failed, 'failed', 'failed'], { sweep: extended }))).toMatchObject({
    number: 5,
  });
  expect(nextSweepStep(look([...failed, ...failed], { sweep: extended }))).toMatchObject({ kind: 'giveUp' });
});
