/** What goes from the tasks of this node to the coordinator beside job control: their output, and the metrics in it. */
import type { Metadata } from '@grpc/grpc-js';
import type { AgentHubClient } from '@muster/common/gen/muster/v1/AgentHub';
import type { TaskRef } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import { LogUploader, type UploaderParts } from '../logs/uploader.ts';
import { RowUploader } from '../training/rowUploader.ts';

export interface TaskUploadsParts extends Pick<UploaderParts, 'maskOf'> {
  /** A connection that heartbeats do not share; another one after the credential was renewed. */
  readonly client: () => Pick<AgentHubClient, 'UploadLogs' | 'UploadRows'>;
  /** Of the credential as it is then. */
  readonly metadata: () => Metadata;
  /** Reads the rest of a task's output; resolves when all of its metrics are known. */
  readonly finish: (task: TaskRef) => Promise<unknown>;
  /** The coordinator has all of the task's output and metrics. */
  readonly onComplete: (task: TaskRef) => void;
  readonly monotonicMs: () => number;
  /** Uniform in [0, 1). */
  readonly chance: () => number;
  readonly log: Logger;
}

export class TaskUploads {
  readonly rows: RowUploader;
  private readonly output: LogUploader;
  private readonly parts: TaskUploadsParts;

  constructor(parts: TaskUploadsParts) {
    this.parts = parts;
    const { client, metadata, log, chance, monotonicMs } = parts;
    this.rows = new RowUploader({
      openStream: () => client().UploadRows(metadata()),
      log,
      chance,
      monotonicMs,
    });
    this.output = new LogUploader({
      openStream: () => client().UploadLogs(metadata()),
      maskOf: parts.maskOf,
      onComplete: (task) => this.outputArrived(task),
      log,
      chance,
      monotonicMs,
    });
  }

  /** @param size where the output ends; null: the task runs */
  follow(task: TaskRef, path: string, size: number | null): void {
    this.output.follow(task, path, size);
    // Of one that ended before this agent was, nobody has read the metrics yet.
    if (size !== null) void this.parts.finish(task);
  }

  forget(task: TaskRef): void {
    this.output.forget(task);
    this.rows.forget(task);
  }

  close(): void {
    this.output.close();
    this.rows.close();
  }

  /** The directory of the task goes when its metrics have arrived, too: they are read from the output. */
  private outputArrived(task: TaskRef): void {
    const done = () => this.parts.onComplete(task);
    void this.parts.finish(task).then(() => this.rows.whenComplete(task, done));
  }
}
