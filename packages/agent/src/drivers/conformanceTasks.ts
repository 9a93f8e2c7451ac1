/** What the conformance suites see of their tasks from outside: output, processes, ends. */

import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, vi } from 'vitest';
import type { TaskExit } from '../taskFacts/execution.ts';
import type { TaskLaunch } from './driver.ts';

/** Name of a variable in the environment of every task of these suites. */
export const markerVariable = 'DRIVER_CONFORMANCE';

export function exitedWith(exitCode: number): Partial<TaskExit> {
  return { exitCode, signal: null, oomKilled: false, statusLost: false };
}

export function never(): AbortSignal {
  return new AbortController().signal;
}

export async function outputOf(launch: TaskLaunch): Promise<string> {
  return readFile(join(launch.directory, 'output.log'), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw error;
  });
}

export async function outputContains(launch: TaskLaunch, text: string): Promise<void> {
  await vi.waitFor(async () => expect(await outputOf(launch)).toContain(text));
}

/** Pids of all live processes whose environment holds the marker, oldest first. Zombies have no environment. */
export async function processesCarrying(marker: string): Promise<number[]> {
  const entry = `${markerVariable}=${marker}`;
  const pids: number[] = [];
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const environ = await readFile(`/proc/${name}/environ`, 'utf8').catch(() => '');
    if (environ.split('\0').includes(entry)) pids.push(Number(name));
  }
  return pids.sort((a, b) => a - b);
}
