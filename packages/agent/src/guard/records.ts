/**
 * What a guard leaves on disk about a task, so that the next guard can go on where this one was killed.
 *
 * Files are replaced by rename, so a reader sees the old or the new one whole. They are not fsynced: only a power cut
 * could take them back, and a power cut ends every process they speak of (the boot id tells).
 */

import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { join } from 'node:path';
import { writeFileAtomically } from '@muster/common/files';
import { isMapping } from '@muster/common/spec/path';
import type { ProcessIdentity } from '../fence/processes.ts';
import type { TaskExit, TaskLocation, TaskName } from '../taskFacts/execution.ts';
import { readTaskFile } from '../taskFacts/taskFile.ts';

/** How the main process ended, while others of its task may still be there. */
export type MainExit = Omit<TaskExit, 'oomKilled'>;

export interface ProcessRecord {
  readonly key: TaskName;
  /** null: the guard died between announcing the start and noting the pid. No record on disk is like that. */
  readonly main: ProcessIdentity | null;
  readonly bootId: string;
  /** Wall clock, epoch milliseconds, for display. */
  readonly startedAtMs: number | null;
  /** Absolute path of the task's control group; null: it has none. */
  readonly cgroup: string | null;
  /** Kept as soon as it is known: killing the stragglers can take long, and a guard can be killed meanwhile. */
  readonly mainExit: MainExit | null;
}

const RECORD_VERSION = 1;

export function writeProcessRecord(directory: string, { main, ...rest }: ProcessRecord): void {
  replaceJson(processPath(directory), { ...rest, ...main, version: RECORD_VERSION });
}

/** null: none was written. One that cannot be read (a power cut in the middle) is taken for one without a pid. */
export function readProcessRecord(task: TaskLocation, bootId: string): ProcessRecord | null {
  const stored = readJsonFile(processPath(task.directory));
  if (stored === null) return null;
  const { pid, startTicks } = stored;
  return {
    key: task.key,
    main: typeof pid === 'number' && typeof startTicks === 'number' ? { pid, startTicks } : null,
    bootId: typeof stored['bootId'] === 'string' ? stored['bootId'] : bootId,
    startedAtMs: typeof stored['startedAtMs'] === 'number' ? stored['startedAtMs'] : null,
    cgroup: typeof stored['cgroup'] === 'string' ? stored['cgroup'] : null,
    mainExit: mainExitOf(stored['mainExit']),
  };
}

export function writeExit(directory: string, exit: TaskExit): void {
  replaceJson(exitPath(directory), { ...exit, version: RECORD_VERSION });
}

export function readExit(directory: string): TaskExit | null {
  const stored = readJsonFile(exitPath(directory));
  const exit = mainExitOf(stored);
  return exit === null ? null : { ...exit, oomKilled: stored?.['oomKilled'] === true };
}

export function removeRecords(directory: string): void {
  rmSync(processPath(directory), { force: true });
  rmSync(exitPath(directory), { force: true });
}

/**
 * The tasks of one agent: a link per task from the runtime directory to the task's own. It is made before there is a
 * process and so announces the start: a guard killed in between leaves it to the next one, which then looks for the
 * process and ends it. Never started twice, never left behind.
 */
export class TaskLinks {
  readonly #directory: string;

  constructor(runtimeDir: string) {
    this.#directory = join(runtimeDir, 'tasks');
    // Not `recursive`: a runtime directory that was removed must not come back.
    if (!existsSync(this.#directory)) mkdirSync(this.#directory, { mode: 0o700 });
  }

  add(task: TaskLocation): void {
    const link = join(this.#directory, task.key);
    rmSync(link, { force: true });
    symlinkSync(task.directory, link);
  }

  has({ key }: TaskLocation): boolean {
    return lstatSync(join(this.#directory, key), { throwIfNoEntry: false }) !== undefined;
  }

  remove(key: TaskName): void {
    rmSync(join(this.#directory, key), { force: true });
  }

  all(): TaskLocation[] {
    return readdirSync(this.#directory).map((key) => ({
      key,
      directory: readlinkSync(join(this.#directory, key)),
    }));
  }
}

function processPath(directory: string): string {
  return join(directory, 'process.json');
}

function exitPath(directory: string): string {
  return join(directory, 'exit.json');
}

/** By rename: whoever reads sees the old or the new one whole. */
export function replaceJson(path: string, value: object): void {
  writeFileAtomically(path, `${JSON.stringify(value)}\n`, 0o600);
}

/** null: no such file. Empty: what is there is not a JSON object. */
export function readJsonFile(path: string): Record<string, unknown> | null {
  let text: string;
  try {
    text = readTaskFile(path, (file) => readFileSync(file, 'utf8'));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return null;
    if (code === 'ELOOP' || code === 'EINVAL') return {};
    throw error;
  }
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? { ...value } : {};
  } catch {
    return {};
  }
}

/** Without the moment on CLOCK_BOOTTIME: the record may be of an earlier boot. null: it is none. */
function mainExitOf(value: unknown): MainExit | null {
  if (!isMapping(value)) return null;
  const { exitCode, signal, finishedAtMs, statusLost } = value;
  const isExit =
    (exitCode === null || typeof exitCode === 'number') &&
    (signal === null || typeof signal === 'string') &&
    (finishedAtMs === null || typeof finishedAtMs === 'number') &&
    typeof statusLost === 'boolean';
  return isExit ? { exitCode, signal, finishedAtMs, statusLost } : null;
}
