/**
 * How full file systems are, and where a path really is. Asking a dead NFS mount never returns, and the question holds one of the
 * four threads that all file access of the process shares. So the questions of the whole process go through one place: a path has at
 * most one question open, no matter who asks, and all paths together at most two. The data directory is asked about beside these: dead
 * mounts of others must not hide that it is full.
 */
import type { StatsFs } from 'node:fs';
import { realpath, statfs } from 'node:fs/promises';

export interface Space {
  readonly sizeBytes: number;
  /** For everybody; less than what is free, by what is kept for root. */
  readonly availableBytes: number;
  /** null: this file system has no fixed number of files. */
  readonly files: number | null;
  readonly availableFiles: number | null;
}

export interface FileSystemAnswer {
  /** null: a file system without blocks, or one over a network that answers before it knows anything. */
  readonly space: Space | null;
  /** Without links. */
  readonly realPath: string;
}

/** What the kernel reports of a path; each call may hang. */
export interface FileSystemCalls {
  statfs(path: string): Promise<Pick<StatsFs, 'bsize' | 'frsize' | 'blocks' | 'bavail' | 'files' | 'ffree'>>;
  realPath(path: string): Promise<string>;
}

interface Question extends PromiseWithResolvers<FileSystemAnswer> {
  readonly path: string;
  /** `waiting`: for a thread. `own`: outside of the limit. */
  state: 'waiting' | 'open' | 'own';
}

const openQuestionsMax = 2;

export class FileSystemQuestions {
  private readonly calls: FileSystemCalls;
  /** In the order in which they were asked. */
  private readonly questions = new Map<string, Question>();

  constructor(calls: FileSystemCalls) {
    this.calls = calls;
  }

  /**
   * Joins the question about this path that has no answer yet. Rejects with the error of the kernel; may never settle.
   * @param isOwn the path is the data directory, and waits for no other
   */
  ask(path: string, isOwn = false): Promise<FileSystemAnswer> {
    const asked = this.questions.get(path);
    const question: Question = asked ?? {
      path,
      state: 'waiting',
      ...Promise.withResolvers<FileSystemAnswer>(),
    };
    this.questions.set(path, question);
    if (isOwn && question.state === 'waiting') this.open(question, 'own');
    else this.next();
    return question.promise;
  }

  /** Whether the kernel was asked about this path and has not answered. */
  isOpen(path: string): boolean {
    return (this.questions.get(path)?.state ?? 'waiting') !== 'waiting';
  }

  private next(): void {
    const all = [...this.questions.values()];
    const waiting = all.find(({ state }) => state === 'waiting');
    const openCount = all.filter(({ state }) => state === 'open').length;
    if (waiting !== undefined && openCount < openQuestionsMax) this.open(waiting, 'open');
  }

  private open(question: Question, state: 'open' | 'own'): void {
    question.state = state;
    question.resolve(this.read(question.path));
  }

  private async read(path: string): Promise<FileSystemAnswer> {
    try {
      const space = toSpace(await this.calls.statfs(path));
      return { space, realPath: await this.calls.realPath(path) };
    } finally {
      this.questions.delete(path);
      this.next();
    }
  }
}

/** Those of this process. */
export const fileSystemQuestions = new FileSystemQuestions({
  statfs: (path) => statfs(path),
  realPath: (path) => realpath(path),
});

export interface SpaceReading {
  /** As it was asked for. */
  readonly path: string;
  /** null: it has never answered, or cannot be read. */
  readonly space: Space | null;
  /** false: the question has been without an answer for longer than the deadline; `space` is what it once was. */
  readonly isAnswering: boolean;
}

interface Known {
  space: Space | null;
  /** When the question that has no answer yet was first due; null: none is. */
  waitingSinceMs: number | null;
}

export interface FileSystemSpacesOptions {
  /** After which a file system counts as not answering. */
  readonly deadlineMs?: number;
  readonly questions?: FileSystemQuestions;
  /** The paths are the data directory. Default: they are any others. */
  readonly isOwn?: boolean;
}

/** Values are those of the last answer: nobody waits for one here. */
export class FileSystemSpaces {
  private readonly known = new Map<string, Known>();
  private readonly questions: FileSystemQuestions;
  private readonly deadlineMs: number;
  private readonly isOwn: boolean;

  constructor(
    paths: readonly string[],
    { deadlineMs = 5_000, questions = fileSystemQuestions, isOwn = false }: FileSystemSpacesOptions = {},
  ) {
    for (const path of paths) this.known.set(path, { space: null, waitingSinceMs: null });
    this.deadlineMs = deadlineMs;
    this.questions = questions;
    this.isOwn = isOwn;
  }

  /** The values of the last answers. @param nowMs monotonic */
  readings(nowMs: number): readonly SpaceReading[] {
    return Array.from(this.known, ([path, { space, waitingSinceMs }]) => ({
      path,
      space,
      isAnswering: waitingSinceMs === null || nowMs - waitingSinceMs <= this.deadlineMs,
    }));
  }

  /** Asks about those that owe no answer. Resolves when these have answered: never, where a file system is dead. */
  async ask(nowMs: number): Promise<void> {
    await Promise.all(
      Array.from(this.known, async ([path, known]) => {
        if (known.waitingSinceMs !== null) return;
        known.waitingSinceMs = nowMs;
        known.space = await this.questions.ask(path, this.isOwn).then(
          ({ space }) => space,
          () => null,
        );
        known.waitingSinceMs = null;
      }),
    );
  }
}

function toSpace(answer: Awaited<ReturnType<FileSystemCalls['statfs']>>): Space | null {
  const { bsize, frsize, blocks, bavail, files, ffree } = answer;
  // Blocks are counted in fragments, which are smaller than the size to read by on some network file systems.
  const blockBytes = frsize > 0 ? frsize : bsize;
  if (blocks === 0) return null;
  return {
    sizeBytes: blocks * blockBytes,
    availableBytes: bavail * blockBytes,
    files: files === 0 ? null : files,
    availableFiles: files === 0 ? null : ffree,
  };
}
