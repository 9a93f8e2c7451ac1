/**
 * How full file systems are, and where a path really is. Asking a dead NFS mount never returns, and the question holds one of the
 * four threads that all file access of the process shares. So the questions of the whole process go through one place: a path has at
 * most one question open, whoever asks, and all paths together at most two.
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

/** What the kernel says of a path; each may hang. */
export interface FileSystemCalls {
  statfs(path: string): Promise<Pick<StatsFs, 'bsize' | 'frsize' | 'blocks' | 'bavail' | 'files' | 'ffree'>>;
  realPath(path: string): Promise<string>;
}

interface Question {
  readonly answer: Promise<FileSystemAnswer>;
  /** false: it waits for a thread. */
  isOpen: boolean;
}

const openQuestionsMax = 2;

export class FileSystemQuestions {
  private readonly calls: FileSystemCalls;
  private readonly questions = new Map<string, Question>();
  private readonly waiting: (() => void)[] = [];
  private open = 0;

  constructor(calls: FileSystemCalls) {
    this.calls = calls;
  }

  /** Joins the question about this path that has no answer yet. Rejects with the error of the kernel; may never settle. */
  ask(path: string): Promise<FileSystemAnswer> {
    const asked = this.questions.get(path);
    if (asked !== undefined) return asked.answer;
    const { promise, resolve } = Promise.withResolvers<FileSystemAnswer>();
    const question: Question = { answer: promise, isOpen: false };
    this.questions.set(path, question);
    this.waiting.push(() => {
      question.isOpen = true;
      resolve(this.read(path));
    });
    this.next();
    return promise;
  }

  /** Whether the kernel was asked about this path and has not answered. */
  isOpen(path: string): boolean {
    return this.questions.get(path)?.isOpen === true;
  }

  private async read(path: string): Promise<FileSystemAnswer> {
    try {
      const space = toSpace(await this.calls.statfs(path));
      return { space, realPath: await this.calls.realPath(path) };
    } finally {
      this.questions.delete(path);
      this.open -= 1;
      this.next();
    }
  }

  private next(): void {
    const begin = this.open < openQuestionsMax ? this.waiting.shift() : undefined;
    if (begin === undefined) return;
    this.open += 1;
    begin();
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

/** Values are those of the last answer: nobody waits for one here. */
export class FileSystemSpaces {
  private readonly known = new Map<string, Known>();
  private readonly questions: FileSystemQuestions;
  private readonly deadlineMs: number;

  /** @param options.deadlineMs after which a file system counts as not answering */
  constructor(
    paths: readonly string[],
    {
      deadlineMs = 5_000,
      questions = fileSystemQuestions,
    }: { readonly deadlineMs?: number; readonly questions?: FileSystemQuestions } = {},
  ) {
    for (const path of paths) this.known.set(path, { space: null, waitingSinceMs: null });
    this.deadlineMs = deadlineMs;
    this.questions = questions;
  }

  /** What the last answers said. @param nowMs monotonic */
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
        known.space = await this.questions.ask(path).then(
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
