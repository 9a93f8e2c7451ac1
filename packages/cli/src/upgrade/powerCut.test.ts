/**
 * The power fails at any moment of an upgrade's work on files. After each call that changes something, the folder of the releases is
 * copied as the disk may then have it: with the content of those files alone that were synced since they were last written.
 */
import { execFileSync } from 'node:child_process';
import fs, { cpSync, mkdtempSync, readdirSync, readlinkSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { pointLink } from '../install/machine.ts';
import { readReleaseTree, requireIntact } from '../install/releaseTree.ts';
import { unpackArchive } from './archive.ts';
import { makeSmallRelease } from './smallReleaseFixture.ts';
import { noteBegun, noteEnded, unfinishedUpgrade } from './unfinished.ts';

function tempFolder(): string {
  const path = mkdtempSync(join(tmpdir(), 'muster-power-'));
  onTestFinished(() => rmSync(path, { recursive: true }));
  return path;
}

const filesBelow = (top: string) =>
  readdirSync(top, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));

/** Which files have on the disk what they show. */
class Disk {
  private readonly top: string;
  private readonly synced = new Map<number, number>();

  constructor(top: string) {
    this.top = top;
    for (const path of filesBelow(top)) this.sync(statSync(path));
  }

  sync({ ino, mtimeMs }: fs.Stats): void {
    this.synced.set(ino, mtimeMs);
  }

  /** @param copy where to put what is left after a cut of the power */
  cut(copy: string): void {
    cpSync(this.top, copy, { recursive: true, verbatimSymlinks: true });
    for (const path of filesBelow(this.top)) {
      const { ino, mtimeMs } = statSync(path);
      if (this.synced.get(ino) !== mtimeMs) writeFileSync(join(copy, path.slice(this.top.length)), '');
    }
  }
}

/** Calls `seen` after each call that changes files; @returns how to end that */
function watchFiles(disk: Disk, seen: () => void): () => void {
  const { renameSync, symlinkSync, rmSync: remove, fsyncSync, fstatSync } = fs;
  let isInside = false;
  const after = (look: () => void) => {
    // Calls inside calls, and those of the look itself.
    if (isInside) return;
    isInside = true;
    look();
    isInside = false;
  };
  const watched = <A extends readonly unknown[], R>(call: (...args: A) => R) => {
    return (...args: A): R => {
      const result = call(...args);
      after(seen);
      return result;
    };
  };
  fs.renameSync = watched(renameSync);
  fs.symlinkSync = watched(symlinkSync);
  fs.rmSync = watched(remove);
  fs.fsyncSync = (file) => {
    fsyncSync(file);
    disk.sync(fstatSync(file));
    after(seen);
  };
  syncBuiltinESMExports();
  return () => {
    Object.assign(fs, { renameSync, symlinkSync, rmSync: remove, fsyncSync });
    syncBuiltinESMExports();
  };
}

test('whenever the power fails, what is linked is a complete release, and the note is readable', async () => {
  const media = tempFolder();
  makeSmallRelease(join(media, 'muster-0.2.0'), '0.2.0');
  const archive = join(media, 'new.tar.gz');
  execFileSync('tar', ['-czf', archive, '-C', media, 'muster-0.2.0']);
  const releases = tempFolder();
  makeSmallRelease(join(releases, '0.1.0'), '0.1.0');
  // What an unpacking that was cut off may have left: it is not one that works.
  makeSmallRelease(join(releases, '0.2.0'), '0.2.0');
  writeFileSync(join(releases, '0.2.0/share/doc/README.md'), '');
  pointLink(join(releases, 'current'), '0.1.0');

  const disk = new Disk(releases);
  const copies = tempFolder();
  const linked: string[] = [];
  const stop = watchFiles(disk, () => {
    const copy = join(copies, String(linked.length));
    disk.cut(copy);
    linked.push(readlinkSync(join(copy, 'current')));
  });
  try {
    const { folder } = await unpackArchive(archive, releases, process.arch);
    noteBegun(releases, { from: '0.1.0', to: folder, storeCopy: null });
    pointLink(join(releases, 'current'), folder);
    noteEnded(releases);
  } finally {
    stop();
  }
  expect(linked.length).toBeGreaterThan(15);
  for (const [index, target] of linked.entries()) {
    const copy = join(copies, String(index));
    const top = join(copy, target);
    requireIntact(readReleaseTree(top));
    expect(execFileSync(join(top, 'lib/muster/muster'), { encoding: 'utf8' })).toBe(`${target}\n`);
    expect([null, '0.1.0']).toContain(unfinishedUpgrade(copy, target)?.from ?? null);
  }
  // The new release runs unnoted only once the upgrade has ended.
  const noted = linked.map(
    (target, index) => unfinishedUpgrade(join(copies, String(index)), target) !== null,
  );
  expect(linked[0]).toBe('0.1.0');
  expect(noted[linked.indexOf('0.2.0')]).toBe(true);
  expect(linked.at(-1)).toBe('0.2.0');
  expect(noted.at(-1)).toBe(false);
});
