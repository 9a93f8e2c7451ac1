import { mkdirSync, statfsSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { tempDirOnDisk } from '../../../../test/support/services.ts';
import { type DiskBudget, measureDiskUse } from './diskUse.ts';

const kibibyte = 1024;
const budgets: readonly DiskBudget[] = [
  { part: 'events', usedBytes: 1, limitBytes: 10 },
  { part: 'logs', usedBytes: 2, limitBytes: 20 },
];

function aDataDir(): string {
  const { path, remove } = tempDirOnDisk('disk-use');
  onTestFinished(remove);
  return path;
}

test('parts are measured by what they take on disk, with old copies in depth and links left out', async () => {
  const dataDir = aDataDir();
  const write = (name: string, size: number) => writeFileSync(join(dataDir, name), Buffer.alloc(size, 1));
  write('muster.db', 64 * kibibyte);
  write('muster.db-wal', 32 * kibibyte);
  write('before-0.2.0.backup', 8 * kibibyte);
  mkdirSync(join(dataDir, 'replaced-1', 'tls'), { recursive: true });
  write('replaced-1/tls/ca.key', 4 * kibibyte);
  symlinkSync(join(dataDir, 'muster.db'), join(dataDir, 'replaced-1', 'link'));
  write('admin.token', 4 * kibibyte);
  // A hole takes nothing.
  truncateSync(join(dataDir, 'muster.db-wal'), 1024 * kibibyte);

  const { parts } = await measureDiskUse({
    dataDir,
    reserveBytes: 5,
    heldBytes: () => 16 * kibibyte,
    budgets: () => budgets,
  });

  expect(parts).toEqual([
    { part: 'store', usedBytes: 80 * kibibyte, limitBytes: null },
    ...budgets,
    { part: 'backups', usedBytes: 12 * kibibyte, limitBytes: null },
    { part: 'reserve', usedBytes: 16 * kibibyte, limitBytes: null },
  ]);
});

test('directories on one file system are one, with the reserve', async () => {
  const dataDir = aDataDir();
  mkdirSync(join(dataDir, 'logs'));
  const { fileSystems } = await measureDiskUse({
    dataDir,
    reserveBytes: 5,
    heldBytes: () => 0,
    budgets: () => [],
  });
  const { blocks, bsize } = statfsSync(dataDir);
  expect(fileSystems).toEqual([
    { path: dataDir, sizeBytes: blocks * bsize, availableBytes: expect.any(Number), reserveBytes: 5 },
  ]);
  expect(fileSystems[0]?.availableBytes).toBeGreaterThan(0);
});

test('logs on a disk of their own are another, without a reserve', async () => {
  const dataDir = aDataDir();
  symlinkSync('/dev/shm', join(dataDir, 'logs'));
  const { fileSystems } = await measureDiskUse({
    dataDir,
    reserveBytes: 5,
    heldBytes: () => 0,
    budgets: () => [],
  });
  expect(fileSystems.map(({ path, reserveBytes }) => [path, reserveBytes])).toEqual([
    [dataDir, 5],
    [join(dataDir, 'logs'), 0],
  ]);
});
