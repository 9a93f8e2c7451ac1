/**
 * The files of an output, found by handles of their directories. The agent has more rights than the task that wrote them, so
 * it never relies on a path that the task could change, and it follows a link only within the output.
 */
import type { Stats } from 'node:fs';
import { type FileHandle, readlink } from 'node:fs/promises';
import { posix } from 'node:path';
import {
  belowAll,
  type Directory,
  type DirectoryEntry,
  errorCode,
  unreadableBecause,
} from '@muster/checkpoints/directories';
import { ArtifactProblem } from './artifactProblem.ts';

const filesMax = 100_000;
const depthMax = 64;
const linksMax = 16;

/** Path below the output, with `/`. The parts lead there without a link. */
export interface OutputFile {
  readonly path: string;
  readonly parts: readonly string[];
}

/**
 * All regular files, including those that links within the output lead to. Sockets, pipes, devices and empty directories
 * are excluded.
 */
export async function filesOfOutput(root: Directory): Promise<readonly OutputFile[]> {
  const files: OutputFile[] = [];
  let directories = 0;
  /** @param shown path to report @param real path without links @param above directories that led here, by device and inode */
  const walk = async (
    shown: readonly string[],
    real: readonly string[],
    above: readonly string[],
  ): Promise<void> => {
    if (shown.length > depthMax)
      throw new ArtifactProblem(`${named(shown)} is more than ${depthMax} directories deep`);
    directories += 1;
    if (directories > filesMax) throw new ArtifactProblem(`it has more than ${filesMax} directories`);
    const names: DirectoryEntry[] = [];
    const id = await within(root, real, async (directory) => {
      for await (const entry of directory.entries()) names.push(entry);
      const { dev, ino } = await directory.stat();
      return `${dev}.${ino}`;
    });
    if (above.includes(id))
      throw new ArtifactProblem(`${named(shown)} is a link to a directory that it is in`);
    for (const { name, kind } of names) {
      const path = [...shown, name];
      requireName(path);
      const target =
        kind === 'link' ? await followed(root, [...real, name], path) : { parts: [...real, name], kind };
      if (target.kind === 'directory') await walk(path, target.parts, [...above, id]);
      if (target.kind !== 'file') continue;
      files.push({ path: path.join('/'), parts: target.parts });
      if (files.length > filesMax)
        throw new ArtifactProblem(
          `it has more than ${filesMax} files: pack them into fewer, such as with tar`,
        );
    }
  };
  await walk([], [], []);
  return files;
}

/** @throws {ArtifactProblem} for a file that cannot be read, or is not theirs whose directory `root` is */
export async function withOutputFile<T>(
  root: Directory,
  { path, parts }: OutputFile,
  use: (handle: FileHandle, stat: Stats) => Promise<T>,
): Promise<T> {
  const name = parts.at(-1) ?? '';
  let opened: Awaited<ReturnType<Directory['openFile']>>;
  try {
    opened = await belowAll(root, parts.slice(0, -1), (directory) => directory.openFile(name));
  } catch (error) {
    throw new ArtifactProblem(`${path} ${unreadableBecause(error)}`, { cause: error });
  }
  try {
    await requireOwn(root, opened.stat, path);
    return await use(opened.handle, opened.stat);
  } finally {
    await opened.handle.close();
  }
}

/** A file may have several names: the task could add one, a hard link, to a file of another user that the task cannot read. */
async function requireOwn(root: Directory, { nlink, uid }: Stats, path: string): Promise<void> {
  if (nlink > 1 && uid !== (await root.stat()).uid)
    throw new ArtifactProblem(`${path} is another name of a file of another user: copy it instead`);
}

async function within<T>(
  root: Directory,
  parts: readonly string[],
  use: (directory: Directory) => Promise<T>,
): Promise<T> {
  try {
    return await belowAll(root, parts, use);
  } catch (error) {
    if (errorCode(error) === null) throw error;
    throw new ArtifactProblem(`${named(parts)} ${unreadableBecause(error)}`, { cause: error });
  }
}

/** Where a link leads, one link after the other, by its text alone: nothing that the kernel would follow is followed. */
async function followed(
  root: Directory,
  link: readonly string[],
  shown: readonly string[],
): Promise<{ readonly parts: readonly string[]; readonly kind: string }> {
  let rest: readonly string[] = link;
  let done: readonly string[] = [];
  for (let links = 0; rest.length > 0; ) {
    const [name = '', ...behind] = rest;
    const kind = await within(root, done, async (directory) => {
      const stat = await directory.statOf(name).catch((error: unknown) => {
        if (errorCode(error) !== 'ENOENT') throw error;
        throw new ArtifactProblem(`${named(shown)} is a link to something that does not exist`, {
          cause: error,
        });
      });
      if (stat.isSymbolicLink()) return { target: await readlink(directory.path(name)) };
      return stat.isDirectory() ? 'directory' : stat.isFile() ? 'file' : 'special';
    });
    if (typeof kind === 'string') {
      done = [...done, name];
      if (behind.length === 0) return { parts: done, kind };
      rest = behind;
      continue;
    }
    links += 1;
    const target = posix.join(...done, kind.target);
    if (links > linksMax || kind.target.startsWith('/') || target.startsWith('..'))
      throw new ArtifactProblem(`${named(shown)} is a link that leads out of it: copy what it links to`);
    rest = [...target.split('/').filter((part) => part !== '' && part !== '.'), ...behind];
    done = [];
  }
  return { parts: done, kind: 'directory' };
}

/** S3 names objects in UTF-8, and XML cannot express control characters. */
function requireName(path: readonly string[]): void {
  const name = path.at(-1) ?? '';
  if (/\p{Cc}/u.test(name) || name.includes('\uFFFD'))
    throw new ArtifactProblem(
      `the name ${JSON.stringify(path.join('/'))} has control characters or is not UTF-8: rename the file`,
    );
  if (Buffer.byteLength(path.join('/')) > 700)
    throw new ArtifactProblem(`the path ${path.join('/')} is too long for a store`);
}

function named(parts: readonly string[]): string {
  return parts.length === 0 ? 'its directory' : parts.join('/');
}
