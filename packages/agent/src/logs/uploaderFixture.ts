/** An uploader with everything around it: files, a real connection, and a coordinator that stores what it is sent. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ServerDuplexStream } from '@grpc/grpc-js';
import type { LogUpload__Output } from '@muster/common/gen/muster/v1/LogUpload';
import type { LogUploadAck } from '@muster/common/gen/muster/v1/LogUploadAck';
import { type TaskRef, taskKey } from '@muster/common/ids';
import { silentLogger } from '@muster/common/log';
import { taskRefFromWire } from '@muster/common/wire/codec';
import { onTestFinished } from 'vitest';
import { TestHub } from '../hubFixture.ts';
import { LogUploader, type UploaderParts } from './uploader.ts';

type UploadCall = ServerDuplexStream<LogUpload__Output, LogUploadAck>;

/** The coordinator's store of output: takes what follows what it has, skips what it has, refuses a gap. */
class StoredLogs {
  readonly hub: TestHub;
  readonly pieces: LogUpload__Output[] = [];
  readonly completed = new Set<string>();
  /** Acknowledgements are kept back while this is set. */
  holdAcks = false;
  private readonly heldAcks: (() => void)[] = [];
  private readonly contents = new Map<string, Buffer>();

  constructor(hub: TestHub) {
    this.hub = hub;
    hub.onUpload = (upload, call) => this.take(upload, call);
  }

  of(task: TaskRef): Buffer {
    return this.contents.get(taskKey(task)) ?? Buffer.alloc(0);
  }

  /** As after a power cut: only the first `size` bytes are there. */
  cut(task: TaskRef, size: number): void {
    this.contents.set(taskKey(task), this.of(task).subarray(0, size));
  }

  put(task: TaskRef, content: Buffer): void {
    this.contents.set(taskKey(task), content);
  }

  take(upload: LogUpload__Output, call: UploadCall): void {
    this.pieces.push(upload);
    this.acknowledge(this.store(upload), call);
  }

  store({ task: wireTask, offset, data, complete }: LogUpload__Output): LogUploadAck {
    const task = taskRefFromWire(wireTask);
    if (task === null) throw new Error('a piece without a task');
    const content = this.of(task);
    if (offset <= content.length) {
      this.put(task, Buffer.concat([content, data.subarray(content.length - offset)]));
    }
    const nextOffset = this.of(task).length;
    const isComplete = complete && nextOffset >= offset + data.length;
    if (isComplete) this.completed.add(taskKey(task));
    return { task: wireTask, nextOffset, complete: isComplete };
  }

  acknowledge(ack: LogUploadAck, call: UploadCall): void {
    if (this.holdAcks) this.heldAcks.push(() => call.write(ack));
    else call.write(ack);
  }

  releaseAcks(): void {
    this.holdAcks = false;
    for (const write of this.heldAcks.splice(0)) write();
  }
}

interface Uploading {
  readonly uploader: LogUploader;
  readonly logs: StoredLogs;
  /** Tasks whose output may be deleted, in order. */
  readonly complete: string[];
  readonly logged: string[];
  readonly directory: string;
  /** A file with this content; each has a path of its own. */
  file(content: Buffer | string): string;
}

/** @param maskOf what hides the secrets of a task */
export async function uploading(maskOf: UploaderParts['maskOf'] = () => null): Promise<Uploading> {
  const hub = await TestHub.start();
  const client = hub.client();
  const directory = mkdtempSync(join(tmpdir(), 'upload-'));
  const complete: string[] = [];
  const logged: string[] = [];
  const uploader = new LogUploader({
    openStream: () => client.UploadLogs(),
    log: {
      ...silentLogger,
      warn: (_fields, message) => logged.push(message),
      error: (_fields, message) => logged.push(message),
    },
    chance: () => 0,
    maskOf,
    monotonicMs: () => performance.now(),
    onComplete: (task) => complete.push(taskKey(task)),
  });
  onTestFinished(() => {
    uploader.close();
    // A write that was under way may still put a file there.
    rmSync(directory, { recursive: true, maxRetries: 10 });
  });
  let files = 0;
  const file = (content: Buffer | string) => {
    files += 1;
    const path = join(directory, `output-${files}.log`);
    writeFileSync(path, content);
    return path;
  };
  return { uploader, logs: new StoredLogs(hub), complete, logged, directory, file };
}

/** Bytes that are different everywhere, so that any of them out of place shows. */
export function bytes(count: number): Buffer {
  const content = Buffer.alloc(count);
  for (let offset = 0; offset + 4 <= count; offset += 4) content.writeUInt32LE(offset * 7, offset);
  return content;
}
