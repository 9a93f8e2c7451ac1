/**
 * What the agent knows of its tasks, on disk: `tasks/<key>/task.jsonl` beside the task's output. The first line is the
 * intent, synced before anything is started; each later line is a new phase. After a crash these records and the
 * drivers say what is true.
 *
 * Lines are appended rather than files replaced: replacing a file makes ext4 write its data out at once, which costs
 * more than all else that the agent does for a short task.
 */
import { appendFileSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { mkdir, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
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

  /** Makes the task's directory and puts the intent on disk: there after a power cut, or nothing was started. */
  async create(record: TaskRecord): Promise<void> {
    const directory = this.directory(record.assignment.task);
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const file = await open(this.path(record.assignment.task), 'w', 0o600);
    try {
      await file.writeFile(`${JSON.stringify(record)}\n`);
      await file.sync();
    } finally {
      await file.close();
    }
    await syncDirectory(directory);
    await syncDirectory(this.root);
  }

  /** Later phases need no sync: after a power cut the boot id has changed and every process is dead anyway. */
  update(task: TaskRef, bootId: string, phase: Phase): void {
    appendFileSync(this.path(task), `${JSON.stringify({ bootId, phase })}\n`);
  }

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

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
