/** Fetches an input of a task from a store, and compares it with the digest that its maker has reported. */
import { createHash } from 'node:crypto';
import { chmod, type FileHandle, mkdir, open } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { InputSpec } from '@muster/common/spec/artifactFields';
import { ArtifactProblem } from './artifactProblem.ts';
import { digestOfBytes, readFileList } from './fileList.ts';
import { someAtOnce } from './inTurn.ts';
import { ArtifactStoreError, objectPlaceOf } from './store.ts';
import { listSuffix, type TransferParts } from './upload.ts';

const filesAtOnce = 4;
/** A hundred thousand files with the longest paths. */
const listBytesMax = 96 * 1024 * 1024;

/**
 * @param directory of the inputs, which only the agent writes to @param path of the input in it, where nothing is yet
 * @throws {ArtifactProblem} when it has vanished or changed, {ArtifactStoreError}, an error of the kernel's, and the reason of `abort`
 */
export async function downloadInput(
  parts: TransferParts,
  directory: string,
  { type, url, digest, path }: InputSpec,
): Promise<void> {
  const { key } = objectPlaceOf(url);
  const target = join(directory, path);
  await mkdir(dirname(target), { recursive: true, mode: 0o755 });
  if (type === 'file') return fetchFile(parts, key, url, target, digest);
  const listUrl = `${url}${listSuffix}`;
  const list = await existing(listUrl, () => fetchList(parts, `${key}${listSuffix}`, url));
  if (digestOfBytes(list) !== digest) throw changed(listUrl, digest);
  const files = readFileList(list);
  if (files === null) throw new ArtifactProblem(`${listUrl} is not a list of files`);
  const directories = new Set(files.map((file) => dirname(join(target, file.path))));
  for (const each of [target, ...directories]) await mkdir(each, { recursive: true, mode: 0o755 });
  await someAtOnce(files, filesAtOnce, parts.abort, (file, abort) =>
    fetchFile(
      { ...parts, abort },
      `${key}/${file.path}`,
      `${url}/${file.path}`,
      join(target, file.path),
      `sha256:${file.hash}`,
    ),
  );
}

/** After a failure, the download resumes at the first byte that is missing. */
async function fetchFile(
  { store, patience, abort }: TransferParts,
  key: string,
  url: string,
  target: string,
  digest: string,
): Promise<void> {
  const hash = createHash('sha256');
  const file = await open(target, 'wx', 0o644);
  try {
    let at = 0;
    await existing(url, () =>
      patience.insist(async () => {
        for await (const piece of await store.get(key, at, abort)) {
          await writeAll(file, piece, at);
          hash.update(piece);
          at += piece.length;
          patience.noteProgress();
        }
      }, abort),
    );
  } finally {
    await file.close();
  }
  if (`sha256:${hash.digest('hex')}` !== digest) throw changed(url, digest);
  // Whatever the umask of the agent is, everybody who gets this far may read it, and nobody write.
  await chmod(target, 0o444);
}

async function writeAll(file: FileHandle, piece: Uint8Array, at: number): Promise<void> {
  for (let done = 0; done < piece.length; ) {
    const { bytesWritten } = await file.write(piece, done, piece.length - done, at + done);
    done += bytesWritten;
  }
}

async function fetchList(
  { store, patience, abort }: TransferParts,
  key: string,
  url: string,
): Promise<Buffer> {
  return patience.insist(async () => {
    const pieces: Uint8Array[] = [];
    let bytes = 0;
    for await (const piece of await store.get(key, 0, abort)) {
      bytes += piece.length;
      if (bytes > listBytesMax)
        throw new ArtifactProblem(`the list of the files of ${url} is larger than any that is made`);
      pieces.push(piece);
    }
    return Buffer.concat(pieces);
  }, abort);
}

async function existing<T>(url: string, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (!(error instanceof ArtifactStoreError) || error.kind !== 'missing') throw error;
    throw new ArtifactProblem(`${url} is not in the store; it has vanished since its step has made it`, {
      cause: error,
    });
  }
}

function changed(url: string, digest: string): ArtifactProblem {
  return new ArtifactProblem(`${url} has changed since its step has made it; its digest is not ${digest}`);
}
