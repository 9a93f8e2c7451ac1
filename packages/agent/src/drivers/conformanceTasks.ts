/** What the conformance suites see of their tasks from outside: output, processes, ends. */

import { readdirSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
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
  const entry = `\0${markerVariable}=${marker}\0`;
  // Not by the thread pool, which takes ten times as long and a large buffer for each file.
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && `\0${environmentOf(name)}\0`.includes(entry))
    .map(Number)
    .sort((a, b) => a - b);
}

function environmentOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8');
  } catch {
    return '';
  }
}
