/**
 * Moves stored moments along when the coordinator's clock is set. Ledgers, costs, waits and the budgets of sweeps are differences of two
 * moments. When the clock is set by a day, the moments that were recorded by it are set by a day, too, so that no difference changes.
 * Of what has ended both moments lie on one side already, so it stays as it is.
 */

import { hasPipelineEnded } from '@muster/common/pipelines';
import { hasSweepEnded } from '@muster/common/sweeps';
import { type Attempt, currentAttempt, type Job, type JobState, type Task } from '../model.ts';
import type { Draft } from './state.ts';

interface ClockSetting {
  /** Milliseconds by which the clock was set. Negative if it was set back. */
  readonly byMs: number;
  /**
   * Earlier moments stay, because time did pass since: the clock was set forward for a gap between two boots. Null if all moments move.
   */
  readonly fromMs: number | null;
}

/** Moves the moments of everything that has not ended. */
export function moveMoments(draft: Draft, setting: ClockSetting): void {
  const move = mover(setting);
  for (const job of Array.from(draft.activeJobs())) {
    const moved = movedJob(job, move);
    draft.putJob(moved);
    const attempt = currentAttempt(moved);
    if (attempt !== null) draft.putAttempt(job.id, attempt);
  }
  for (const sweep of draft.sweeps.every()) {
    if (!hasSweepEnded(sweep.state)) draft.sweeps.put({ ...sweep, createdAtMs: move(sweep.createdAtMs) });
  }
  for (const run of draft.pipelines.every()) {
    if (hasPipelineEnded(run.state)) continue;
    draft.pipelines.put({ ...run, createdAtMs: move(run.createdAtMs) });
    for (const step of draft.pipelines.stepsOf(run.id)) {
      if (step.endedAtMs === null) draft.pipelines.putStep({ ...step, startedAtMs: move(step.startedAtMs) });
    }
  }
}

type Move = (atMs: number) => number;

function mover({ byMs, fromMs }: ClockSetting): Move {
  const roundedMs = Math.round(byMs);
  return (atMs) => (fromMs === null || atMs >= fromMs ? atMs + roundedMs : atMs);
}

function movedJob(job: Job, move: Move): Job {
  return { ...job, state: movedState(job.state, move) };
}

function movedState(state: JobState, move: Move): JobState {
  if (state.kind === 'queued') return { ...state, sinceMs: move(state.sinceMs) };
  if ('attempt' in state) return { ...state, attempt: movedAttempt(state.attempt, move) };
  return state;
}

function movedAttempt(attempt: Attempt, move: Move): Attempt {
  const known = (atMs: number | null) => (atMs === null ? null : move(atMs));
  return {
    ...attempt,
    allocatedAtMs: move(attempt.allocatedAtMs),
    runningAtMs: known(attempt.runningAtMs),
    firstStepAtMs: known(attempt.firstStepAtMs),
    savedAtMs: known(attempt.savedAtMs),
    stoppingAtMs: known(attempt.stoppingAtMs),
    hungAtMs: known(attempt.hungAtMs),
    tasks: attempt.tasks.map((task) => movedTask(task, move)),
  };
}

function movedTask(task: Task, move: Move): Task {
  const { startedAtMs, failedAtMs, exit } = task;
  return {
    ...task,
    ...(startedAtMs === undefined ? {} : { startedAtMs: move(startedAtMs) }),
    failedAtMs: failedAtMs === null ? null : move(failedAtMs),
    exit:
      exit === null || exit.finishedAtMs === null ? exit : { ...exit, finishedAtMs: move(exit.finishedAtMs) },
  };
}
