/**
 * What the agent knows of its tasks, on disk: `tasks/<key>/task.jsonl` beside the task's output. The first line is the
 * intent, synced before anything is started; each later line is a new phase. After a crash these records and the
 * drivers say what is true.
 *
 * Lines are appended rather than files replaced: replacing a file makes ext4 write its data out at once, which costs
 * more than all else that the agent does for a short task.
 */
import {
  appendFileSync,
  closeSync,
  fsync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { parseTaskKey, type TaskRef, taskKey } from '@muster/common/ids';
import type { TaskEnd } from '@muster/common/views';

/** A task as the coordinator assigned it. */
export interface Assignment {
  readonly task: TaskRef;
  /** Canonical JSON of the job spec. */
  readonly specJson: string;
  readonly nodeCount: number;
  readonly gpuUuids: readonly string[];
  readonly array: { readonly index: number; readonly size: number } | null;
}

export type Phase =
  | { readonly kind: 'prepared' }
  | {
      readonly kind: 'started';
      /** Wall clock, for display. */
      readonly startedAtMs: number;
      /** CLOCK_BOOTTIME, of the boot named in `bootId`. */
      readonly startedBoottimeMs: number;
    }
  | { readonly kind: 'ended'; readonly exit: TaskEnd };

export interface TaskRecord {
  readonly version: 1;
  readonly assignment: Assignment;
  /** The boot that the newest phase was written in. */
  readonly bootId: string;
  readonly phase: Phase;
}

export class TaskRecords {
  private readonly root: string;

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

  /** Bytes of output so far. */
  outputSize(task: TaskRef): number {
    return statSync(this.outputPath(task), { throwIfNoEntry: false })?.size ?? 0;
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
      writeSync(file, `${JSON.stringify(record)}\n`);
      await Promise.all([sync(file), syncDirectory(directory), syncDirectory(this.root)]);
    } finally {
      closeSync(file);
    }
  }

  /** Later phases need no sync: after a power cut the boot id has changed and every process is dead anyway. */
  update(task: TaskRef, bootId: string, phase: Phase): void {
    appendFileSync(this.path(task), `${JSON.stringify({ bootId, phase })}\n`);
  }

  /** Deletes what is left of a task. What the task itself left there can be large, so it goes in the background. */
  async remove(task: TaskRef): Promise<void> {
    await rm(this.directory(task), { recursive: true, force: true });
  }

  /** All records. A directory without a readable one was being made, or being removed, when the agent died. */
  load(): readonly TaskRecord[] {
    return readdirSync(this.root)
      .filter((name) => parseTaskKey(name) !== null)
      .flatMap((name) => {
        const record = readRecord(join(this.root, name, recordName));
        if (record !== null) return [record];
        rmSync(join(this.root, name), { recursive: true, force: true });
        return [];
      });
  }

  private path(task: TaskRef): string {
    return join(this.directory(task), recordName);
  }
}

const recordName = 'task.jsonl';

/** The intent with its newest phase; a last line that a crash cut short does not count. */
function readRecord(path: string): TaskRecord | null {
  let record: TaskRecord | null = null;
  try {
    for (const line of readFileSync(path, 'utf8').split('\n')) {
      const part = JSON.parse(line) as Partial<TaskRecord>;
      record = { ...record, ...part } as TaskRecord;
    }
  } catch {
    // No file, or the end of what was written whole.
  }
  return record;
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
