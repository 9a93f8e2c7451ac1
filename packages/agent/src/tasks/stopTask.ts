/** Ends a task through its driver: signal, grace, kill. */

import { messageOf } from '@muster/common/errors';
import type { Logger } from '@muster/common/log';
import { isTorchrun } from '../failure/torchrunWatch.ts';
import type { StopOptions, TaskExit } from '../taskFacts/execution.ts';
import type { TaskContext } from './hooks.ts';

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
