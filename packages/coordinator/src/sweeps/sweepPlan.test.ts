import { expect, test } from 'vitest';
import { nextSweepStep, type SweepLook } from './sweepPlan.ts';

type State = SweepLook['trials'][number]['state'];

function look(states: readonly State[], fields: Partial<SweepLook> = {}): SweepLook {
  return {
    sweep: { state: 'running', reason: null, trials: 4 },
    trials: states.map((state, number) => ({
      state,
      endedAtMs: state === 'running' ? null : number,
      cause: state === 'failed' ? 'exit_code' : null,
    })),
    parallel: null,
    maxFailures: 3,
    queued: 0,
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
    { kind: 'giveUp', reason: 'the last 3 trials have failed: exit_code' },
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
