/** Which tasks' output is being copied from the engine by this agent (see containerSpec.ts for when that is needed). */

import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from '@muster/common/log';
import { readOutputRecord, writeOutputRecord } from '../../logs/outputRecord.ts';
import type { TaskLocation, TaskName } from '../../taskFacts/execution.ts';
import { labels, type OutputMode } from './containerSpec.ts';
import type { Engine } from './engine.ts';
import type { Container } from './engineAnswers.ts';
import { copyUntilEnd, copyWhole } from './engineOutput.ts';

interface Copy {
  readonly abort: AbortController;
  /** Never rejects. */
  readonly done: Promise<void>;
}

export function outputPath(task: TaskLocation): string {
  return join(task.directory, 'output.log');
}

export class TaskOutputs {
  private readonly engine: Engine;
  private readonly log: Logger;
  /** Finished ones too, so that an ended task's output is read once; until the task is forgotten. */
  private readonly copies = new Map<TaskName, Copy>();

  constructor(engine: Engine, log: Logger) {
    this.engine = engine;
    this.log = log;
  }

  /** Copies in the background where the engine keeps the output, once for each task. */
  follow(container: Container, task: TaskLocation): void {
    const isKeptByEngine = container.labels[labels.output] === ('engine' satisfies OutputMode);
    if (!isKeptByEngine || this.copies.has(task.key)) return;
    this.noteCopied(task);
    const abort = new AbortController();
    const { signal } = abort;
    const target = { engine: this.engine, containerId: container.id, path: outputPath(task), signal };
    const fields = (error: unknown) => ({ task: task.key, error: String(error) });
    const done = copyUntilEnd(target, (error, failures) => {
      const level = failures === 1 ? 'warn' : 'debug';
      this.log[level](fields(error), 'copying the output of a task was interrupted; trying again');
    }).catch((error: unknown) => {
      if (!signal.aborted) this.log.error(fields(error), 'a part of the output of a task is lost');
    });
    this.copies.set(task.key, { abort, done });
  }

  /** Anyone who watches over the file adds nothing to a copy: its length says how much has been copied. */
  private noteCopied(task: TaskLocation): void {
    const path = outputPath(task);
    const record = readOutputRecord(path);
    if (record.copied) return;
    try {
      writeOutputRecord(path, { ...record, copied: true });
    } catch (error) {
      this.log.warn({ task: task.key, error: String(error) }, 'cannot note that an output is copied');
    }
  }

  /** Resolves when the output of an ended task is complete, or as complete as the disk allows. */
  async complete(container: Container, task: TaskLocation): Promise<void> {
    this.follow(container, task);
    const copy = this.copies.get(task.key);
    if (copy !== undefined) return copy.done;

    // The shell that could not open the file has reported that to the engine, and nobody would see why the task failed.
    const path = outputPath(task);
    const isEmpty = (await stat(path).catch(() => null))?.size === 0;
    if (!isEmpty || container.exitCode === 0) return;
    const { signal } = new AbortController();
    try {
      await copyWhole({ engine: this.engine, containerId: container.id, path, signal });
    } catch (error) {
      this.log.error({ task: task.key, error: String(error) }, 'cannot read why a task ended without output');
    }
  }

  async forget(key: TaskName): Promise<void> {
    const copy = this.copies.get(key);
    copy?.abort.abort(new Error('the task was removed'));
    await copy?.done;
    this.copies.delete(key);
  }

  /** After this no file is written any longer: another agent may do so from now on. */
  async close(): Promise<void> {
    const copies = [...this.copies.values()];
    for (const copy of copies) copy.abort.abort(new Error('the Docker driver was closed'));
    await Promise.all(copies.map((copy) => copy.done));
  }
}
