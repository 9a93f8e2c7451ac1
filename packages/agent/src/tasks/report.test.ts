import { expect, test } from 'vitest';
import { exited } from '../drivers/fakeDriver.ts';
import { anAssignment, aTask } from './managerFixture.ts';
import { reportOf } from './report.ts';
import { type Life, type TaskState, unrecordedTask } from './state.ts';
import { step } from './step.ts';

const seen = { frozen: false, trainingComplete: false, training: null, hang: null };
const reported = (state: TaskState) => reportOf(state, () => 9_000, seen);

test.each([
  ['observed', 4_000, 4_000],
  ['that no one saw', undefined, null],
])(
  'a task with an end %s is reported with its moments on CLOCK_BOOTTIME',
  (_, finishedBoottimeMs, endedBoottimeMs) => {
    const exit = { ...exited(0), ...(finishedBoottimeMs === undefined ? {} : { finishedBoottimeMs }) };
    const started = { startedAtMs: 77, startedBoottimeMs: 1_000 };
    const life: Life = { kind: 'ending', ...started, isStopping: false, exit, doing: null };
    const ending: TaskState = { ...unrecordedTask(aTask), assignment: anAssignment(), life };
    expect(reported(ending)).toMatchObject({
      state: 'running',
      startedBoottimeMs: 1_000,
      endedBoottimeMs: null,
    });
    const now = { wallMs: 1, boottimeMs: 5_000, isLeased: true };
    const { state } = step(ending, { kind: 'ended', end: { ...exit, logBytes: 0 } as never }, now);
    expect(reported(state)).toMatchObject({
      state: 'ended',
      startedBoottimeMs: 1_000,
      endedBoottimeMs,
      runningForMs: 8_000,
    });
  },
);
