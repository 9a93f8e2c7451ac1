/**
 * Who owns the files of a store. Under systemd the coordinator has a user of its own, and an admin restores as root: without
 * this the coordinator could not open what was restored.
 */
import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  openSync,
  readdirSync,
  statSync,
} from 'node:fs';
import { join } from 'node:path';
import { keyFiles, settingsName } from './attached.ts';
import { keptNamePrefix, restoredName, storePaths } from './inspection.ts';
import { replacementName, stagingOf } from './replacement.ts';

/**
 * Gives the files of the store that root owns to the owner of their directory. Does nothing for anybody but root, and in a
 * directory that is root's own. The owner may put anything else into the directory, such as a link to a file of root's: links
 * are not followed, and a file with a second name stays as it is.
 *
 * @param dataDir absolute; it need not exist
 * @throws {NodeJS.ErrnoException} when a file cannot be given away
 */
export function giveStoreToItsOwner(dataDir: string): void {
  const owner = statSync(dataDir, { throwIfNoEntry: false });
  if (process.geteuid?.() !== 0 || owner === undefined || owner.uid === 0) return;
  const staging = stagingOf(storePaths(dataDir));
  for (const path of [...filesIn(dataDir), ...keptIn(dataDir), ...filesIn(staging), staging]) {
    const file = openWithoutFollowing(path);
    if (file === null) continue;
    try {
      const about = fstatSync(file);
      const isOurs = about.uid === 0 && (about.isDirectory() || (about.isFile() && about.nlink === 1));
      if (!isOurs) continue;
      if (about.isFile()) fchmodSync(file, 0o600);
      fchownSync(file, owner.uid, owner.gid);
    } finally {
      closeSync(file);
    }
  }
}

function filesIn(directory: string): readonly string[] {
  const { database, wal, keptLog, witness, sums, lock, marker } = storePaths(directory);
  const names = [...keyFiles, settingsName, replacementName, restoredName, 'tls'];
  return [database, wal, keptLog, witness, sums, lock, marker, ...names.map((name) => join(directory, name))];
}

/** Directories with the files that a restore has replaced, and these files. */
function keptIn(dataDir: string): readonly string[] {
  return readdirSync(dataDir, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && entry.name.startsWith(keptNamePrefix))
    .map(({ name }) => join(dataDir, name))
    .flatMap((directory) => [...filesIn(directory), directory]);
}

/** @returns null: there is no such file, or it is a link or a device */
function openWithoutFollowing(path: string): number | null {
  try {
    return openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ELOOP' || code === 'ENXIO' || code === 'ENOTDIR') return null;
    throw error;
  }
}
