/**
 * How full file systems are. Asking a dead NFS mount never returns, and the question holds one of the four threads that
 * all file access of the agent shares. So nobody here waits for an answer: values are those of the last answer, a file
 * system has at most one question open, and all of them together at most two.
 */
import type { StatsFs } from 'node:fs';
import { statfs } from 'node:fs/promises';

export interface SpaceReading {
  /** As it was asked for. */
  readonly path: string;
  /** null: it has never answered, or cannot be read. */
  readonly space: Space | null;
  /** false: the question is open for longer than the deadline; `space` is what it once was. */
  readonly isAnswering: boolean;
}

export interface Space {
  readonly sizeBytes: number;
  /** For everybody; less than what is free, by what is kept for root. */
  readonly availableBytes: number;
  /** null: this file system has no fixed number of files. */
  readonly files: number | null;
  readonly availableFiles: number | null;
}

export type Statfs = (
  path: string,
) => Promise<Pick<StatsFs, 'bsize' | 'frsize' | 'blocks' | 'bavail' | 'files' | 'ffree'>>;

interface Asked {
  space: Space | null;
  /** When the question that is open or queued was first due; null: none is. */
  waitingSinceMs: number | null;
}

const openQuestionsMax = 2;

/** Questions open at one time in the whole process, whoever asks. */
class Lanes {
  #open = 0;
  readonly #queue: (() => Promise<void>)[] = [];

  run(question: () => Promise<void>): void {
    this.#queue.push(question);
    this.#next();
  }

  #next(): void {
    const question = this.#open < openQuestionsMax ? this.#queue.shift() : undefined;
    if (question === undefined) return;
    this.#open += 1;
    void question().finally(() => {
      this.#open -= 1;
      this.#next();
    });
  }
}

const processLanes = new Lanes();

export class FileSystemSpaces {
  readonly #asked: Map<string, Asked>;
  readonly #statfs: Statfs;
  readonly #deadlineMs: number;
  readonly #lanes: Lanes;
  #waiting = 0;
  #allAnswered: (() => void)[] = [];

  /** @param options.deadlineMs after which a file system counts as not answering */
  constructor(
    paths: readonly string[],
    { deadlineMs = 5_000, statfs: ask }: { readonly deadlineMs?: number; readonly statfs?: Statfs } = {},
  ) {
    this.#asked = new Map(paths.map((path) => [path, { space: null, waitingSinceMs: null }]));
    this.#statfs = ask ?? ((path) => statfs(path));
    this.#deadlineMs = deadlineMs;
    // Only real questions hold threads.
    this.#lanes = ask === undefined ? processLanes : new Lanes();
  }

  /** What the last answers said. @param nowMs monotonic */
  known(nowMs: number): readonly SpaceReading[] {
    return [...this.#asked].map(([path, { space, waitingSinceMs }]) => ({
      path,
      space,
      isAnswering: waitingSinceMs === null || nowMs - waitingSinceMs <= this.#deadlineMs,
    }));
  }

  /** Asks those that owe no answer. */
  ask(nowMs: number): void {
    for (const [path, asked] of this.#asked) {
      if (asked.waitingSinceMs !== null) continue;
      asked.waitingSinceMs = nowMs;
      this.#waiting += 1;
      this.#lanes.run(() => this.#question(path, asked));
    }
  }

  /** Resolves when no question is open: never, where a file system is dead. */
  answered(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#waiting === 0) resolve();
      else this.#allAnswered.push(resolve);
    });
  }

  async #question(path: string, asked: Asked): Promise<void> {
    try {
      asked.space = toSpace(await this.#statfs(path));
    } catch {
      asked.space = null;
    }
    asked.waitingSinceMs = null;
    this.#waiting -= 1;
    if (this.#waiting > 0) return;
    for (const resolve of this.#allAnswered.splice(0)) resolve();
  }
}

function toSpace(answer: Awaited<ReturnType<Statfs>>): Space | null {
  const { bsize, frsize, blocks, bavail, files, ffree } = answer;
  // Blocks are counted in fragments, which are smaller than the size to read by on some network file systems.
  const blockBytes = frsize > 0 ? frsize : bsize;
  // Some network file systems answer before they know anything.
  if (blocks === 0) return null;
  return {
    sizeBytes: blocks * blockBytes,
    availableBytes: bavail * blockBytes,
    files: files === 0 ? null : files,
    availableFiles: files === 0 ? null : ffree,
  };
}
