/**
 * What a guard leaves on disk about a task, so that the next guard can continue where this one was killed:
 * `process.jsonl` beside the task's output. Its first line names the process, the later ones report how it ended. Lines are
 * added, because a file that is replaced costs more than all else that is written down about a short task.
 *
 * Nothing is fsynced: only a power cut could undo it, and a power cut ends every process that it names (the boot id shows
 * that).
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
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { writeFileAtomically } from '@muster/common/files';
import { isMapping } from '@muster/common/spec/path';
import type { ProcessIdentity } from '../fence/processes.ts';
import type { TaskExit, TaskLocation, TaskName } from '../taskFacts/execution.ts';
import { readTaskFile, writeTaskFile } from '../taskFacts/taskFile.ts';

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
  /** Absolute paths of those that it has besides, for its limits. */
  readonly limitGroups: readonly string[];
  /** Kept as soon as it is known: killing the stragglers can take long, and a guard can be killed meanwhile. */
  readonly mainExit: MainExit | null;
}

/** What is on disk about a task. */
export interface StoredTask extends ProcessRecord {
  /** null: it has not ended, as far as anybody could note. */
  readonly exit: TaskExit | null;
}

const recordVersion = 2;

/**
 * Writes the first line about a task. The task runs already and may have put something there: that goes.
 * @throws {Error} with the kernel's code
 */
export function writeProcessRecord(directory: string, { main, mainExit, ...rest }: ProcessRecord): void {
  const path = recordPath(directory);
  const text = JSON.stringify({ ...rest, ...main, version: recordVersion });
  inFreePlace(path, () => writeFileSync(path, text, { flag: 'wx', mode: 0o600 }));
  if (mainExit !== null) writeMainExit(directory, mainExit);
}

/** @throws {Error} with the kernel's code */
export function writeMainExit(directory: string, mainExit: MainExit): void {
  append(directory, { mainExit });
}

/** @throws {Error} with the kernel's code */
export function writeExit(directory: string, exit: TaskExit): void {
  append(directory, { exit });
}

/**
 * null: none was written. One whose first line cannot be read (a power cut in the middle) is taken for one without a pid.
 * @param bootId of a record that names none
 */
export function readStoredTask(task: TaskLocation, bootId: string): StoredTask | null {
  const path = recordPath(task.directory);
  // Most tasks that are asked about have just come, and an exception costs more than a look.
  if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return null;
  const text = readText(path);
  // Empty: its guard is about to write the first line, or was killed before.
  if (text === null || text === '') return null;
  const stored = Object.assign({}, ...text.split('\n').map(parseObject)) as Record<string, unknown>;
  const { pid, startTicks, exit } = stored;
  const exited = mainExitOf(exit);
  return {
    key: task.key,
    main: typeof pid === 'number' && typeof startTicks === 'number' ? { pid, startTicks } : null,
    bootId: typeof stored['bootId'] === 'string' ? stored['bootId'] : bootId,
    startedAtMs: typeof stored['startedAtMs'] === 'number' ? stored['startedAtMs'] : null,
    cgroup: typeof stored['cgroup'] === 'string' ? stored['cgroup'] : null,
    limitGroups: textsOf(stored['limitGroups']),
    mainExit: mainExitOf(stored['mainExit']),
    exit: exited === null ? null : { ...exited, oomKilled: isMapping(exit) && exit['oomKilled'] === true },
  };
}

export function removeRecords(directory: string): void {
  removeFile(recordPath(directory));
  removeFile(signalPath(directory));
}

/**
 * Notes that a stop has sent a signal to the task. The guard sends it, or the agent while the guard hangs, and neither may send
 * it after the other: to many programs a second SIGTERM means that they need not save.
 * @throws {Error} with the kernel's code
 */
export function noteSignal(directory: string, signal: string): void {
  replaceJson(signalPath(directory), { signal });
}

/** @returns the signal that a stop of the task has sent. Null if none has */
export function readSignal(directory: string): string | null {
  const signal = readJsonFile(signalPath(directory))?.['signal'];
  return typeof signal === 'string' ? signal : null;
}

function signalPath(directory: string): string {
  return join(directory, 'stop-signal.json');
}

/** Each begins a line of its own, so that one that a full disk cut short does not spoil the next. */
function append(directory: string, fields: object): void {
  const path = recordPath(directory);
  const line = `\n${JSON.stringify(fields)}`;
  try {
    writeTaskFile(path, line, 'end');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ELOOP' && code !== 'EINVAL' && code !== 'ENXIO') throw error;
    // The task has put something else in its place, which goes. What it loses by that is its own.
    rmSync(path, { force: true });
    writeTaskFile(path, line, 'end');
  }
}

/**
 * The tasks of one agent: a link per task from the runtime directory to the task's own. It is made before there is a
 * process and so announces the start: a guard killed in between leaves it to the next one, which then looks for the
 * process and ends it. Never started twice, never left behind.
 */
export class TaskLinks {
  private readonly directory: string;

  constructor(runtimeDir: string) {
    this.directory = join(runtimeDir, 'tasks');
    // Not `recursive`: a runtime directory that was removed must not come back.
    if (!existsSync(this.directory)) mkdirSync(this.directory, { mode: 0o700 });
  }

  add(task: TaskLocation): void {
    const link = join(this.directory, task.key);
    inFreePlace(link, () => symlinkSync(task.directory, link));
  }

  has({ key }: TaskLocation): boolean {
    return lstatSync(join(this.directory, key), { throwIfNoEntry: false }) !== undefined;
  }

  remove(key: TaskName): void {
    removeFile(join(this.directory, key));
  }

  all(): TaskLocation[] {
    return readdirSync(this.directory).map((key) => ({
      key,
      directory: readlinkSync(join(this.directory, key)),
    }));
  }
}

/** Makes what is to lie at the path. What lies there already goes first; hardly ever does anything, so nobody looks before. */
function inFreePlace(path: string, make: () => void): void {
  try {
    make();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    rmSync(path, { force: true });
    make();
  }
}

/** One that is gone is fine. `rmSync` would look twice at what there is before it removes it. */
function removeFile(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}

function recordPath(directory: string): string {
  return join(directory, 'process.jsonl');
}

/** By rename: anyone who reads sees the old or the new one whole. */
export function replaceJson(path: string, value: object): void {
  writeFileAtomically(path, `${JSON.stringify(value)}\n`, 0o600);
}

/** null: no such file. Empty: what is there is not a JSON object. */
export function readJsonFile(path: string): Record<string, unknown> | null {
  const text = readText(path);
  return text === null ? null : parseObject(text);
}

/** null: no such file. An empty object: what is there is not a file. */
function readText(path: string): string | null {
  try {
    return readTaskFile(path, (file) => readFileSync(file, 'utf8'));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return null;
    if (code === 'ELOOP' || code === 'EINVAL') return '{}';
    throw error;
  }
}

/** Empty: it is not a JSON object. */
function parseObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return isMapping(value) ? { ...value } : {};
  } catch {
    return {};
  }
}

/** The record of an older guard has none. */
function textsOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : [];
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
