/**
 * What the agent knows of its tasks, on disk: `tasks/<key>/task.jsonl` beside the task's output. The first line is the
 * intent, synced before anything is started; each later line is a new phase. After a crash these records and the
 * drivers say what is true.
 *
 * Lines are appended rather than files replaced: replacing a file makes ext4 write its data out at once, which costs
 * more than all else that the agent does for a short task.
 */
import {
  closeSync,
  fsync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { MusterError, messageOf } from '@muster/common/errors';
import { parseTaskKey, type TaskRef, taskKey } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import { jobSpecToFile, normalizeJobSpec } from '@muster/common/spec/serialize';
import type { JobSpecFile } from '@muster/common/spec/types';
import type { TaskEnd } from '@muster/common/views';
import type { Assignment } from '../taskFacts/assignment.ts';
import { removeOwnDirectory, removeTree } from '../taskFacts/removal.ts';
import { readTaskFile, writeTaskFile } from '../taskFacts/taskFile.ts';
import type { RanMoments } from './state.ts';

/** What is known of a task for good. */
export type Phase =
  | { readonly kind: 'assigned' }
  | {
      readonly kind: 'running';
      /** Wall clock, for display. */
      readonly startedAtMs: number;
      /** CLOCK_BOOTTIME, of the boot named in `bootId`. */
      readonly startedBoottimeMs: number;
      /** The task was asked to stop. How it ends follows from that, also for an agent that finds it ended. */
      readonly isStopping?: true;
    }
  | {
      readonly kind: 'ended';
      readonly exit: TaskEnd;
      /** null: nothing ran. Absent: an older agent wrote the record. */
      readonly started?: RanMoments | null;
    };

export interface TaskRecord {
  readonly assignment: Assignment;
  /** The boot that the newest phase was written in. */
  readonly bootId: string;
  readonly phase: Phase;
}

/** The form of a record on disk. The job's spec is stored in its canonical form, as the coordinator stores it. */
const formatVersion = 2;

interface StoredIntent {
  readonly version: number;
  /** The record of an older agent has no user. */
  readonly assignment: Omit<Assignment, 'spec' | 'user'> & {
    readonly spec: JobSpecFile;
    readonly user?: string;
  };
  readonly bootId: string;
  readonly phase: Phase;
}

export class TaskRecords {
  private readonly root: string;
  /** Begins in the next turn of the event loop. */
  private rootSync: Promise<void> | null = null;

  /** @param root absolute; made when absent */
  constructor(root: string) {
    this.root = root;
    mkdirSync(root, { recursive: true, mode: 0o700 });
  }

  directory(task: TaskRef): string {
    return this.directoryOfKey(taskKey(task));
  }

  directoryOfKey(key: string): string {
    return join(this.root, key);
  }

  outputPath(task: TaskRef): string {
    return join(this.directory(task), 'output.log');
  }

  /** Bytes of output so far. What a task has put in the place of its output, such as a link, has none. */
  outputSize(task: TaskRef): number {
    try {
      const found = lstatSync(this.outputPath(task), { throwIfNoEntry: false });
      return found?.isFile() === true ? found.size : 0;
    } catch {
      return 0;
    }
  }

  /**
   * Makes the task's directory and puts the intent on disk: there after a power cut, or nothing was started. Only the
   * waits for the disk leave the event loop; a thread for each of the small steps would cost more than they do.
   */
  async create(record: TaskRecord): Promise<void> {
    const { task } = record.assignment;
    const directory = this.directory(task);
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    const file = openSync(this.path(task), 'w', 0o600);
    try {
      writeSync(file, JSON.stringify(stored(record)));
      await Promise.all([sync(file), syncDirectory(directory), this.syncRoot()]);
    } finally {
      closeSync(file);
    }
  }

  /**
   * Later phases need no sync: after a power cut the boot id has changed and every process is dead anyway. Each begins
   * a line of its own, so that one that a full disk cut short does not spoil the next.
   */
  update(task: TaskRef, bootId: string, phase: Phase): void {
    writeTaskFile(this.path(task), `\n${JSON.stringify({ bootId, phase })}`, 'end');
  }

  /** The record goes first: half of a task's output must not pass for all of it after a crash. */
  async remove(task: TaskRef): Promise<void> {
    const directory = this.directory(task);
    removeFile(this.path(task));
    await removeOwnDirectory(directory);
    const isSmall = this.outputSize(task) < outputBytesAtOnce;
    if (!isSmall || !removeSmall(directory)) await rm(directory, { recursive: true, force: true });
  }

  /** Tasks that are recorded in one turn of the event loop share the wait for the directory that their own are in. */
  private syncRoot(): Promise<void> {
    this.rootSync ??= new Promise((resolve, reject) => {
      setImmediate(() => {
        // What is recorded from here on may come too late for this one.
        this.rootSync = null;
        syncDirectory(this.root).then(resolve, reject);
      });
    });
    return this.rootSync;
  }

  /**
   * All records. A directory without one was being made, or being removed, when the agent died.
   * @throws {MusterError} for a record that is there and cannot be read: its task may be running
   */
  load(): readonly TaskRecord[] {
    const records: TaskRecord[] = [];
    for (const name of readdirSync(this.root)) {
      if (name.startsWith(asidePrefix)) deleteInBackground(join(this.root, name));
      if (parseTaskKey(name) === null) continue;
      const record = readRecord(join(this.root, name, recordName));
      if (record === null) this.setAside(name);
      else records.push(record);
    }
    return records;
  }

  /** What a task left can take long to delete, and its name may be needed again at once. */
  private setAside(name: string): void {
    const aside = mkdtempSync(join(this.root, asidePrefix));
    renameSync(join(this.root, name), join(aside, name));
    deleteInBackground(aside);
  }

  private path(task: TaskRef): string {
    return join(this.directory(task), recordName);
  }
}

/** Writes a phase down. A full disk does not hide what happens to a task: after a restart the drivers report what is not recorded. */
export function recordPhase(
  {
    records,
    bootId,
    log,
  }: { readonly records: Pick<TaskRecords, 'update'>; readonly bootId: string; readonly log: Logger },
  task: TaskRef,
  phase: Phase,
): void {
  try {
    records.update(task, bootId, phase);
  } catch (error) {
    const fields = { task: taskKey(task), phase: phase.kind, error: messageOf(error) };
    log.error(fields, 'the state of a task could not be written down');
  }
}

/** Bytes. A file of this size takes no time to delete. */
const outputBytesAtOnce = 1024 * 1024;
/** What agent and guard write into the directory of a task. */
const knownFiles: ReadonlySet<string> = new Set([
  'output.log',
  'output.json',
  'process.jsonl',
  'usage.json',
  'lease',
]);

/** @throws {Error} with the kernel's code */
function removeFile(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // It is gone, or the task has put a directory in its place.
    rmSync(path, { recursive: true, force: true });
  }
}

/** Handing each small step to a thread would cost more than the steps do. @returns false: something else is left, such as a directory */
function removeSmall(directory: string): boolean {
  try {
    const names = readdirSync(directory);
    if (!names.every((name) => knownFiles.has(name))) return false;
    for (const name of names) unlinkSync(join(directory, name));
    rmdirSync(directory);
    return true;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ENOENT';
  }
}

const recordName = 'task.jsonl';
const asidePrefix = '.removed-';

function stored({ assignment, bootId, phase }: TaskRecord): StoredIntent {
  const spec = jobSpecToFile(assignment.spec);
  return { version: formatVersion, assignment: { ...assignment, spec }, bootId, phase };
}

/** The intent with its newest phase. A line that was cut short does not count. null: the intent is not complete. */
function readRecord(path: string): TaskRecord | null {
  const [intent, ...phases] = readLines(path).map(parseLine);
  if (intent?.assignment === undefined) return null;
  if (intent.version !== formatVersion) {
    throw new MusterError(
      'failed_precondition',
      `the record ${path} has format ${intent.version}, this agent reads format ${formatVersion}: end the task with the agent that started it`,
    );
  }
  const { assignment, bootId, phase } = intent as StoredIntent;
  const spec = normalizeJobSpec(assignment.spec);
  const first = { assignment: { user: '', ...assignment, spec }, bootId, phase };
  return phases.reduce<TaskRecord>(
    (record, change) => ({ ...record, ...(change as RecordChange | null) }),
    first,
  );
}

/** A later line of a record. */
type RecordChange = Pick<TaskRecord, 'bootId' | 'phase'>;

function readLines(path: string): readonly string[] {
  try {
    return readTaskFile(path, (file) => readFileSync(file, 'utf8')).split('\n');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return [];
    const message = `the record ${path} cannot be read (${messageOf(error)}); make it readable and start the agent again`;
    throw new MusterError('failed_precondition', message, { cause: error });
  }
}

function parseLine(line: string): Partial<StoredIntent> | null {
  try {
    return JSON.parse(line) as Partial<StoredIntent>;
  } catch {
    return null;
  }
}

/** What is left after a failure or a crash is deleted at the next start. */
function deleteInBackground(path: string): void {
  removeTree(path).catch(() => {});
}

const sync = promisify(fsync);

async function syncDirectory(path: string): Promise<void> {
  const directory = openSync(path, 'r');
  try {
    await sync(directory);
  } finally {
    closeSync(directory);
  }
}
