/** The place of a checkpoint below its root, for anyone who changes it. */
import { belowAll, Directory, errorCode, withDirectory } from '@muster/checkpoints/directories';
import { trainingCompleteName } from '@muster/checkpoints/names';
import { messageOf } from '@muster/common/errors';

/**
 * The directory that holds a checkpoint, and its name there; no link below the root is followed.
 * @param name below the root, with `/` between its parts
 * @throws {Error} with the kernel's code; EINVAL for a name that leads elsewhere
 */
export async function withPlaceOf<T>(
  root: string,
  name: string,
  use: (directory: Directory, last: string) => Promise<T>,
): Promise<T> {
  const parts = name.split('/');
  if (parts.some((part) => part === '' || part === '.' || part === '..' || part.includes('\0'))) {
    throw Object.assign(new Error(`invalid name of a checkpoint: "${name}"`), { code: 'EINVAL' });
  }
  const last = parts.pop() ?? '';
  return withDirectory(await Directory.open(root), (top) =>
    belowAll(top, parts, (directory) => use(directory, last)),
  );
}

/** Without the path, which names a descriptor that is another one the next time and leads nobody anywhere. */
export function reasonOf(error: unknown): string {
  const message = messageOf(error);
  return errorCode(error) === null ? message : message.replace(/, \w+ '.*$/s, '');
}

/** Some file systems keep whole seconds, and FAT every other one. */
const granularityMs = 2_000;

/**
 * Whether the program has left its marker that nothing is left to train. A marker from an earlier run must not end a job
 * that was just started to train further.
 * @param startedAtMs wall clock: the start of the attempt
 */
export async function completedSince(root: string, startedAtMs: number): Promise<boolean> {
  try {
    const stat = await withPlaceOf(root, trainingCompleteName, (directory, last) => directory.identify(last));
    return stat?.isFile() === true && Number(stat.mtimeMs) >= startedAtMs - granularityMs;
  } catch {
    return false;
  }
}
