import { chownSync, linkSync, lstatSync, mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { tempDir } from '../../../../../test/support/services.ts';
import { giveStoreToItsOwner } from './ownership.ts';

/** Any that is not root's. */
const owner = 61_184;

let dataDir: string;
let elsewhere: string;
beforeEach(() => {
  const { path } = tempDir('ownership');
  dataDir = join(path, 'data');
  elsewhere = join(path, 'secret');
  mkdirSync(join(dataDir, 'replaced-2026'), { recursive: true });
  for (const name of ['muster.db', 'muster.witness', 'replaced-2026/muster.db', 'notes'])
    writeFileSync(join(dataDir, name), name, { mode: 0o644 });
  writeFileSync(elsewhere, 'secret');
});

const uidOf = (name: string) => lstatSync(join(dataDir, name)).uid;

describe.runIf(process.getuid?.() === 0)('files that root has put into the directory of another user', () => {
  it('become that user’s, for nobody else to read', () => {
    chownSync(dataDir, owner, owner);
    giveStoreToItsOwner(dataDir);
    for (const name of ['muster.db', 'muster.witness', 'replaced-2026', 'replaced-2026/muster.db'])
      expect(uidOf(name), name).toBe(owner);
    expect(statSync(join(dataDir, 'muster.db')).mode & 0o777).toBe(0o600);
    expect(uidOf('notes')).toBe(0);
  });

  it('stay root’s where they are links to something else', () => {
    symlinkSync(elsewhere, join(dataDir, 'muster.sums'));
    linkSync(elsewhere, join(dataDir, 'muster.lock'));
    symlinkSync(join(dataDir, 'missing'), join(dataDir, 'cluster.json'));
    chownSync(dataDir, owner, owner);
    giveStoreToItsOwner(dataDir);
    expect(statSync(elsewhere)).toMatchObject({ uid: 0 });
    expect(uidOf('muster.db')).toBe(owner);
  });

  it('stay root’s in a directory of root', () => {
    giveStoreToItsOwner(dataDir);
    expect(uidOf('muster.db')).toBe(0);
  });
});

it('a directory that is not there is nobody’s', () => {
  expect(() => giveStoreToItsOwner(join(dataDir, 'nowhere'))).not.toThrow();
});
