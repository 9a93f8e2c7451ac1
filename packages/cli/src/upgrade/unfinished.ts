/**
 * The note that an upgrade has begun. It is removed at the end, so that one that was killed, or cut off by the power, is known to
 * the next: which release last worked, and whether the store may have another form since.
 */
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { syncDirectory, writeFileDurably } from '@muster/common/files';

/** Folders below that of the releases. */
export interface BegunUpgrade {
  /** Worked before. */
  readonly from: string;
  readonly to: string;
  /** Absolute path of the copy of the store from before, made before the link is changed; null: the form of the store stays. */
  readonly storeCopy: string | null;
}

const notePath = (releases: string) => join(releases, '.upgrading.json');

/** To be called before anything is changed. @param releases absolute folder of the releases */
export function noteBegun(releases: string, begun: BegunUpgrade): void {
  writeFileDurably(notePath(releases), `${JSON.stringify(begun)}\n`, 0o600);
}

/** Whether there is a note, of whichever releases. */
export function isNoted(releases: string): boolean {
  return existsSync(notePath(releases));
}

export function noteEnded(releases: string): void {
  rmSync(notePath(releases), { force: true });
  syncDirectory(releases);
}

/** @returns the upgrade of the note, which may have changed nothing but the daemons that it stopped; null: there is no note */
export function notedUpgrade(releases: string): BegunUpgrade | null {
  if (!isNoted(releases)) return null;
  return JSON.parse(readFileSync(notePath(releases), 'utf8')) as BegunUpgrade;
}

/**
 * @param current folder of the current release. Where it is not the one of the note, that upgrade had not begun to change anything, or
 *   had gone back: the store is put back before the link is
 * @returns null: none was cut off
 */
export function unfinishedUpgrade(releases: string, current: string): BegunUpgrade | null {
  const begun = notedUpgrade(releases);
  return begun?.to === current ? begun : null;
}
