/**
 * Files in the directory of a task. A bare process can reach them too, and may have put anything in their place: a pipe
 * that nobody else opens would stop the process that opens it, agent or guard, and with it the fence of every task.
 */
import { closeSync, constants, fstatSync, openSync, type Stats, writeFileSync } from 'node:fs';

/** A link is refused (ELOOP), and the opening of a pipe never waits. */
export const withoutWaiting = constants.O_NOFOLLOW | constants.O_NONBLOCK;

/**
 * @param read gets a regular file that is open for reading
 * @throws {Error} with the kernel's code; EINVAL when something else than a file is there
 */
export function readTaskFile<T>(path: string, read: (descriptor: number, stat: Stats) => T): T {
  return withFile(openSync(path, constants.O_RDONLY | withoutWaiting), path, read);
}

/**
 * Writes whole lines: at the end, or from the beginning over what is there.
 * @throws {Error} with the kernel's code; EINVAL when something else than a file is there
 */
export function writeTaskFile(path: string, text: string, where: 'end' | 'beginning'): void {
  const append = where === 'end' ? constants.O_APPEND : 0;
  const flags = constants.O_WRONLY | constants.O_CREAT | append | withoutWaiting;
  withFile(openSync(path, flags, 0o600), path, (descriptor) => writeFileSync(descriptor, text));
}

function withFile<T>(descriptor: number, path: string, act: (descriptor: number, stat: Stats) => T): T {
  try {
    const stat = fstatSync(descriptor);
    if (!stat.isFile()) throw Object.assign(new Error(`${path} is no longer a file`), { code: 'EINVAL' });
    return act(descriptor, stat);
  } finally {
    closeSync(descriptor);
  }
}
