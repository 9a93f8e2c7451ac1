/** A file of a checkpoint while it is read. Reads block: whoever verifies does so in a process of its own. */
import { readSync } from 'node:fs';

/** What is in it can never be loaded. The message is a predicate: `is empty`. */
export class CorruptFile extends Error {
  override readonly name = 'CorruptFile';
}

/** Nothing can be said of what is in it. The message is a predicate: `is encrypted`. */
export class OpaqueFile extends Error {
  override readonly name = 'OpaqueFile';
}

/** It is another one than a moment ago: nothing that was found out about it counts. */
export class ChangingFile extends Error {
  override readonly name = 'ChangingFile';
}

export interface OpenedFile {
  /** Last part of its path. */
  readonly name: string;
  readonly descriptor: number;
  /** Where in the descriptor it begins: 0, or somewhere inside for one of several pieces of a file. */
  readonly start: number;
  readonly bytes: number;
}

/** A piece of a file, to be looked at as if it were a file of its own. @param end after `start`, inside of the file */
export function pieceOf({ name, descriptor, start }: OpenedFile, from: number, end: number): OpenedFile {
  return { name, descriptor, start: start + from, bytes: end - from };
}

/** @throws {ChangingFile} when it has become shorter */
export function readFully({ descriptor, start }: OpenedFile, target: Uint8Array, position: number): void {
  let done = 0;
  while (done < target.length) {
    const read = readSync(descriptor, target, done, target.length - done, start + position + done);
    if (read === 0) throw new ChangingFile('became shorter');
    done += read;
  }
}

/** @param length small: it is allocated. Cut where the file ends */
export function readPart(file: OpenedFile, position: number, length: number): Buffer {
  const part = Buffer.alloc(Math.max(0, Math.min(length, file.bytes - position)));
  readFully(file, part, position);
  return part;
}
