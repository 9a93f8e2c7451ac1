/** What the agent reports of a task. */

import type { HangSign, TrainingProgress } from '@muster/common/training';
import type { TaskReport } from '@muster/common/views';
import type { TaskState } from './state.ts';

/** What others know of a task at the moment of its report. */
export interface SeenOfTask {
  readonly frozen: boolean;
  /** The program has left a `training_complete.marker`. */
  readonly trainingComplete: boolean;
  readonly training: TrainingProgress | null;
  readonly hang: HangSign | null;
}

/**
 * @param boottimeMs CLOCK_BOOTTIME, in milliseconds. It is asked for only about a task that has begun.
 * @returns null: nothing of the task is on this node
 */
export function reportOf(
  { task, life }: TaskState,
  boottimeMs: () => number,
  seen: SeenOfTask,
): TaskReport | null {
  const report: Omit<TaskReport, 'state'> = {
    task,
    exit: null,
    startedAtMs: null,
    runningForMs: null,
    startedBoottimeMs: null,
    endedBoottimeMs: null,
    frozen: false,
    doing: null,
    trainingComplete: false,
    training: null,
    hang: null,
  };
  switch (life.kind) {
    case 'unrecorded':
    case 'removed':
      return null;
    case 'assigned':
      return { ...report, state: 'assigned', doing: life.doing };
    case 'prepared':
      return { ...report, state: 'prepared' };
    case 'starting':
      return { ...report, state: life.prepared === null ? 'assigned' : 'prepared' };
    case 'running':
    case 'ending': {
      const { startedAtMs, startedBoottimeMs } = life;
      const runningForMs = Math.max(0, boottimeMs() - startedBoottimeMs);
      const doing = life.kind === 'ending' ? life.doing : null;
      const moments = { startedAtMs, startedBoottimeMs, runningForMs };
      return { ...report, ...seen, ...moments, state: 'running', doing };
    }
    case 'ended': {
      const { end, started } = life;
      const { trainingComplete } = seen;
      const runningForMs = started === null ? null : Math.max(0, boottimeMs() - started.startedBoottimeMs);
      const of = { ...report, runningForMs, training: end.training, trainingComplete, exit: end } as const;
      if (started === null) return { ...of, state: 'ended' };
      const { startedAtMs, startedBoottimeMs, endedBoottimeMs = null } = started;
      return { ...of, startedAtMs, startedBoottimeMs, endedBoottimeMs, state: 'ended' };
    }
    default: {
      const never: never = life;
      return never;
    }
  }
}
