import type { AlertEpisode } from '@muster/common/alerts';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { type AlertState, inactive, stepOf } from './episodes.ts';

const rule = { forMs: 0, repeatMs: null, silencedUntilMs: null };
const now = { monotonicMs: 1_000, wallMs: 500_000 };

function firing(fields: Partial<AlertEpisode> = {}): AlertState {
  const episode = {
    id: 'a-1',
    alert: 'a',
    subject: 's',
    subjectName: 's',
    project: null,
    message: '',
    firedAtMs: 400_000,
    notifiedAtMs: 400_000,
    acknowledgedAtMs: null,
    acknowledgedBy: null,
    ...fields,
  };
  return { kind: 'firing', episode };
}

test('without a time it fires at once, with one after the condition has held for so long', () => {
  expect(stepOf(rule, inactive, true, now)).toEqual({ kind: 'fire', isSilenced: false });
  const patient = { ...rule, forMs: 500 };
  expect(stepOf(patient, inactive, true, now)).toEqual({ kind: 'pending', sinceMs: 1_000 });
  const pending = { kind: 'pending', sinceMs: 1_000 } as const;
  expect(stepOf(patient, pending, true, { ...now, monotonicMs: 1_499 })).toEqual({ kind: 'none' });
  expect(stepOf(patient, pending, true, { ...now, monotonicMs: 1_500 })).toMatchObject({ kind: 'fire' });
  expect(stepOf(patient, pending, false, now)).toEqual({ kind: 'inactive' });
});

test('what is unknown begins nothing and ends nothing', () => {
  const states: AlertState[] = [inactive, { kind: 'pending', sinceMs: 0 }, firing()];
  for (const state of states)
    expect(stepOf({ ...rule, forMs: 1 }, state, null, now)).toEqual({ kind: 'none' });
});

test('a firing is repeated after its time, unless it was acknowledged or is silenced', () => {
  const often = { ...rule, repeatMs: 100_000 };
  expect(stepOf(often, firing(), true, now)).toEqual({ kind: 'repeat' });
  expect(stepOf(often, firing({ notifiedAtMs: 400_001 }), true, now)).toEqual({ kind: 'none' });
  expect(stepOf(often, firing({ acknowledgedAtMs: 1 }), true, now)).toEqual({ kind: 'none' });
  expect(stepOf({ ...often, silencedUntilMs: 500_001 }, firing(), true, now)).toEqual({ kind: 'none' });
});

test('what fires behind a silence is notified when the silence is over, and its end only if somebody was notified', () => {
  const silenced = { ...rule, silencedUntilMs: 500_001 };
  expect(stepOf(silenced, inactive, true, now)).toEqual({ kind: 'fire', isSilenced: true });
  const unnoticed = firing({ notifiedAtMs: null });
  expect(stepOf(silenced, unnoticed, true, now)).toEqual({ kind: 'none' });
  expect(stepOf({ ...rule, silencedUntilMs: 500_000 }, unnoticed, true, now)).toEqual({ kind: 'repeat' });
  expect(stepOf(silenced, unnoticed, false, now)).toEqual({ kind: 'resolve', isSilenced: true });
  expect(stepOf(silenced, firing(), false, now)).toEqual({ kind: 'resolve', isSilenced: false });
});

test('whatever is seen, firings and resolves alternate', () => {
  const looks = fc.array(fc.record({ holds: fc.constantFrom(true, false, null), passMs: fc.nat(1_000) }), {
    maxLength: 60,
  });
  fc.assert(
    fc.property(looks, fc.nat(1_500), (seen, forMs) => {
      let state: AlertState = inactive;
      let monotonicMs = 0;
      for (const { holds, passMs } of seen) {
        monotonicMs += passMs;
        const step = stepOf({ ...rule, forMs }, state, holds, { ...now, monotonicMs });
        if (step.kind === 'fire') {
          expect(state.kind).not.toBe('firing');
          state = firing();
        } else if (step.kind === 'resolve') {
          expect(state.kind).toBe('firing');
          state = inactive;
        } else if (step.kind === 'pending') state = step;
        else if (step.kind === 'inactive') state = inactive;
      }
    }),
  );
});
