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

/** The marker that nothing is left to train, as it lies there. */
export interface CompletionMarker {
  /** Another one as soon as the file is written again, whatever its times are set to. */
  readonly identity: string;
  /** Wall clock of whoever wrote it. */
  readonly writtenAtMs: number;
}

/** @returns null: it is not there, or cannot be seen */
export async function completionMarkerIn(root: string): Promise<CompletionMarker | null> {
  try {
    const stat = await withPlaceOf(root, trainingCompleteName, (directory, last) => directory.identify(last));
    if (stat?.isFile() !== true) return null;
    const { ino, size, mtimeNs, ctimeNs, mtimeMs } = stat;
    return { identity: `${ino}:${size}:${mtimeNs}:${ctimeNs}`, writtenAtMs: Number(mtimeMs) };
  } catch {
    return null;
  }
}

/**
 * Whether an attempt has left its marker. One from an earlier run must not end a job that was just started to train further.
 * @param stoodThere the identity of the marker when the attempt began. null: there was none. undefined: unknown, for an earlier
 *   release of the agent has started the attempt, and times decide
 * @param startedAtMs wall clock: the start of the attempt
 */
export function isMarkerOf(
  { identity, writtenAtMs }: CompletionMarker,
  stoodThere: string | null | undefined,
  startedAtMs: number,
): boolean {
  return stoodThere === undefined ? writtenAtMs >= startedAtMs - granularityMs : identity !== stoodThere;
}
