import { tmpdir } from 'node:os';
import { silentLogger } from '@muster/common/log';
import { expect, test } from 'vitest';
import { DiskReserve } from '../diskReserve.ts';
import { jobIdOf } from '../modelFixture.ts';
import { LogIntake } from './logIntake.ts';

const task = { jobId: jobIdOf(1), attempt: 1, nodeRank: 0 };
const other = { ...task, nodeRank: 1 };

function anIntake({ rateBytes = 1_000, reserveBytes = 0 }) {
  const clock = { nowMs: 0 };
  const warnings: string[] = [];
  const intake = new LogIntake({
    reserve: new DiskReserve(tmpdir(), reserveBytes, silentLogger),
    budget: { holds: () => false },
    rateBytes,
    monotonicMs: () => clock.nowMs,
    log: { ...silentLogger, warn: (_fields, message) => void warnings.push(message) },
  });
  return { intake, clock, warnings };
}

test('a task that writes more than its rate waits until there is room for it, and no other does', () => {
  const { intake, clock } = anIntake({ rateBytes: 1_000 });
  expect(intake.admit(task, 10_000)).toEqual({ kind: 'take' });
  // Two seconds of the rate are used up in advance, and one more byte is needed.
  expect(intake.admit(task, 1)).toMatchObject({ kind: 'wait', ms: 2_001 });
  expect(intake.admit(other, 1)).toEqual({ kind: 'take' });
  clock.nowMs += 2_001;
  expect(intake.admit(task, 1)).toEqual({ kind: 'take' });
});

test('in the long run it is the rate that comes', () => {
  const { intake, clock } = anIntake({ rateBytes: 1_000 });
  let taken = 0;
  while (clock.nowMs < 1_000_000) {
    const admission = intake.admit(task, 500);
    if (admission.kind === 'take') taken += 500;
    else clock.nowMs += admission.ms;
  }
  expect(taken).toBeGreaterThan(1_000_000);
  expect(taken).toBeLessThan(1_010_000);
});

test('without space everybody waits, which is reported once; the end of an output needs none', () => {
  const { intake, warnings } = anIntake({ reserveBytes: 2 ** 60 });
  for (const each of [task, other]) expect(intake.admit(each, 1)).toMatchObject({ kind: 'wait' });
  expect(intake.admit(task, 0)).toEqual({ kind: 'take' });
  expect(warnings).toEqual(['output is not accepted because space is missing']);
});
