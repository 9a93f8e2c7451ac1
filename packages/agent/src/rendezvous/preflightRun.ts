/** Runs a preflight's program through the driver that will run the task, under a name of its own. */

import { readSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { parseTaskKey, type TaskRef, taskKey } from '@muster/common/ids';
import type { Driver, TaskLaunch } from '../drivers/driver.ts';
import type { TaskLocation, TaskName } from '../taskFacts/execution.ts';
import { removeOwnDirectory } from '../taskFacts/removal.ts';
import { readTaskFile } from '../taskFacts/taskFile.ts';
import type { RunProgram } from './preflight.ts';

const suffix = '.preflight';
/** What the program prints is short; an entrypoint before it may be talkative. */
const outputBytesMax = 256 * 1024;

/**
 * Where the preflight of a task lives: beside the task, not in it, because it has an output of its own.
 * @param task of the task
 */
export function preflightLocation({ key, directory }: TaskLocation): TaskLocation {
  return { key: `${key}${suffix}`, directory: join(directory, 'preflight') };
}

/** The task whose preflight has this key, for what a driver lists. null: it is none. */
export function parsePreflightKey(key: TaskName): TaskRef | null {
  return key.endsWith(suffix) ? parseTaskKey(key.slice(0, -suffix.length)) : null;
}

/** @param driverOf by image: null is a bare process */
export function programRunner(driverOf: (image: string | null) => Driver): RunProgram {
  return async (task, launch, abort) => {
    const driver = driverOf(launch.image);
    const location = preflightLocation({ key: taskKey(task), directory: launch.directory });
    // What an earlier round left, of this agent or of one that died in it, would be taken for this program.
    await endPreflight(driver, location);
    await mkdir(location.directory, { recursive: true, mode: 0o700 });
    // Nothing of it outlives the agent's interest in it: no lease, and the next agent ends what it finds.
    const program: TaskLaunch = { ...launch, ...location, lease: null };
    try {
      await driver.start(program, abort);
      const exit = await driver.wait(location, abort);
      return { exitCode: exit.exitCode, output: readOutput(join(location.directory, 'output.log')) };
    } finally {
      await endPreflight(driver, location);
    }
  };
}

/** Nothing of it is left afterwards. One that is not there is fine. */
export async function endPreflight(driver: Driver, location: TaskLocation): Promise<void> {
  await driver.stop(location, { signal: 'SIGKILL', graceMs: 0 });
  await driver.remove(location);
  await removeOwnDirectory(location.directory);
  await rm(location.directory, { recursive: true, force: true });
}

/** The end of it. */
function readOutput(path: string): string {
  return readTaskFile(path, (file, { size }) => {
    const buffer = Buffer.alloc(Math.min(size, outputBytesMax));
    const length = readSync(file, buffer, 0, buffer.length, Math.max(0, size - outputBytesMax));
    return buffer.toString('utf8', 0, length);
  });
}
