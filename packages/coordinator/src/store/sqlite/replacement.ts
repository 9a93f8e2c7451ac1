/**
 * The exchange of a store for another one that lies ready beside it. It takes several renames, so a record is written first: before it,
 * the old store is what there is, and after it the new one, no matter who is killed when. Whatever opens the directory completes it.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { syncDirectory, writeFileDurably } from '@muster/common/files';
import type { BackupAbout } from './backup.ts';
import type { StorePaths } from './inspection.ts';

export interface ReplacedStore {
  /** Newest event of the store as it is now. */
  readonly lastEventSeq: number;
  /** Acknowledged once and not in it. null: nobody knows. */
  readonly lostEvents: number | null;
  readonly lostJobs: number | null;
  /** Where the files that were replaced are kept. null: there were none. */
  readonly keptIn: string | null;
  /** Key files and settings that came from the backup. */
  readonly restoredFiles: readonly string[];
}

interface Replacement {
  readonly about: BackupAbout;
  /** Names in the staging directory and in the data directory, in the order in which they take their places. */
  readonly takes: readonly string[];
  /** Names in the data directory of what makes room. */
  readonly leaves: readonly string[];
  /** Of the directory for it, in the data directory; that one may be moved before this is completed. null: nothing leaves. */
  readonly keptName: string | null;
  readonly replaced: Omit<ReplacedStore, 'keptIn'>;
}

interface CompletedReplacement {
  readonly about: BackupAbout;
  readonly replaced: ReplacedStore;
}

/** Where a new store is made. */
export function stagingOf({ dataDir }: StorePaths): string {
  return join(dataDir, 'restoring');
}

/** In the staging directory: all of the new store is there and on disk. */
export const replacementName = 'complete.json';

/** From here on the new store is the one of this directory. */
export function commitReplacement(paths: StorePaths, replacement: Replacement): void {
  writeFileDurably(join(stagingOf(paths), replacementName), `${JSON.stringify(replacement)}\n`, 0o600);
}

/** Whether one was begun, so that the new store counts. */
export function hasReplacement(paths: StorePaths): boolean {
  return existsSync(join(stagingOf(paths), replacementName));
}

/**
 * Completes an exchange that was begun. The caller holds the lock of the directory. May be repeated after a kill at any step.
 * @returns null: none was begun
 * @throws {NodeJS.ErrnoException}
 */
export function finishReplacement(paths: StorePaths): CompletedReplacement | null {
  const { dataDir } = paths;
  const staging = stagingOf(paths);
  if (!hasReplacement(paths)) return null;
  const replacement = JSON.parse(readFileSync(join(staging, replacementName), 'utf8')) as Replacement;
  const { about, takes, leaves, keptName, replaced } = replacement;
  const keptIn = keptName === null ? null : join(dataDir, keptName);
  for (const name of leaves) {
    const [from, to] = [join(dataDir, name), join(keptIn ?? dataDir, name)];
    // Moved before: what is there now is the new one.
    if (existsSync(to) || !existsSync(from)) continue;
    mkdirSync(dirname(to), { recursive: true, mode: 0o700 });
    renameSync(from, to);
    syncDirectory(dirname(to));
  }
  for (const name of takes) {
    const [from, to] = [join(staging, name), join(dataDir, name)];
    if (!existsSync(from)) continue;
    mkdirSync(dirname(to), { recursive: true, mode: 0o700 });
    renameSync(from, to);
    syncDirectory(dirname(to));
  }
  syncDirectory(dataDir);
  rmSync(staging, { recursive: true, force: true });
  return { about, replaced: { ...replaced, keptIn } };
}
