/**
 * What the agent knows of its tasks, on disk: `tasks/<key>/task.json` beside the task's output. The intent is there,
 * synced, before anything is started; after a crash these records and the drivers say what is true.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { writeFileAtomically, writeFileDurably } from '@muster/common/files';
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

  /** Makes the task's directory and puts the intent on disk. */
  create(record: TaskRecord): void {
    const directory = this.directory(record.assignment.task);
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    writeFileDurably(join(directory, 'task.json'), JSON.stringify(record), 0o600);
  }

  /** Later phases need no sync: after a power cut the boot id has changed and every process is dead anyway. */
  update(record: TaskRecord): void {
    writeFileAtomically(join(this.directory(record.assignment.task), 'task.json'), JSON.stringify(record), 0o600);
  }

  remove(task: TaskRef): void {
    rmSync(this.directory(task), { recursive: true, force: true });
  }

  /** All records. A directory without a readable one was being made, or being removed, when the agent died. */
  load(): readonly TaskRecord[] {
    return readdirSync(this.root)
      .filter((name) => parseTaskKey(name) !== null)
      .flatMap((name) => {
        try {
          return [JSON.parse(readFileSync(join(this.root, name, 'task.json'), 'utf8')) as TaskRecord];
        } catch {
          rmSync(join(this.root, name), { recursive: true, force: true });
          return [];
        }
      });
  }

  outputPath(task: TaskRef): string {
    return join(this.directory(task), 'output.log');
  }
}

