/**
 * A checkpoint directory that is changed: held by its descriptor, because the job may rename and link in it as it
 * pleases, and a path would then lead elsewhere. Node has no openat(2); Linux leads there through /proc.
 */
import { type BigIntStats, constants } from 'node:fs';
import { type FileHandle, lstat, open, opendir, readlink, rename, rmdir, unlink } from 'node:fs/promises';
import { messageOf } from '@muster/common/errors';

const carefully =
  constants.O_RDONLY |
  constants.O_NOFOLLOW |
  constants.O_NONBLOCK |
  constants.O_DIRECTORY |
  constants.O_NOCTTY;

export class DirectoryHandle {
  private readonly handle: FileHandle;

  private constructor(handle: FileHandle) {
    this.handle = handle;
  }

  /**
   * @param path links on the way there are the user's own; the directory itself may be none
   * @throws {Error} with the kernel's code; ENOTDIR for a link
   */
  static async open(path: string): Promise<DirectoryHandle> {
    return new DirectoryHandle(await open(path, carefully));
  }

  /** Of an entry, for calls that need one. @param name without `/` */
  path(name: string): string {
    return `/proc/self/fd/${this.handle.fd}/${name}`;
  }

  below(name: string): Promise<DirectoryHandle> {
    return DirectoryHandle.open(this.path(name));
  }

  /** Where it is by now, for comparing with mounts. */
  realPath(): Promise<string> {
    return readlink(`/proc/self/fd/${this.handle.fd}`);
  }

  stat(): Promise<BigIntStats> {
    return this.handle.stat({ bigint: true });
  }

  /** Of the entry itself, not of what it links to. null: there is none. */
  async statOf(name: string): Promise<BigIntStats | null> {
    try {
      return await lstat(this.path(name), { bigint: true });
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return null;
      throw error;
    }
  }

  async *names(): AsyncGenerator<string> {
    for await (const { name } of await opendir(this.path('.'))) yield name;
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

  close(): Promise<void> {
    return this.handle.close();
  }
}

/** Closes it whatever happens. */
export async function withDirectoryHandle<T>(
  directory: DirectoryHandle,
  use: (held: DirectoryHandle) => Promise<T>,
): Promise<T> {
  try {
    return await use(directory);
  } finally {
    await directory.close();
  }
}

/**
 * The directory that holds a checkpoint, and its name there; no link on the way from the root is followed.
 * @param name below the root, with `/` between its parts
 * @throws {Error} with the kernel's code; EINVAL for a name that leads elsewhere
 */
export async function withPlaceOf<T>(
  root: string,
  name: string,
  use: (directory: DirectoryHandle, last: string) => Promise<T>,
): Promise<T> {
  const parts = name.split('/');
  if (parts.some((part) => part === '' || part === '.' || part === '..' || part.includes('\0'))) {
    throw Object.assign(new Error(`invalid name of a checkpoint: "${name}"`), { code: 'EINVAL' });
  }
  const last = parts.pop() ?? '';
  const goDown = async (directory: DirectoryHandle, [first, ...rest]: readonly string[]): Promise<T> =>
    withDirectoryHandle(directory, async (held) =>
      first === undefined ? use(held, last) : goDown(await held.below(first), rest),
    );
  return goDown(await DirectoryHandle.open(root), parts);
}

export function codeOf(error: unknown): string | null {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : null;
}

/** Without the path, which names a descriptor that is another one the next time and leads nobody anywhere. */
export function reasonOf(error: unknown): string {
  const message = messageOf(error);
  return codeOf(error) === null ? message : message.replace(/, \w+ '.*$/s, '');
}
