/**
 * What a checkpoint directory held when its job was asked to stop. A checkpoint counts as saved after that only if its
 * writing began later: one that was half written then, under a temporary name perhaps, is of a step before, and a program
 * that received the signal meanwhile is about to save again.
 */
import type { BigIntStats } from 'node:fs';
import { Directory, withDirectory } from '@muster/checkpoints/directories';
import { withPlaceOf } from './checkpointPlace.ts';
import { indexName } from './indexFile.ts';

export interface StopSnapshot {
  /** Everything that was there (`identityOf`), except the contents of known checkpoints. */
  readonly identities: ReadonlySet<string>;
  /** Checkpoints that were known and complete, by name. */
  readonly settled: ReadonlyMap<string, { readonly version: string; readonly identity: string }>;
}

/**
 * The same for as long as a file is there, whatever its name. An inode alone is given to the next file as soon as it is
 * free; where a file system does not keep when a file was made, that is all there is, and rather too much counts as old.
 */
function identityOf({ dev, ino, birthtimeNs }: BigIntStats): string {
  return `${dev}:${ino}:${birthtimeNs}`;
}

/** A look at this many entries takes some 200 ms. In a directory with more, everything counts as begun before the stop. */
const snapshotEntriesMax = 10_000;
/** A directory in which names vanish while it is read is read this many times at most. */
const readsMax = 10;

/**
 * @param settled versions of the checkpoints that are known and complete, by name
 * @param levels of directories below the root in which checkpoints lie
 * @returns null: there is too much there, it changes all the time, or it cannot be read
 */
export async function takeSnapshot(
  root: string,
  settled: ReadonlyMap<string, string>,
  levels: number,
): Promise<StopSnapshot | null> {
  const identities = new Set<string>();
  const found = new Map<string, { version: string; identity: string }>();
  let hasChanged = false;
  const look = async (directory: Directory, parent: string, left: number): Promise<boolean> => {
    for await (const { name: last } of directory.entries()) {
      if (identities.size >= snapshotEntriesMax) return false;
      if (last === indexName) continue;
      const stat = await directory.identify(last);
      if (stat === null) {
        // It may have been renamed since the names were read, and its new name is not among them.
        hasChanged = true;
        continue;
      }
      const name = parent === '' ? last : `${parent}/${last}`;
      const identity = identityOf(stat);
      identities.add(identity);
      const version = settled.get(name);
      if (version !== undefined) found.set(name, { version, identity });
      else if (left > 0 && stat.isDirectory()) {
        const isWhole = await withDirectory(await directory.below(last), (held) =>
          look(held, name, left - 1),
        );
        if (!isWhole) return false;
      }
    }
    return true;
  };
  try {
    for (let reads = 1; reads <= readsMax; reads += 1) {
      hasChanged = false;
      const isWhole = await withDirectory(await Directory.open(root), (held) => look(held, '', levels));
      if (!isWhole) return null;
      if (!hasChanged) return { identities, settled: found };
    }
    return null;
  } catch {
    return null;
  }
}

/** @param identity as of `identityAt`; null: it no longer exists */
export function beganAfter(
  snapshot: StopSnapshot,
  { name, version }: { readonly name: string; readonly version: string },
  identity: string | null,
): boolean {
  if (identity === null) return false;
  if (!snapshot.identities.has(identity)) return true;
  const settled = snapshot.settled.get(name);
  return settled !== undefined && settled.identity === identity && settled.version !== version;
}

export async function identityAt(root: string, name: string): Promise<string | null> {
  try {
    const stat = await withPlaceOf(root, name, (directory, last) => directory.identify(last));
    return stat === null ? null : identityOf(stat);
  } catch {
    return null;
  }
}
