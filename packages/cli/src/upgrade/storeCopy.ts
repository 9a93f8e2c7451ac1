/**
 * The copy of a store whose form the new release changes. It is made by the old release and put back by it: that one knows the form
 * that the store has before. While it is of use, a file holds the space that going back takes, so that a disk which becomes full
 * meanwhile leaves the way back open.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { requireSpace, spaceMissing } from '../diskSpace.ts';
import { CliError } from '../errors.ts';
import type { ReleaseTree } from '../install/releaseTree.ts';
import { schemaOfStore } from '../storeFiles.ts';
import type { StoreCopy } from './switchRelease.ts';
import type { BegunUpgrade } from './unfinished.ts';

export interface StoreCopyParts {
  /** Of the coordinator, absolute. */
  readonly dataDir: string;
  readonly old: Pick<ReleaseTree, 'top' | 'storeSchema'>;
  readonly fresh: Pick<ReleaseTree, 'version' | 'storeSchema'>;
  /** Of these two, cut off; null: this one begins. */
  readonly unfinished: BegunUpgrade | null;
}

export interface StoreCopyFile extends StoreCopy {
  /** Absolute. */
  readonly file: string;
  /** Gives back the space that is held for going back. */
  endReserve(): void;
  /** @returns null: the disk has room for the new form of the store; else what is missing */
  spaceProblem(): string | null;
}

/** For the files of a few pages that come with a store. */
const reserveExtraBytes = 4 * 1024 * 1024;

/**
 * @returns null: the form of the store stays
 * @throws {CliError} when there is no space for it
 */
export function storeCopy({ dataDir, old, fresh, unfinished }: StoreCopyParts): StoreCopyFile | null {
  if (unfinished !== null && unfinished.storeCopy === null) return null;
  // Going back to a release whose store was restored: the newer one can read it too.
  if (unfinished === null && old.storeSchema >= fresh.storeSchema) return null;
  const file = unfinished?.storeCopy ?? join(dataDir, `before-${fresh.version}.backup`);
  const reserve = `${file}.reserve`;
  const endReserve = () => rmSync(reserve, { force: true });
  endReserve();
  // One of an earlier trial is of no use, because the coordinator has run since, and it takes space.
  if (unfinished === null) rmSync(file, { force: true });
  const storeBytes = ['muster.db', 'muster.db-wal']
    .map((name) => sizeOf(join(dataDir, name)))
    .reduce((sum, each) => sum + each, 0);
  const reserveBytes = storeBytes + reserveExtraBytes;
  // Going back has to fit as well: it keeps the store that it replaces.
  const needed = [
    dataDir,
    storeBytes * 2 + reserveBytes,
    'a copy of the store, its new form, and going back',
  ] as const;
  if (unfinished === null) requireSpace(...needed);
  const run = (...words: readonly string[]) => runOld(old.top, [...words, '--data', dataDir]);
  return {
    file,
    isMade: unfinished !== null,
    endReserve,
    copy() {
      const { status } = spawnSync('fallocate', ['--length', String(reserveBytes), reserve]);
      // A file system that cannot hold space in advance: it was there a moment ago.
      if (status !== 0) endReserve();
      try {
        run('backup', file);
      } catch (error) {
        endReserve();
        const missing = spaceMissing(...needed);
        if (missing === null) throw error;
        throw new CliError(`the store was not copied: ${missing.message}`, {
          code: missing.code,
          hints: missing.hints,
        });
      }
    },
    async putBack() {
      endReserve();
      // Nothing was acknowledged with the new form, so nothing has to be replaced.
      if ((await schemaOfStore(dataDir)) === old.storeSchema) return;
      run('restore', file, '--force');
    },
    spaceProblem: () => spaceMissing(dataDir, storeBytes, 'the new form of the store')?.message ?? null,
  };
}

/** @throws {CliError} with what it reports */
function runOld(top: string, words: readonly string[]): void {
  const { status, stderr } = spawnSync(join(top, 'lib/muster/muster'), words, { encoding: 'utf8' });
  if (status === 0) return;
  const [reason = 'it was ended', ...hints] = (stderr ?? '').trim().split('\n');
  const command = words.slice(0, words.indexOf('--data')).join(' ');
  throw new CliError(`muster ${command} failed: ${reason.replace(/^muster: /, '')}`, { hints });
}

function sizeOf(path: string): number {
  return existsSync(path) ? statSync(path).size : 0;
}
