/**
 * Directories by descriptor. The writer of the checkpoints may rename and link at will while they are looked at; a
 * path would then lead elsewhere, a descriptor never does. Node has no openat(2): Linux leads there through /proc.
 */

import { type BigIntStats, constants, type Stats } from 'node:fs';
import { type FileHandle, lstat, open, opendir, readlink, rename, rmdir, unlink } from 'node:fs/promises';

/** Without them, a link put there in the meantime would be followed, and a pipe that nobody writes to would stop us. */
const carefully = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY;

export interface DirectoryEntry {
  readonly name: string;
  readonly kind: 'file' | 'directory' | 'link' | 'special';
}

export class Directory {
  private readonly handle: FileHandle;
  private readonly place: string;

  private constructor(handle: FileHandle, path: string) {
    this.handle = handle;
    this.place = process.platform === 'linux' ? `/proc/self/fd/${handle.fd}` : path;
  }

  /**
   * @param path links on the way there are the user's own; the directory itself may be none
   * @throws {Error} with the kernel's code; ELOOP or ENOTDIR for a link
   */
  static async open(path: string): Promise<Directory> {
    return new Directory(await open(path, carefully | constants.O_DIRECTORY), path);
  }

  /** Of an entry, for calls that need one. @param name without `/` */
  path(name: string): string {
    return `${this.place}/${name}`;
  }

  /** Where it is by now, for comparing with mounts. */
  realPath(): Promise<string> {
    return readlink(this.place);
  }

  /** @param name of an entry, without `/` */
  below(name: string): Promise<Directory> {
    return Directory.open(this.path(name));
  }

  /** @param name of an entry, without `/` @throws {Error} with the kernel's code; EINVAL for what is not a regular file */
  async openFile(name: string): Promise<{ readonly handle: FileHandle; readonly stat: Stats }> {
    const handle = await open(this.path(name), carefully);
    try {
      const stat = await handle.stat();
      if (!stat.isFile()) throw Object.assign(new Error(`${name} is not a regular file`), { code: 'EINVAL' });
      return { handle, stat };
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  stat(): Promise<Stats> {
    return this.handle.stat();
  }

  /** Of the entry itself, not of what it links to. */
  statOf(name: string): Promise<Stats> {
    return lstat(this.path(name));
  }

  /** The same with times in nanoseconds; null: there is no such entry. */
  async identify(name: string): Promise<BigIntStats | null> {
    try {
      return await lstat(this.path(name), { bigint: true });
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return null;
      throw error;
    }
  }

  rename(from: string, to: string): Promise<void> {
    return rename(this.path(from), this.path(to));
  }

  unlink(name: string): Promise<void> {
    return unlink(this.path(name));
  }

  rmdir(name: string): Promise<void> {
    return rmdir(this.path(name));
  }

  /** In no order, a thousand at a time. */
  async *entries(): AsyncGenerator<DirectoryEntry> {
    for await (const entry of await opendir(this.place, { bufferSize: 1_000 })) {
      yield { name: entry.name, kind: kindOf(entry) };
    }
  }

  async close(): Promise<void> {
    await this.handle.close();
  }
}

/** Closes the directory, whatever happens. */
export async function withDirectory<T>(
  directory: Directory,
  use: (directory: Directory) => Promise<T>,
): Promise<T> {
  try {
    return await use(directory);
  } finally {
    await directory.close();
  }
}

/** Goes down one directory at a time, so that no link in the way is followed. */
export async function belowAll<T>(
  directory: Directory,
  parts: readonly string[],
  use: (directory: Directory) => Promise<T>,
): Promise<T> {
  const [first, ...rest] = parts;
  if (first === undefined) return use(directory);
  return withDirectory(await directory.below(first), (each) => belowAll(each, rest, use));
}

export function kindOf(
  entry: Pick<Stats, 'isFile' | 'isDirectory' | 'isSymbolicLink'>,
): DirectoryEntry['kind'] {
  if (entry.isFile()) return 'file';
  if (entry.isDirectory()) return 'directory';
  return entry.isSymbolicLink() ? 'link' : 'special';
}

/** `ENOENT` and its kin. @returns null: no error of the kernel's */
export function errorCode(error: unknown): string | null {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : null;
}

/** What keeps one from reading it, to follow its name. */
export function unreadableBecause(error: unknown): string {
  const code = errorCode(error);
  const reasons: Readonly<Record<string, string>> = {
    ENOENT: 'does not exist',
    ENOTDIR: 'is not a directory',
    EINVAL: 'is not a regular file',
    ELOOP: 'is a symbolic link',
    ENXIO: 'is not a regular file',
    EACCES: 'cannot be read: permission denied',
    EPERM: 'cannot be read: permission denied',
    EIO: 'cannot be read: the storage reports an error',
    ESTALE: 'cannot be read: its file server has lost it (stale file handle)',
    EMFILE: 'cannot be read: too many files are open',
  };
  const known = code === null ? undefined : reasons[code];
  if (known !== undefined) return known;
  return `cannot be read: ${error instanceof Error ? error.message : String(error)}`;
}
