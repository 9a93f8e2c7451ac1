/**
 * Free space and writability of file systems. Behind a path may be a server that is gone, and a question to it hangs in
 * the kernel: every path is asked at most once at a time, with a deadline, and a few that hang end all asking, because
 * each holds one of the few threads that all of the process's files share.
 */
import { readFileSync } from 'node:fs';
import { realpath, statfs } from 'node:fs/promises';
import { messageOf } from '@muster/common/errors';

export interface FileSystemFact {
  readonly path: string;
  /** Holds the agent's own directory: without it no task can start. */
  readonly isDataDir: boolean;
  /** null: not read. */
  readonly space: FileSystemSpace | null;
  readonly readOnly: boolean | null;
  /** Why it could not be read; null: it was. undefined: it was not asked. */
  readonly failure: string | null | undefined;
}

export interface FileSystemSpace {
  readonly sizeBytes: number;
  /** To whoever is not root. */
  readonly availableBytes: number;
  /** 0: made as needed. */
  readonly inodes: number;
  readonly inodesFree: number;
}

/** What the kernel says of a path; each may hang. */
export interface FileSystemCalls {
  space(path: string): Promise<FileSystemSpace>;
  realPath(path: string): Promise<string>;
  /** Text of /proc/mounts. Asks no file system. */
  mounts(): string;
}

export const systemCalls: FileSystemCalls = {
  space: async (path) => {
    const { bsize, frsize, blocks, bavail, files, ffree } = await statfs(path);
    // Blocks are counted in fragments, which are smaller than the size to read by on some network file systems.
    const blockBytes = frsize > 0 ? frsize : bsize;
    return {
      sizeBytes: blocks * blockBytes,
      availableBytes: bavail * blockBytes,
      inodes: files,
      inodesFree: ffree,
    };
  },
  realPath: (path) => realpath(path),
  mounts: () => readFileSync('/proc/self/mounts', 'utf8'),
};

interface Answer {
  readonly space: FileSystemSpace;
  readonly realPath: string;
}

/** Of the four threads that Node has for files. */
const hangingMax = 2;

export interface FileSystemProbeParts {
  readonly dataDir: string;
  /** Further paths to watch, absolute. */
  readonly paths: readonly string[];
  readonly deadlineMs: number;
  readonly calls: FileSystemCalls;
}

export class FileSystemProbe {
  private readonly parts: FileSystemProbeParts;
  /** Questions without an answer yet, by path. */
  private readonly asked = new Map<string, Promise<Answer>>();

  constructor(parts: FileSystemProbeParts) {
    this.parts = parts;
  }

  /**
   * One fact a path, the data directory first. A further path that is not there has none: Docker may have been removed
   * since the agent started, and nothing is wrong with that. Takes no longer than the deadline for each.
   */
  async probe(): Promise<readonly FileSystemFact[]> {
    const { dataDir, paths } = this.parts;
    const facts: FileSystemFact[] = [];
    // One after the other: a thread each would be all the threads there are.
    for (const path of new Set([dataDir, ...paths])) {
      const fact = await this.probePath(path);
      if (fact !== null) facts.push(fact);
    }
    return facts;
  }

  private async probePath(path: string): Promise<FileSystemFact | null> {
    const place = { path, isDataDir: path === this.parts.dataDir };
    const unread = { ...place, space: null, readOnly: null };
    const hanging = this.asked.get(path);
    if (hanging === undefined && this.asked.size >= hangingMax) return { ...unread, failure: undefined };
    try {
      const answer = await beforeDeadline(hanging ?? this.ask(path), this.parts.deadlineMs);
      if (answer === null)
        return { ...unread, failure: `no answer within ${this.parts.deadlineMs / 1000} s` };
      const readOnly = isReadOnly(this.parts.calls.mounts(), answer.realPath);
      return { ...place, space: answer.space, readOnly, failure: null };
    } catch (error) {
      const isThere = !(error instanceof Error && 'code' in error && error.code === 'ENOENT');
      return isThere || place.isDataDir ? { ...unread, failure: messageOf(error) } : null;
    }
  }

  private ask(path: string): Promise<Answer> {
    const { calls } = this.parts;
    const answer = calls
      .space(path)
      .then(async (space) => ({ space, realPath: await calls.realPath(path) }))
      .finally(() => this.asked.delete(path));
    this.asked.set(path, answer);
    return answer;
  }
}

/** @returns null when the deadline passed first */
function beforeDeadline<T>(promise: Promise<T>, deadlineMs: number): Promise<T | null> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(null), deadlineMs);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

/**
 * Whether the mount that holds a path is read-only; null when none is found.
 *
 *     /dev/nvme0n1p2 / ext4 rw,relatime 0 0
 *     server:/data\040sets /mnt/data nfs4 ro,vers=4.2 0 0
 */
export function isReadOnly(mounts: string, path: string): boolean | null {
  let found: { readonly point: string; readonly readOnly: boolean } | null = null;
  for (const line of mounts.split('\n')) {
    const [, escaped, , options] = line.split(' ');
    if (escaped === undefined || options === undefined) continue;
    const point = escaped.replace(/\\([0-7]{3})/g, (_, octal: string) =>
      String.fromCharCode(Number.parseInt(octal, 8)),
    );
    const holds = path === point || path.startsWith(point.endsWith('/') ? point : `${point}/`);
    // Of two at the same place the later one covers the other.
    if (!holds || point.length < (found?.point.length ?? 0)) continue;
    found = { point, readOnly: options.split(',').includes('ro') };
  }
  return found?.readOnly ?? null;
}
