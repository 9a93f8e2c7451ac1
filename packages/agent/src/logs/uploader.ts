/**
 * Sends the output of this node's tasks to the coordinator, on a connection of its own so that a flood of output
 * cannot delay heartbeats. Files are read from where the coordinator left off, a piece per task and round; nothing is
 * buffered beyond the piece in hand, so 100 MB of output cost time and no memory.
 */

import { type FileHandle, open } from 'node:fs/promises';
import type { ClientDuplexStream } from '@grpc/grpc-js';
import { messageOf } from '@muster/common/errors';
import type { LogUpload } from '@muster/common/gen/muster/v1/LogUpload';
import type { LogUploadAck__Output } from '@muster/common/gen/muster/v1/LogUploadAck';
import { type TaskKey, type TaskRef, taskKey } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import { backoffMs, withJitter } from '@muster/common/retry';
import { taskRefFromWire, taskRefToWire } from '@muster/common/wire/codec';

const pieceBytes = 128 * 1024;
/** How often the files of running tasks are looked at. */
const lookIntervalMs = 100;
/** Sent and not yet acknowledged, per task: a window that keeps a fast link busy. */
const windowBytes = 1024 * 1024;

type UploadStream = ClientDuplexStream<LogUpload, LogUploadAck__Output>;

interface Output {
  readonly task: TaskRef;
  readonly path: string;
  /** Known once the task has ended. */
  size: number | null;
  file: FileHandle | null;
  sentOffset: number;
  ackedOffset: number;
  /** The end of the output has been sent on this connection. */
  completeSent: boolean;
  complete: boolean;
}

export interface UploaderParts {
  readonly openStream: () => UploadStream;
  readonly log: Logger;
  /** Uniform in [0, 1). */
  readonly chance: () => number;
  /** The coordinator has everything of this task, synced. */
  readonly onComplete: (task: TaskRef) => void;
}

export class LogUploader {
  private readonly parts: UploaderParts;
  private readonly outputs = new Map<TaskKey, Output>();
  private stream: UploadStream | null = null;
  private failures = 0;
  private closed = false;
  private pumping = false;
  private timer: NodeJS.Timeout | null = null;

  constructor(parts: UploaderParts) {
    this.parts = parts;
  }

  /** Begins to follow a task's output, or says where it ends. */
  follow(task: TaskRef, path: string, size: number | null): void {
    const key = taskKey(task);
    const output = this.outputs.get(key);
    if (output === undefined) {
      const fresh = {
        task,
        path,
        size,
        file: null,
        sentOffset: 0,
        ackedOffset: 0,
        completeSent: false,
        complete: false,
      };
      this.outputs.set(key, fresh);
    } else if (size !== null) {
      output.size = size;
    }
    this.look();
  }

  forget(task: TaskRef): void {
    const output = this.outputs.get(taskKey(task));
    this.outputs.delete(taskKey(task));
    void output?.file?.close();
  }

  close(): void {
    this.closed = true;
    if (this.timer !== null) clearTimeout(this.timer);
    this.stream?.cancel();
    for (const output of this.outputs.values()) void output.file?.close();
    this.outputs.clear();
  }

  /** Sends whatever there is, then looks again for as long as some task may still write. */
  private look(): void {
    if (this.closed || this.pumping) return;
    this.pumping = true;
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    this.pump()
      .catch((error: unknown) => this.disconnected(error))
      .finally(() => {
        this.pumping = false;
        const unfinished = [...this.outputs.values()].some((output) => !output.complete);
        if (unfinished && !this.closed && this.timer === null) {
          this.timer = setTimeout(() => this.look(), this.retryDelayMs());
        }
      });
  }

  private retryDelayMs(): number {
    if (this.failures === 0) return lookIntervalMs;
    return withJitter(backoffMs({ initialMs: 200, maxMs: 1_000 }, this.failures), this.parts.chance());
  }

  private async pump(): Promise<void> {
    for (let progressed = true; progressed && !this.closed; ) {
      progressed = false;
      for (const output of this.outputs.values()) {
        if (await this.sendPiece(output)) progressed = true;
      }
    }
  }

  /** @returns whether anything was sent */
  private async sendPiece(output: Output): Promise<boolean> {
    if (output.complete || output.completeSent || output.sentOffset - output.ackedOffset >= windowBytes)
      return false;
    output.file ??= await open(output.path, 'r').catch(() => null);
    if (output.file === null) return false;
    const stream = this.connect();
    const buffer = Buffer.allocUnsafe(pieceBytes);
    const { bytesRead } = await output.file.read(buffer, 0, pieceBytes, output.sentOffset);
    if (this.stream !== stream) return false;
    const end = output.sentOffset + bytesRead;
    const complete = output.size !== null && end >= output.size;
    if (bytesRead === 0 && !complete) return false;
    const piece = {
      task: taskRefToWire(output.task),
      offset: output.sentOffset,
      data: buffer.subarray(0, bytesRead),
      complete,
    };
    output.sentOffset = end;
    output.completeSent = complete;
    if (!stream.write(piece)) await this.drained(stream);
    return true;
  }

  private connect(): UploadStream {
    if (this.stream !== null) return this.stream;
    const stream = this.parts.openStream();
    this.stream = stream;
    for (const output of this.outputs.values()) {
      output.sentOffset = output.ackedOffset;
      output.completeSent = false;
    }
    stream.on('data', (ack: LogUploadAck__Output) => this.acknowledged(ack));
    stream.on('error', (error: Error) => {
      if (this.stream === stream) this.disconnected(error);
    });
    stream.on('end', () => {
      if (this.stream === stream) this.disconnected(new Error('the coordinator ended the upload'));
    });
    return stream;
  }

  private acknowledged(ack: LogUploadAck__Output): void {
    this.failures = 0;
    const task = taskRefFromWire(ack.task);
    const output = task === null ? undefined : this.outputs.get(taskKey(task));
    if (task === null || output === undefined) return;
    output.ackedOffset = ack.nextOffset;
    // The coordinator has more than we sent on this connection, or lost some: its word counts.
    if (ack.nextOffset > output.sentOffset) output.sentOffset = ack.nextOffset;
    if (ack.complete) {
      output.complete = true;
      void output.file?.close();
      output.file = null;
      this.parts.onComplete(task);
    } else if (output.completeSent && output.size !== null && ack.nextOffset >= output.size) {
      // Everything arrived and was not synced: ask once more.
      output.completeSent = false;
    }
    this.look();
  }

  private disconnected(error: unknown): void {
    this.failures += 1;
    if (this.failures === 1 && !this.closed) {
      this.parts.log.warn(
        { error: messageOf(error) },
        'output cannot be uploaded now; it stays here until it can',
      );
    }
    const { stream } = this;
    this.stream = null;
    stream?.cancel();
  }

  private drained(stream: UploadStream): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        for (const event of ['drain', 'error', 'close', 'end']) stream.removeListener(event, done);
        resolve();
      };
      for (const event of ['drain', 'error', 'close', 'end']) stream.once(event, done);
    });
  }
}
