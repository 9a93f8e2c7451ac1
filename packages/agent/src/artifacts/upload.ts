/** Puts an output of a task into a store. Repeated, it replaces what was put there before. */
import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { Directory, unreadableBecause, withDirectory } from '@muster/checkpoints/directories';
import type { OutputSpec } from '@muster/common/spec/artifactFields';
import type { StoredArtifact } from '@muster/common/views';
import { ArtifactProblem } from './artifactProblem.ts';
import { digestOfBytes, fileList, type HashedFile } from './fileList.ts';
import { someAtOnce } from './inTurn.ts';
import { filesOfOutput, withOutputFile } from './outputFiles.ts';
import type { Patience } from './patience.ts';
import { type ArtifactStore, ArtifactStoreError } from './store.ts';

/** Where a directory's list of files is: `sha256sum --check` reads it. */
export const listSuffix = '.sha256';

const mib = 1024 * 1024;
const filesAtOnce = 4;
/** Of S3. */
const partsMax = 10_000;

export interface TransferParts {
  readonly store: ArtifactStore;
  readonly patience: Patience;
  readonly abort: AbortSignal;
  /** Of an upload: larger files are sent in parts of this size. Default: 16 MiB. */
  readonly partBytes?: number;
}

/**
 * @param base the directory of the outputs, no link @param key of the object, or what the keys of a directory begin with
 * @throws {ArtifactProblem} with what is wrong about the output, {ArtifactStoreError} and the reason of `abort`
 */
export async function uploadOutput(
  parts: TransferParts,
  base: Directory,
  { name, type, path }: OutputSpec,
  key: string,
): Promise<StoredArtifact> {
  const steps = path.split('/');
  if (type === 'file') {
    const last = steps.at(-1) ?? '';
    const file = await withPlace(base, steps.slice(0, -1), path, async (directory) => {
      const kind = await directory.identify(last);
      if (kind === null) throw missing(type, path);
      if (!kind.isFile()) throw new ArtifactProblem(`${path} is not a regular file`);
      return withOutputFile(directory, { path, parts: [last] }, (handle, stat) =>
        uploadFile(parts, handle, stat.size, key, path),
      );
    });
    return { name, bytes: file.bytes, digest: `sha256:${file.hash}` };
  }
  return withPlace(base, steps, path, async (root) => {
    const files = await filesOfOutput(root);
    if (files.length === 0)
      throw new ArtifactProblem(`the directory ${path} is empty after the program has ended`);
    const listed: HashedFile[] = [];
    let bytes = 0;
    await someAtOnce(files, filesAtOnce, parts.abort, async (each, abort) => {
      const sent = await withOutputFile(root, each, (handle, stat) =>
        uploadFile({ ...parts, abort }, handle, stat.size, `${key}/${each.path}`, each.path),
      );
      listed.push({ path: each.path, hash: sent.hash });
      bytes += sent.bytes;
    });
    // Without its list a directory is not there, so it comes last.
    const list = fileList(listed);
    await parts.patience.insist(() => parts.store.put(`${key}${listSuffix}`, list, parts.abort), parts.abort);
    return { name, bytes, digest: digestOfBytes(list) };
  });
}

async function withPlace<T>(
  base: Directory,
  steps: readonly string[],
  path: string,
  use: (directory: Directory) => Promise<T>,
): Promise<T> {
  let directory = base;
  const opened: Directory[] = [];
  try {
    for (const step of steps) {
      directory = await directory.below(step);
      opened.push(directory);
    }
  } catch (error) {
    await Promise.all(opened.map((each) => each.close()));
    throw new ArtifactProblem(`${path} ${unreadableBecause(error)} after the program has ended`, {
      cause: error,
    });
  }
  const last = opened.pop();
  await Promise.all(opened.map((each) => each.close()));
  return last === undefined ? use(base) : withDirectory(last, use);
}

function missing(type: OutputSpec['type'], path: string): ArtifactProblem {
  return new ArtifactProblem(`there is no ${type} ${path} after the program has ended`);
}

interface SentFile {
  readonly hash: string;
  readonly bytes: number;
}

/** Reads each byte once: the digest is of what was sent. Holds one part in memory. */
async function uploadFile(
  { store, patience, abort, partBytes = 16 * mib }: TransferParts,
  handle: FileHandle,
  size: number,
  key: string,
  path: string,
): Promise<SentFile> {
  const hash = createHash('sha256');
  const room = Math.max(partBytes, Math.ceil(size / (partsMax - 1) / mib) * mib);
  const buffer = Buffer.alloc(Math.min(size, room));
  const read = async (from: number, length: number): Promise<Buffer> => {
    const piece = buffer.subarray(0, length);
    for (let done = 0; done < length; ) {
      const { bytesRead } = await handle.read(piece, done, length - done, from + done);
      if (bytesRead === 0) throw new ArtifactProblem(`${path} became shorter while it was read`);
      done += bytesRead;
    }
    hash.update(piece);
    return piece;
  };
  if (size <= partBytes) {
    const content = await read(0, size);
    await patience.insist(() => store.put(key, content, abort), abort);
    return { hash: hash.digest('hex'), bytes: size };
  }
  const upload = await patience.insist(() => store.beginParts(key, abort), abort);
  try {
    for (let number = 1, at = 0; at < size; number += 1, at += room) {
      const content = await read(at, Math.min(room, size - at));
      await patience.insist(() => upload.part(number, content, abort), abort);
    }
    await patience.insist(() => upload.complete(abort), abort);
  } catch (error) {
    // What is left of it costs room in the store, and nothing else.
    await upload.discard().catch(() => {});
    throw error;
  }
  return { hash: hash.digest('hex'), bytes: size };
}

/** For callers that know what the problem is about: its message then begins with `what`. */
export function aboutArtifact(what: string, error: unknown): unknown {
  if (error instanceof ArtifactProblem)
    return new ArtifactProblem(`${what}: ${error.message}`, { cause: error });
  if (error instanceof ArtifactStoreError)
    return new ArtifactStoreError(error.kind, `${what}: ${error.message}`, { cause: error });
  return error;
}
