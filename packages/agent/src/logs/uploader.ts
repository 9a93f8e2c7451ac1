/**
 * Sends the output of this node's tasks to the coordinator, on a connection of its own so that a flood of output
 * cannot delay heartbeats. Files are read from where the coordinator left off, a piece per task and round; nothing is
 * buffered beyond the piece in hand, so 100 MB of output cost time and no memory. What the node has dropped of an output,
 * and what the coordinator would not keep, is not sent.
 */
import type { FileHandle } from 'node:fs/promises';
import type { ClientDuplexStream } from '@grpc/grpc-js';
import { messageOf } from '@muster/common/errors';
import type { LogUpload } from '@muster/common/gen/muster/v1/LogUpload';
import type { LogUploadAck__Output } from '@muster/common/gen/muster/v1/LogUploadAck';
import { type TaskKey, type TaskRef, taskKey } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import { taskRefFromWire, taskRefToWire } from '@muster/common/wire/codec';
import { uploadWaitMs } from '@muster/common/wire/uploadPace';
import type { Mask } from '../taskFacts/mask.ts';
import {
  closeOutput,
  isOutputEmpty,
  openOutput,
  outputFileSize,
  readMasked,
  readOutput,
} from './outputFile.ts';
import { type OutputRecord, readOutputRecord, untouched } from './outputRecord.ts';

const pieceBytes = 128 * 1024;
/** How often the files of running tasks are looked at. */
const lookIntervalMs = 100;
/** Sent and not yet acknowledged, per task: a window that keeps a fast link busy. */
const windowBytes = 1024 * 1024;
/** Unsent output is skipped only when it exceeds the useful part by this factor, instead of a little with every piece. */
const tailSlack = 1.25;
/** The maximum is short: users wait for what a restarted coordinator lacks. */
const reconnect = { initialMs: 200, maxMs: 1_000 };

type UploadStream = ClientDuplexStream<LogUpload, LogUploadAck__Output>;

interface Output {
  readonly task: TaskRef;
  readonly path: string;
  /** Known once the task has ended. */
  size: number | null;
  file: FileHandle | null;
  sentOffset: number;
  ackedOffset: number;
  /** Where each piece ends that was sent on this connection and not yet acknowledged, oldest first. */
  unacknowledged: number[];
  /** The end of the output has been sent on this connection. */
  completeSent: boolean;
  complete: boolean;
  /** Reading failed, and that has been logged. */
  unreadable: boolean;
  /** What was done to the file, as of the last look. */
  record: OutputRecord;
  /** Of what has not been sent, so much before the end is of use; 0: all. */
  tailBytes: number;
  /** The coordinator cannot take more before this; monotonic. */
  pausedUntilMs: number;
}

export interface UploaderParts {
  readonly openStream: () => UploadStream;
  readonly log: Logger;
  /** Uniform in [0, 1). */
  readonly chance: () => number;
  readonly monotonicMs: () => number;
  /** What hides the secrets of a task. null: it has none. */
  readonly maskOf: (task: TaskRef) => Pick<Mask, keyof Mask> | null;
  /** The coordinator has everything of this task, synced. */
  readonly onComplete: (task: TaskRef) => void;
}

export class LogUploader {
  private readonly parts: UploaderParts;
  private readonly outputs = new Map<TaskKey, Output>();
  private stream: UploadStream | null = null;
  private failures = 0;
  /** The newest of them. */
  private failure: unknown = null;
  private closed = false;
  private pumping = false;
  /** Something has changed since the pump last began a round. */
  private changed = false;
  private timer: NodeJS.Timeout | null = null;

  constructor(parts: UploaderParts) {
    this.parts = parts;
  }

  /** Begins to follow a task's output, or sets where it ends. */
  follow(task: TaskRef, path: string, size: number | null): void {
    const key = taskKey(task);
    const output = this.outputs.get(key);
    if (output === undefined) this.outputs.set(key, newOutput(task, path, size));
    else if (size !== null) output.size = size;
    // A task that has just begun has printed nothing yet: it waits for the next look, if one is due.
    if (size !== null || !this.isLookDue()) this.look();
  }

  forget(task: TaskRef): void {
    const output = this.outputs.get(taskKey(task));
    this.outputs.delete(taskKey(task));
    closeOutput(output?.file ?? null);
  }

  close(): void {
    this.closed = true;
    if (this.timer !== null) clearTimeout(this.timer);
    this.stream?.cancel();
    for (const output of this.outputs.values()) closeOutput(output.file);
    this.outputs.clear();
  }

  /** Not once every output is complete, though their tasks are not forgotten yet. */
  private isLookDue(): boolean {
    return this.pumping || this.timer !== null;
  }

  /** Sends whatever there is, then looks again for as long as some task may still write. */
  private look(): void {
    this.changed = true;
    if (this.closed || this.pumping) return;
    this.pumping = true;
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    this.pump()
      .catch((error: unknown) => this.disconnected(error))
      .finally(() => {
        this.pumping = false;
        const unfinished = [...this.outputs.values()].some((output) => !output.complete);
        if (unfinished && !this.closed) this.timer = setTimeout(() => this.look(), this.retryDelayMs());
      });
  }

  private retryDelayMs(): number {
    if (this.failures === 0) return lookIntervalMs;
    return uploadWaitMs(reconnect, this.failures, this.failure, this.parts.chance());
  }

  /** Every task in turn, a piece each, until there is nothing to send or no room for it. */
  private async pump(): Promise<void> {
    while (this.changed && !this.closed) {
      this.changed = false;
      for (const output of this.outputs.values()) {
        if (isWaiting(output, this.parts.monotonicMs())) continue;
        if (await this.sendPiece(output)) this.changed = true;
      }
    }
  }

  /** @returns whether anything was sent */
  private async sendPiece(output: Output): Promise<boolean> {
    if (!(await this.hasUnsent(output))) return false;
    const stream = this.connect();
    const before = output.sentOffset;
    const offset = nextPosition(output);
    const read = await this.read(output, offset);
    // The coordinator may meanwhile have asked for another offset; these bytes belong to where they were read.
    const isCurrent = this.stream === stream && this.isFollowed(output) && output.sentOffset === before;
    if (read === null || !isCurrent) return false;
    output.record = readOutputRecord(output.path);
    // A part of it was dropped while it was read: once more, from where there is output again.
    if (nextPosition(output) !== offset) return true;
    const data = read.subarray(0, Math.max(0, firstDropped(output, offset) - offset));
    const end = offset + data.length;
    // Without data it is shorter than when the task ended: what was cut off can no longer be sent.
    const complete = output.size !== null && (end >= output.size || data.length === 0);
    if (data.length === 0 && !complete) return false;
    if (complete && end < (output.size ?? 0)) {
      const fields = { task: taskKey(output.task), bytes: output.size, sent: end };
      this.parts.log.warn(fields, 'the rest of the output of a task was removed before it could be uploaded');
    }
    output.sentOffset = end;
    output.completeSent = complete;
    output.unacknowledged.push(end);
    const { heldBack } = output.record;
    const piece = { offset, data, complete, followsGap: offset > before, heldBack, waits: true };
    if (!stream.write({ task: taskRefToWire(output.task), ...piece })) await this.drained(stream);
    return true;
  }

  /** Whether there are bytes to send, or the end of them. */
  private async hasUnsent(output: Output): Promise<boolean> {
    try {
      // Most short tasks print nothing while they run, and a look costs less than to open a file.
      if (output.file === null && output.size === null && isOutputEmpty(output.path)) return false;
      output.file ??= await this.open(output);
      if (!this.isFollowed(output)) return false;
      if (output.size !== null) return true;
      return output.file !== null && outputFileSize(output.file) > output.sentOffset;
    } catch (error) {
      return this.cannotRead(output, error);
    }
  }

  private async open(output: Output): Promise<FileHandle | null> {
    const file = await openOutput(output.path);
    if (this.isFollowed(output)) return file;
    closeOutput(file);
    return null;
  }

  /** @returns null when it cannot be read now */
  private async read(output: Output, offset: number): Promise<Buffer | null> {
    if (output.file === null) return Buffer.alloc(0);
    try {
      const mask = this.parts.maskOf(output.task);
      if (mask !== null) return await readMasked(output.file, offset, pieceBytes, mask, output.size);
      return await readOutput(output.file, offset, pieceBytes);
    } catch (error) {
      this.cannotRead(output, error);
      return null;
    }
  }

  /** One unreadable file must not hold up the others: it is tried again with every look. */
  private cannotRead(output: Output, error: unknown): false {
    if (!output.unreadable && this.isFollowed(output)) {
      const fields = { task: taskKey(output.task), path: output.path, error: messageOf(error) };
      this.parts.log.error(fields, 'the output of a task cannot be read');
      output.unreadable = true;
    }
    return false;
  }

  private isFollowed(output: Output): boolean {
    return this.outputs.get(taskKey(output.task)) === output;
  }

  private connect(): UploadStream {
    if (this.stream !== null) return this.stream;
    const stream = this.parts.openStream();
    this.stream = stream;
    stream.on('data', (ack: LogUploadAck__Output) => {
      if (this.stream === stream) this.acknowledged(ack);
    });
    stream.on('error', (error: Error) => {
      if (this.stream === stream) this.disconnected(error);
    });
    stream.on('end', () => {
      if (this.stream === stream) this.disconnected(new Error('the coordinator ended the upload'));
    });
    return stream;
  }

  /** There is one acknowledgement for each piece, in order. */
  private acknowledged(ack: LogUploadAck__Output): void {
    this.failures = 0;
    const task = taskRefFromWire(ack.task);
    const output = task === null ? undefined : this.outputs.get(taskKey(task));
    if (output === undefined) return;
    const { nextOffset } = ack;
    const end = output.unacknowledged.shift() ?? 0;
    output.ackedOffset = nextOffset;
    output.tailBytes = ack.tailBytes;
    if (ack.complete) {
      this.finish(output);
    } else if (ack.retryAfterMs > 0) {
      output.pausedUntilMs = this.parts.monotonicMs() + ack.retryAfterMs;
      this.goBackTo(output, nextOffset);
    } else if (nextOffset > output.sentOffset) {
      // It had more than we sent: we were restarted.
      output.sentOffset = nextOffset;
    } else if (nextOffset < end) {
      // It lacks what came before this piece: it was restarted and has lost some. What is under way is lost on it too.
      this.goBackTo(output, nextOffset);
    } else if (output.unacknowledged.length === 0) {
      // It has everything and has not confirmed that it is on disk: ask once more.
      output.completeSent = false;
    }
    this.look();
  }

  private goBackTo(output: Output, offset: number): void {
    output.sentOffset = offset;
    output.completeSent = false;
    output.unacknowledged.fill(0);
  }

  private finish(output: Output): void {
    output.complete = true;
    closeOutput(output.file);
    output.file = null;
    this.parts.onComplete(output.task);
  }

  private disconnected(error: unknown): void {
    this.failures += 1;
    this.failure = error;
    if (this.failures === 1 && !this.closed) {
      this.parts.log.warn(
        { error: messageOf(error) },
        'output cannot be uploaded now; it stays here until it can',
      );
    }
    const { stream } = this;
    this.stream = null;
    for (const output of this.outputs.values()) {
      output.sentOffset = output.ackedOffset;
      output.unacknowledged = [];
      output.completeSent = false;
    }
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

function newOutput(task: TaskRef, path: string, size: number | null): Output {
  return {
    task,
    path,
    size,
    file: null,
    sentOffset: 0,
    ackedOffset: 0,
    unacknowledged: [],
    completeSent: false,
    complete: false,
    unreadable: false,
    record: untouched,
    tailBytes: 0,
    pausedUntilMs: Number.NEGATIVE_INFINITY,
  };
}

/** For the coordinator, or for nothing any longer. */
function isWaiting(output: Output, nowMs: number): boolean {
  const isWindowFull = output.sentOffset - output.ackedOffset >= windowBytes;
  return output.complete || output.completeSent || isWindowFull || nowMs < output.pausedUntilMs;
}

/** Where the next piece begins: behind what was dropped, and behind what the coordinator would not keep. */
function nextPosition({ file, sentOffset, tailBytes, record: { dropped } }: Output): number {
  const size = file === null ? 0 : outputFileSize(file);
  const unsent = size - sentOffset;
  const wanted = tailBytes > 0 && unsent > tailBytes * tailSlack ? size - tailBytes : sentOffset;
  if (dropped === null || wanted < dropped.from || wanted >= dropped.to) return wanted;
  return Math.max(wanted, Math.min(dropped.to, size));
}

function firstDropped({ record: { dropped } }: Output, offset: number): number {
  return dropped === null || dropped.from < offset ? Number.POSITIVE_INFINITY : dropped.from;
}
