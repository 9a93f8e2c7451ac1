/** Archives that cannot be used: nothing is left of them, and the release that is there stays as it is. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { readReleaseTree, requireIntact } from '../install/releaseTree.ts';
import { unpackArchive } from './archive.ts';
import { makeSmallRelease } from './smallReleaseFixture.ts';

function aMachine(arch: string = process.arch) {
  const folder = mkdtempSync(join(tmpdir(), 'muster-archive-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  makeSmallRelease(join(folder, 'muster-0.2.0'), '0.2.0', arch);
  const archive = join(folder, 'new.tar.gz');
  execFileSync('tar', ['-czf', archive, '-C', folder, 'muster-0.2.0']);
  const releases = join(folder, 'opt');
  makeSmallRelease(join(releases, '0.1.0'), '0.1.0');
  const expectUnchanged = () => {
    expect(readdirSync(releases)).toEqual(['0.1.0']);
    requireIntact(readReleaseTree(join(releases, '0.1.0')));
  };
  return { folder, archive, releases, expectUnchanged };
}

test('an archive that did not arrive as it was sent is refused', async () => {
  const { folder, archive, releases, expectUnchanged } = aMachine();
  const sum = createHash('sha256').update(readFileSync(archive)).digest('hex');
  writeFileSync(join(folder, 'SHA256SUMS'), `${sum}  new.tar.gz\n`);
  truncateSync(archive, readFileSync(archive).length - 100);
  await expect(unpackArchive(archive, releases, process.arch)).rejects.toThrow('its checksum differs');
  rmSync(join(folder, 'SHA256SUMS'));
  await expect(unpackArchive(archive, releases, process.arch)).rejects.toThrow('it cannot be unpacked');
  writeFileSync(archive, 'PK');
  await expect(unpackArchive(archive, releases, process.arch)).rejects.toThrow(
    'is not the archive of a release',
  );
  expectUnchanged();
});

test('an archive for another kind of machine is refused', async () => {
  const { archive, releases, expectUnchanged } = aMachine('vax');
  await expect(unpackArchive(archive, releases, process.arch)).rejects.toThrow(
    `is for machines of the kind vax, and this one is ${process.arch}`,
  );
  expectUnchanged();
});

test('a disk that becomes full while an archive is unpacked gets its space back', async () => {
  const { folder, archive, releases, expectUnchanged } = aMachine();
  // Somebody else takes the last of the space after it was counted: it ends like tar on such a disk, with a part of the files.
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  const tar = execFileSync('which', ['tar'], { encoding: 'utf8' }).trim();
  const script = [
    '#!/bin/sh',
    `[ "$1" = -xzf ] || exec ${tar} "$@"`,
    'echo part > "$4/part"; echo "tar: lib/muster/node: Wrote only 1536 of 10240 bytes" >&2; exit 2',
  ];
  writeFileSync(join(bin, 'tar'), script.join('\n'));
  chmodSync(join(bin, 'tar'), 0o755);
  const before = process.env['PATH'];
  process.env['PATH'] = `${bin}:${before}`;
  try {
    await expect(unpackArchive(archive, releases, process.arch)).rejects.toMatchObject({
      message: expect.stringContaining('the disk became full while new.tar.gz was unpacked'),
      code: 'resource_exhausted',
      hints: expect.arrayContaining([expect.stringContaining('Nothing was changed.')]),
    });
  } finally {
    process.env['PATH'] = before;
  }
  expectUnchanged();
  expect((await unpackArchive(archive, releases, process.arch)).folder).toBe('0.2.0');
});

test('a release that lies there intact takes no space, and one that is damaged is unpacked again', async () => {
  const { archive, releases } = aMachine();
  await unpackArchive(archive, releases, process.arch);
  const kept = join(releases, '0.2.0/share/doc/README.md');
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', releases]);
  try {
    makeSmallRelease(join(releases, '0.2.0'), '0.2.0');
    writeFileSync(join(releases, 'filler'), Buffer.alloc(20_000));
    expect(await unpackArchive(archive, releases, process.arch)).toMatchObject({
      folder: '0.2.0',
      isNew: false,
    });
    writeFileSync(join(releases, '0.2.0/share/doc/README.md'), 'changed');
    await expect(unpackArchive(archive, releases, process.arch)).rejects.toThrow(/free at least \d+ MiB$/);
  } finally {
    execFileSync('umount', [releases]);
  }
  writeFileSync(kept, 'changed');
  expect((await unpackArchive(archive, releases, process.arch)).isNew).toBe(true);
  expect(readFileSync(kept, 'utf8')).not.toBe('changed');
});
