/** Which files a checkpoint is made of, from their directories alone. */
import { createHash } from 'node:crypto';
import type { Stats } from 'node:fs';
import { type Directory, errorCode, kindOf, withDirectory } from './directories.ts';

export interface ListedFile {
  /** Below the checkpoint, with `/` between its parts; empty when the checkpoint is this file. */
  readonly path: string;
  readonly bytes: number;
  readonly inode: number;
  readonly mtimeMs: number;
}

export interface CheckpointListing {
  /** By path, in code point order. */
  readonly files: readonly ListedFile[];
  /** Links, pipes and devices: never opened. By path. */
  readonly others: readonly { readonly path: string; readonly kind: 'link' | 'special' }[];
  /** Directories below it without anything in them, by path. The version does not cover them. */
  readonly empty: readonly string[];
  /** It has more entries than were to be looked at. */
  readonly isCut: boolean;
  readonly bytes: number;
  readonly savedAtMs: number;
  readonly version: string;
}

/** How many more entries may be looked at; counts down. */
export interface EntryBudget {
  left: number;
}

/** What is looked at unless somebody wants less. */
export const entriesUsual = 100_000;
/** Deeper than any program nests its shards. */
const depthMax = 6;

export function listFile(stat: Stats): CheckpointListing {
  return complete({ files: [listed('', stat)], others: [], empty: [], isCut: false }, stat.mtimeMs);
}

/**
 * Entries that vanish while they are listed are omitted: the next version differs.
 * @throws {Error} with the kernel's code, when the directory itself or one in it cannot be read
 */
export async function listDirectory(directory: Directory, budget: EntryBudget): Promise<CheckpointListing> {
  const files: ListedFile[] = [];
  const others: { readonly path: string; readonly kind: 'link' | 'special' }[] = [];
  const empty: string[] = [];
  let isCut = false;
  const list = async (each: Directory, prefix: string, depth: number): Promise<void> => {
    let isEmpty = true;
    for await (const { name } of each.entries()) {
      isEmpty = false;
      if (budget.left <= 0) {
        isCut = true;
        return;
      }
      budget.left -= 1;
      const path = `${prefix}${name}`;
      await unlessGone(async () => {
        const stat = await each.statOf(name);
        const kind = kindOf(stat);
        if (kind === 'file') files.push(listed(path, stat));
        else if (kind !== 'directory') others.push({ path, kind });
        else if (depth === depthMax) isCut = true;
        else await withDirectory(await each.below(name), (below) => list(below, `${path}/`, depth + 1));
      });
    }
    if (isEmpty && prefix !== '') empty.push(prefix.slice(0, -1));
  };
  await list(directory, '', 1);
  const { mtimeMs } = await directory.stat();
  return complete({ files, others, empty, isCut }, mtimeMs);
}

/**
 * The version of one entry, as a scan computes it for a candidate; it does not depend on the name of the entry.
 * @throws {Error} with the kernel's code
 */
export async function versionOf(directory: Directory, name: string): Promise<string> {
  const stat = await directory.statOf(name);
  if (!stat.isDirectory()) return listFile(stat).version;
  const budget = { left: entriesUsual };
  return withDirectory(
    await directory.below(name),
    async (each) => (await listDirectory(each, budget)).version,
  );
}

async function unlessGone(look: () => Promise<void>): Promise<void> {
  try {
    await look();
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error;
  }
}

function listed(path: string, stat: Stats): ListedFile {
  return { path, bytes: stat.size, inode: stat.ino, mtimeMs: stat.mtimeMs };
}

function complete(
  found: Pick<CheckpointListing, 'files' | 'others' | 'empty' | 'isCut'>,
  ownMtimeMs: number,
): CheckpointListing {
  const files = found.files.toSorted(byPath);
  const others = found.others.toSorted(byPath);
  const empty = found.empty.toSorted();
  const hash = createHash('sha256');
  for (const { path, inode, bytes, mtimeMs } of files)
    hash.update(JSON.stringify([path, inode, bytes, mtimeMs]));
  for (const { path, kind } of others) hash.update(JSON.stringify([path, kind]));
  return {
    files,
    others,
    empty,
    isCut: found.isCut,
    bytes: files.reduce((sum, each) => sum + each.bytes, 0),
    savedAtMs: Math.floor(files.reduce((newest, { mtimeMs }) => Math.max(newest, mtimeMs), -Infinity)),
    version: hash.digest('hex').slice(0, 32),
    ...(files.length === 0 && { savedAtMs: Math.floor(ownMtimeMs) }),
  };
}

function byPath(a: { readonly path: string }, b: { readonly path: string }): number {
  if (a.path === b.path) return 0;
  return a.path < b.path ? -1 : 1;
}
