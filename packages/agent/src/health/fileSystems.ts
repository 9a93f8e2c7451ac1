/** Free space and writability of file systems, as conditions need them. */
import { withDeadline } from '@muster/common/async';
import { messageOf } from '@muster/common/errors';
import { type FileSystemQuestions, fileSystemQuestions, type Space } from '../host/fileSystemSpace.ts';
import { type Mount, mountOf, readMounts } from '../host/mounts.ts';

export interface FileSystemFact {
  readonly path: string;
  /** Holds the agent's own directory: without it no task can start. */
  readonly isDataDir: boolean;
  /** null: not read, or the file system reports none. */
  readonly space: Space | null;
  readonly readOnly: boolean | null;
  /** Why it could not be read; null: it was. undefined: it was not asked. */
  readonly failure: string | null | undefined;
}

export interface FileSystemProbeParts {
  readonly dataDir: string;
  /** Further paths to watch, absolute. */
  readonly paths: readonly string[];
  readonly deadlineMs: number;
  /** Default: those of this process. */
  readonly questions?: FileSystemQuestions;
  readonly mounts?: () => readonly Mount[];
}

/**
 * One fact a path, the data directory first. A further path that is not there has none: Docker may have been removed
 * since the agent started, and nothing is wrong with that. Takes no longer than the deadline.
 */
export async function probeFileSystems(parts: FileSystemProbeParts): Promise<readonly FileSystemFact[]> {
  const paths = new Set([parts.dataDir, ...parts.paths]);
  const facts = await Promise.all(Array.from(paths, (path) => probePath(path, parts)));
  return facts.flatMap((fact) => fact ?? []);
}

async function probePath(path: string, parts: FileSystemProbeParts): Promise<FileSystemFact | null> {
  const { dataDir, deadlineMs, questions = fileSystemQuestions, mounts = readMounts } = parts;
  const place = { path, isDataDir: path === dataDir };
  const unread = { ...place, space: null, readOnly: null };
  try {
    const answer = await withDeadline(questions.ask(path, place.isDataDir), deadlineMs);
    if (answer === 'late') {
      // Behind two that hang it never came to be asked, and nothing is known of it.
      const isAsked = questions.isOpen(path);
      return { ...unread, failure: isAsked ? `no answer within ${deadlineMs / 1000} s` : undefined };
    }
    const mount = mountOf(answer.realPath, mounts());
    const readOnly = mount === null ? null : mount.readOnly || mount.mountedReadOnly;
    return { ...place, space: answer.space, readOnly, failure: null };
  } catch (error) {
    const isThere = !(error instanceof Error && 'code' in error && error.code === 'ENOENT');
    return isThere || place.isDataDir ? { ...unread, failure: messageOf(error) } : null;
  }
}
