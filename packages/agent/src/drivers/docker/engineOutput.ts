/**
 * Copies a container's output from the engine into the task's `output.log`, exactly once.
 *
 * No position is kept anywhere. The engine's log of a task only grows and is never rotated, so the bytes decoded from it are
 * the same on every reading, and the length of the file says how many of them are there already: reading begins at the
 * first byte and writing after the last one in the file. (The engine would have to decode the log from its beginning for a
 * position given as a time, too; and the parts of a long line all carry the time of its first part.)
 *
 * While the container runs its log is followed. Engines end a follow too early when a container ends (observed with 20.10:
 * the last line without a newline, sometimes thousands of lines), so the log is read once more, in full, after the end. That
 * reading is authoritative: it overwrites the file with the same bytes and adds what is missing. If a part of the file was
 * dropped to save space, only what is missing at its end is written.
 *
 * Within one stream the order is exact; between stdout and stderr it is the order in which the engine read its two pipes.
 */
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { type BackoffPolicy, backoffMs } from '@muster/common/retry';
import { readOutputRecord } from '../../logs/outputRecord.ts';
import type { Engine } from './engine.ts';
import { EngineError } from './engineHttp.ts';
import { FrameDecoder } from './frames.ts';

const retryPolicy: BackoffPolicy = { initialMs: 100, maxMs: 5_000 };
/** Tries to write the file of a task that has ended, over half a minute, before the rest is given up. */
const lastTriesMax = 12;
/** From the end of a follow to the engine's report that the container has ended: usually a few milliseconds. */
const endDeadlineMs = 1_000;

export interface CopyOptions {
  readonly engine: Engine;
  readonly containerId: string;
  /** Created when absent. */
  readonly path: string;
  readonly signal: AbortSignal;
}

/**
 * Resolves when the container has ended and the file holds all of its output.
 * @param onProblem gets each failure and how many there were in a row; copying continues
 * @throws the signal's reason when aborted; the error of the last try when the file of an ended task cannot be written
 */
export async function copyUntilEnd(
  options: CopyOptions,
  onProblem: (error: unknown, failures: number) => void,
): Promise<void> {
  const { engine, containerId, signal } = options;
  let hasEnded = false;
  for (let failures = 0; ; ) {
    try {
      const container = await engine.inspectContainer(containerId);
      if (container === null) return;
      hasEnded = container.phase === 'ended';
      if (hasEnded) {
        await copyWhole(options);
        return;
      }
      await copyFollowing(options);
      failures = 0;
      // A follow also ends when the engine stops; then the container runs on and is followed again.
      await endsSoon(options);
    } catch (error) {
      signal.throwIfAborted();
      failures++;
      if (hasEnded && failures > lastTriesMax && !(error instanceof EngineError)) throw error;
      onProblem(error, failures);
      await delay(backoffMs(retryPolicy, failures), undefined, { signal }).catch(() =>
        signal.throwIfAborted(),
      );
    }
  }
}

async function endsSoon({ engine, containerId, signal }: CopyOptions): Promise<void> {
  const deadline = AbortSignal.timeout(endDeadlineMs);
  try {
    await engine.waitForEnd(containerId, AbortSignal.any([signal, deadline]));
  } catch (error) {
    if (signal.aborted || !deadline.aborted) throw error;
  }
}

/** Of a container that has ended. */
export async function copyWhole(options: CopyOptions): Promise<void> {
  await using file = await openForUpdate(options.path);
  const { size } = await file.stat();
  const wasDropped = readOutputRecord(options.path).dropped !== null;
  const bytes = await copy(options, file, { follow: false, firstByte: wasDropped ? size : 0 });
  await file.truncate(bytes);
}

async function copyFollowing(options: CopyOptions): Promise<void> {
  await using file = await openForUpdate(options.path);
  const { size } = await file.stat();
  await copy(options, file, { follow: true, firstByte: size });
}

/** Writes at positions, never "at the end": a second copier of the same output would write the same bytes there. */
async function copy(
  { engine, containerId, signal }: CopyOptions,
  file: FileHandle,
  { follow, firstByte }: { follow: boolean; firstByte: number },
): Promise<number> {
  const decoder = new FrameDecoder();
  let position = 0;
  for await (const chunk of engine.readLog(containerId, { follow, signal })) {
    const output = decoder.push(chunk);
    const known = Math.min(Math.max(firstByte - position, 0), output.length);
    await writeAll(file, output.subarray(known), position + known);
    position += output.length;
  }
  return position;
}

async function writeAll(file: FileHandle, bytes: Buffer, position: number): Promise<void> {
  for (let written = 0; written < bytes.length; ) {
    written += (await file.write(bytes, written, bytes.length - written, position + written)).bytesWritten;
  }
}

async function openForUpdate(path: string): Promise<FileHandle> {
  // None of the modes that have a letter both creates a file and writes in its middle.
  return open(path, constants.O_CREAT | constants.O_RDWR, 0o600);
}
