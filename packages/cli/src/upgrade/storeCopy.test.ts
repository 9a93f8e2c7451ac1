/** The copy of a store on a disk of its own that becomes full at the worst moments; the old release is a script that copies. */
import { execFileSync } from 'node:child_process';
import {
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  rmSync,
  statfsSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { tempDir } from '../../../../test/support/services.ts';
import { storeCopy } from './storeCopy.ts';

const mebibyte = 1024 * 1024;

/** A store of 2 MiB that no program can read, on a disk of 24 MiB. */
function aDisk() {
  const { path } = tempDir('disk');
  const dataDir = join(path, 'data');
  const top = join(path, 'old');
  mkdirSync(dataDir);
  mkdirSync(join(top, 'lib/muster'), { recursive: true });
  // muster backup FILE --data DIR; muster restore FILE --force --data DIR
  const script = [
    '#!/bin/sh',
    'case "$1" in',
    `backup) cp "$4/muster.db" "$2" 2>/dev/null || { rm -f "$2"; echo "muster: no space left on the disk" >&2; exit 3; };;`,
    `restore) cp "$2" "$5/restored" || exit 3;;`,
    'esac',
  ];
  writeFileSync(join(top, 'lib/muster/muster'), script.join('\n'), { mode: 0o755 });
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=24m', 'tmpfs', dataDir]);
  onTestFinished(() => void execFileSync('umount', [dataDir]));
  writeFileSync(join(dataDir, 'muster.db'), Buffer.alloc(2 * mebibyte, 1));
  const open = () => {
    const copy = storeCopy({
      dataDir,
      old: { top, storeSchema: 17 },
      fresh: { version: '0.2.0', storeSchema: 18 },
      unfinished: null,
    });
    if (copy === null) throw new Error('the form of the store changes');
    return copy;
  };
  return { dataDir, open };
}

function fill(dataDir: string): void {
  const file = openSync(join(dataDir, 'filler'), 'w');
  const piece = Buffer.alloc(4096);
  expect(() => {
    for (;;) writeSync(file, piece);
  }).toThrow('ENOSPC');
  closeSync(file);
}

test('a disk that has no room is refused with what is missing, before anything is stopped', () => {
  const { dataDir, open } = aDisk();
  fill(dataDir);
  expect(open).toThrow(
    /data has 0 B free, and a copy of the store, its new form, and going back takes 1\d\.\d MiB: free at least 1\d MiB/,
  );
  expect(readdirSync(dataDir).toSorted()).toEqual(['filler', 'muster.db']);
});

test('a disk that becomes full before the copy leaves no part of it, and reports what is missing', () => {
  const { dataDir, open } = aDisk();
  const copy = open();
  fill(dataDir);
  expect(() => copy.copy()).toThrow(/the store was not copied: .*data has 0 B free, .*: free at least/);
  expect(readdirSync(dataDir).toSorted()).toEqual(['filler', 'muster.db']);
  rmSync(join(dataDir, 'filler'));
  open().copy();
  expect(readdirSync(dataDir)).toContain('before-0.2.0.backup');
});

test('a disk that becomes full after the copy has room for the way back', async () => {
  const { dataDir, open } = aDisk();
  const copy = open();
  copy.copy();
  fill(dataDir);
  expect(copy.spaceProblem()).toMatch(/has 0 B free, and the new form of the store takes/);
  await copy.putBack();
  expect(readdirSync(dataDir).toSorted()).toEqual(['before-0.2.0.backup', 'filler', 'muster.db', 'restored']);
});

test('the space for the way back is given back once it is of no use', () => {
  const { dataDir, open } = aDisk();
  const free = () => statfsSync(dataDir).bavail;
  const before = free();
  const copy = open();
  copy.copy();
  copy.endReserve();
  expect((before - free()) * statfsSync(dataDir).bsize).toBeLessThan(3 * mebibyte);
});
