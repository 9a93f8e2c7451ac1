/**
 * A stop of a task whose helper, the guard or a container engine, does not answer. The helper signals and kills the task as long
 * as it answers. If it hangs, the agent does the same on the processes of the task directly: a hanging helper must not keep a task
 * running.
 */

import { setTimeout as delay } from 'node:timers/promises';
import { withDeadline } from '@muster/common/async';
import { isGroupGone, killUntilGone } from '../fence/freeze.ts';
import type { TaskGroup } from '../fence/taskGroup.ts';
import type { StopOptions, TaskExit } from '../taskFacts/execution.ts';

/** Time between two looks at a stop that is not finished. */
const lookMs = 1_000;
/** Time that a helper has to answer a probe, before the agent acts in its place. */
const probeMs = 3_000;
/** Time that the helper has to report an exit status once the task is gone. */
const exitMs = 1_000;

/** The exit of a task that ended while its helper hung. */
export const unseenExit: TaskExit = {
  exitCode: null,
  signal: null,
  oomKilled: false,
  finishedAtMs: null,
  statusLost: true,
};

export interface HelperStop {
  /** The stop as the helper carries it out. Settles when the task has ended. */
  readonly answer: Promise<TaskExit>;
  readonly options: StopOptions;
  /** True if the helper answers a probe within the time. */
  readonly answers: (deadlineMs: number) => Promise<boolean>;
  /** Groups that hold all processes of the task. Null if they are not known: only the helper can end the task then. */
  readonly groups: () => readonly TaskGroup[] | null;
  /** Sends the signal to the processes that the helper would send it to. */
  readonly signal: (signal: string) => void;
  /** Called once, when the agent takes over. */
  readonly onTakeOver: () => void;
  readonly monotonicMs: () => number;
  /** Default: 3 s. */
  readonly probeMs?: number | undefined;
}

/**
 * Stops a task through its helper, and past it if it hangs.
 * @returns the helper's exit status, or a lost status if the agent had to end the task and the helper still hangs
 * @throws what the helper's stop throws, unless the agent ends the task itself
 */
export async function stopPastHelper(stop: HelperStop): Promise<TaskExit> {
  const { options, answers, groups, signal, onTakeOver, monotonicMs } = stop;
  const everyMs = Math.min(lookMs, stop.probeMs ?? probeMs);
  const answer = stop.answer.then(
    (exit) => ({ exit }),
    (error: unknown) => ({ error }),
  );
  /** Null until the agent has signalled the task itself. */
  let killAtMonoMs: number | null = null;
  for (let failed = false; ; ) {
    const settled: { exit: TaskExit } | { error: unknown } | 'late' = failed
      ? await delay(everyMs, 'late' as const)
      : await withDeadline(answer, everyMs);
    if (settled !== 'late' && 'exit' in settled) return settled.exit;
    const held = groups();
    const hangs = killAtMonoMs !== null || (held !== null && !(await answers(stop.probeMs ?? probeMs)));
    if (settled !== 'late' && !hangs) throw settled.error;
    // A helper that hangs may give the stop up in the middle of the grace.
    failed ||= settled !== 'late';
    if (held === null || !hangs) continue;
    if (killAtMonoMs === null) {
      onTakeOver();
      killAtMonoMs = monotonicMs() + options.graceMs;
      if (options.graceMs > 0) signal(options.signal);
    }
    if (monotonicMs() >= killAtMonoMs) await Promise.all(held.map(killUntilGone));
    if (!(await areGone(held))) continue;
    const late = await withDeadline(answer, exitMs);
    return late !== 'late' && 'exit' in late ? late.exit : unseenExit;
  }
}

async function areGone(groups: readonly TaskGroup[]): Promise<boolean> {
  try {
    const gone = await Promise.all(groups.map(isGroupGone));
    return gone.every(Boolean);
  } catch {
    // The files of the kernel could not be read. The next look may succeed.
    return false;
  }
}
