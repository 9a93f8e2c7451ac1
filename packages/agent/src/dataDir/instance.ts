/**
 * The id of a data directory, which its copies do not share. The file of the id is known by its inode and the moment of its
 * creation, which a copy made file by file does not have. In a copy the tasks belong to the agent and guard of the original:
 * following them here would end them, or run them twice. A copy of a whole disk is told by its continuity token alone.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { writeFileDurably } from '@muster/common/files';

export interface Instance {
  readonly instanceId: string;
  /** The directory to which the tasks of the original were moved. Null if this is no copy. */
  readonly setAside: string | null;
}

/** Returns the id of a data directory; empty if no agent has used it. */
export function readInstanceId(dataDir: string): string {
  const path = join(dataDir, 'instance');
  return existsSync(path) ? readFileSync(path, 'utf8').trim() : '';
}

/** What names tasks of the original: their records, and what its guard knows of them. */
const ofTheOriginal = ['tasks', 'run'];

/** @param newId makes a random id */
export function openInstance(dataDir: string, newId: () => string): Instance {
  const [path, placePath] = [join(dataDir, 'instance'), join(dataDir, 'place')];
  const known = readInstanceId(dataDir);
  if (known !== '') {
    const place = placeOf(path);
    if (!existsSync(placePath)) writeFileDurably(placePath, `${place}\n`, 0o600);
    else if (!isSamePlace(readFileSync(placePath, 'utf8').trim(), place)) {
      const setAside = setTasksAside(dataDir, known);
      return { instanceId: makeInstance(path, placePath, newId()), setAside };
    }
    return { instanceId: known, setAside: null };
  }
  return { instanceId: makeInstance(path, placePath, newId()), setAside: null };
}

function makeInstance(path: string, placePath: string, id: string): string {
  writeFileDurably(path, `${id}\n`, 0o600);
  writeFileDurably(placePath, `${placeOf(path)}\n`, 0o600);
  return id;
}

/** Inode and time of creation in nanoseconds; 0 where the file system keeps none, and shows another time in its place. */
function placeOf(path: string): string {
  const { ino, birthtimeNs, ctimeNs } = statSync(path, { bigint: true });
  return `${ino} ${birthtimeNs === ctimeNs ? 0n : birthtimeNs}`;
}

/** @param known as it was written; unreadable, it proves nothing */
function isSamePlace(known: string, place: string): boolean {
  const [knownInode, knownBirth = '0'] = known.split(' ');
  const [inode, birth = '0'] = place.split(' ');
  if (knownInode === undefined || !/^\d+$/.test(knownInode)) return true;
  return knownInode === inode && (knownBirth === '0' || birth === '0' || knownBirth === birth);
}

function setTasksAside(dataDir: string, instanceId: string): string {
  const free = (number: number): string => {
    const path = join(dataDir, `copied-${instanceId.slice(0, 8)}-${number}`);
    return existsSync(path) ? free(number + 1) : path;
  };
  const setAside = free(1);
  mkdirSync(setAside, { mode: 0o700 });
  for (const name of ofTheOriginal)
    if (existsSync(join(dataDir, name))) renameSync(join(dataDir, name), join(setAside, name));
  return setAside;
}
