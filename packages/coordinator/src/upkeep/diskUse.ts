/** What the data directory takes, and how much its file systems have left. */
import type { Dirent } from 'node:fs';
import { readdir, stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import type { DiskPart, DiskUse, FileSystemSpace } from '@muster/common/upkeep';

/** What its owner counts and bounds by itself. */
export interface DiskBudget {
  readonly part: Extract<DiskPart['part'], 'events' | 'logs' | 'rows'>;
  readonly usedBytes: number;
  readonly limitBytes: number;
}

export interface DiskUseParts {
  /** Absolute. */
  readonly dataDir: string;
  readonly reserveBytes: number;
  /** Bytes in the files of the store that it holds for commits on a full disk. */
  readonly heldBytes: () => number;
  readonly budgets: () => readonly DiskBudget[];
}

/** Reads a directory's own entries and those of old copies: as many as somebody has restored and upgraded. */
export async function measureDiskUse(parts: DiskUseParts): Promise<DiskUse> {
  const { dataDir, reserveBytes, heldBytes, budgets } = parts;
  const entries = await entriesOf(dataDir);
  const bytesOf = (isPart: (name: string) => boolean) =>
    sumOf(entries.filter(({ name }) => isPart(name)).map((entry) => bytesBelow(dataDir, entry)));
  const own = async (part: DiskPart['part'], isPart: (name: string) => boolean): Promise<DiskPart> => ({
    part,
    usedBytes: await bytesOf(isPart),
    limitBytes: null,
  });
  const store = await bytesOf((name) => name.startsWith('muster.db'));
  const held = heldBytes();
  return {
    parts: [
      { part: 'store', usedBytes: Math.max(0, store - held), limitBytes: null },
      ...budgets(),
      await own('backups', (name) => name.startsWith('replaced-') || name.endsWith('.backup')),
      { part: 'reserve', usedBytes: held, limitBytes: null },
    ],
    fileSystems: await fileSystemsOf(dataDir, reserveBytes),
  };
}

/** Logs and rows may be on disks of their own. */
async function fileSystemsOf(dataDir: string, reserveBytes: number): Promise<readonly FileSystemSpace[]> {
  const seen = new Set<number>();
  const found: FileSystemSpace[] = [];
  for (const path of [dataDir, join(dataDir, 'logs'), join(dataDir, 'rows')]) {
    const stats = await unlessGone(stat(path));
    if (stats === null || seen.has(stats.dev)) continue;
    seen.add(stats.dev);
    const { blocks, bavail, bsize } = await statfs(path);
    found.push({
      path,
      sizeBytes: blocks * bsize,
      availableBytes: bavail * bsize,
      reserveBytes: path === dataDir ? reserveBytes : 0,
    });
  }
  return found;
}

async function bytesBelow(directory: string, entry: Dirent): Promise<number> {
  const path = join(directory, entry.name);
  if (entry.isDirectory()) return sumOf((await entriesOf(path)).map((each) => bytesBelow(path, each)));
  // A file with holes takes less than its length.
  return entry.isFile() ? ((await unlessGone(stat(path)))?.blocks ?? 0) * 512 : 0;
}

async function entriesOf(directory: string): Promise<readonly Dirent[]> {
  return (await unlessGone(readdir(directory, { withFileTypes: true }))) ?? [];
}

async function sumOf(all: readonly Promise<number>[]): Promise<number> {
  return (await Promise.all(all)).reduce((sum, each) => sum + each, 0);
}

/** Files come and go while they are looked at. */
async function unlessGone<T>(reading: Promise<T>): Promise<T | null> {
  try {
    return await reading;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
