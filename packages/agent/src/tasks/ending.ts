/** How a task ends: a stop through its driver (signal, grace, kill), and what is known of an end. */

import { nothingRan } from '@muster/common/cause';
import { messageOf } from '@muster/common/errors';
import type { Logger } from '@muster/common/log';
import type { TaskEnd } from '@muster/common/views';
import { isTorchrun } from '../failure/torchrunWatch.ts';
import type { StopOptions, TaskExit } from '../taskFacts/execution.ts';
import type { ExitOfTask, TaskContext, TaskHook } from './hooks.ts';

/** Two looks in a row, because a torchrun that is about to start its workers is alone, too. */
const looks = 2;
const lookEveryMs = 200;

interface StopParts {
  readonly closing: AbortSignal;
  readonly log: Logger;
}

/** @returns when no process of the task is left */
export function stopTask(task: TaskContext, options: StopOptions, parts: StopParts): Promise<TaskExit> {
  const stopped = task.driver.stop(task.location, options);
  if (task.assignment !== null && isTorchrun(task.assignment.spec))
    void endLoneLauncher(task, stopped, parts);
  return stopped;
}

/**
 * The grace is for the ranks to save what they have. A torchrun whose workers are gone has nothing to save, and often does
 * not react to the signal, because it waits for the torchruns of the other nodes inside a library call.
 */
async function endLoneLauncher(
  { driver, location }: TaskContext,
  stopped: Promise<TaskExit>,
  { closing, log }: StopParts,
): Promise<void> {
  let isStopped = false;
  const note = () => void (isStopped = true);
  stopped.then(note, note);
  try {
    for (let alone = 0; alone < looks; ) {
      await new Promise((resolve) => setTimeout(resolve, lookEveryMs));
      if (isStopped || closing.aborted) return;
      alone = driver.processes(location)?.length === 1 ? alone + 1 : 0;
    }
    await driver.stop(location, { signal: 'SIGKILL', graceMs: 0 });
  } catch (error) {
    const fields = { task: location.key, error: messageOf(error) };
    log.warn(fields, 'a launcher without workers could not be ended; its grace does');
  }
}

export interface ConclusionReports {
  /** Why a hook could not tell what it knows of the end. */
  readonly onUnknown: (error: unknown) => void;
  /** What a hook is busy with, for people. */
  readonly onDoing: (text: string) => void;
}

/**
 * @returns the end of a task, when what it saved and printed last is known, and why it failed
 */
export async function concludeTask(
  hooks: readonly TaskHook[],
  context: TaskContext,
  exit: ExitOfTask,
  { onUnknown, onDoing }: ConclusionReports,
): Promise<TaskEnd> {
  const concluded = await Promise.all(
    hooks.map(async (hook) => {
      try {
        return await hook.conclude?.(context, exit, onDoing);
      } catch (error) {
        return onUnknown(error);
      }
    }),
  );
  const measured = hooks.map((hook) => {
    try {
      return hook.measure?.(context);
    } catch (error) {
      return onUnknown(error);
    }
  });
  return Object.assign({ ...nothingRan, ...seenOf(exit) }, ...concluded, ...measured);
}

function seenOf({ exit }: ExitOfTask): Partial<TaskEnd> {
  if (exit === null) return { statusLost: true };
  const { exitCode, signal, oomKilled, finishedAtMs, statusLost } = exit;
  return { exitCode, signal, oomKilled, finishedAtMs, statusLost };
}
