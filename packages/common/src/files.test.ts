import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { makeDirectories, writeFileAtomically, writeFileDurably } from './files.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-files-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

test.each([
  ['writeFileDurably', writeFileDurably],
  ['writeFileAtomically', writeFileAtomically],
])('%s replaces a file and leaves nothing beside it', (_, write) => {
  const path = join(directory, 'file');
  write(path, 'old', 0o600);
  write(path, 'new', 0o600);
  expect(readFileSync(path, 'utf8')).toBe('new');
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(readdirSync(directory)).toEqual(['file']);
});

test.each(['writeFileDurably', 'writeFileAtomically'])(
  '%s leaves the old file when only a part can be written',
  (name) => {
    const path = join(directory, 'file');
    writeFileAtomically(path, 'old', 0o600);
    const script = `
    import { ${name} } from ${JSON.stringify(pathToFileURL(join(import.meta.dirname, 'files.ts')).href)};
    process.on('SIGXFSZ', () => {});
    ${name}(${JSON.stringify(path)}, 'x'.repeat(3_000), 0o600);`;
    // The limit of one block of 1,024 bytes stands for a disk that fills up in the middle of a write.
    const shell = 'ulimit -f 1; exec "$0" --input-type=module -e "$1"';
    const { status, stderr } = spawnSync('bash', ['-c', shell, process.execPath, script], {
      encoding: 'utf8',
    });
    expect([status, stderr]).toEqual([1, expect.stringContaining('EFBIG')]);
    expect(readFileSync(path, 'utf8')).toBe('old');
  },
);

test('directories are made with all above them, and again is fine', () => {
  const path = join(directory, 'a', 'b');
  makeDirectories(path, 0o700);
  makeDirectories(path, 0o700);
  expect(statSync(path).mode & 0o777).toBe(0o700);
  expect(statSync(join(directory, 'a')).mode & 0o777).toBe(0o700);
});

test('where none can be made it ends at once, with the reason', () => {
  expect(() => makeDirectories('/proc/muster/data', 0o700)).toThrow(/ENOENT.*\/proc\/muster'/);
  writeFileAtomically(join(directory, 'file'), '', 0o600);
  expect(() => makeDirectories(join(directory, 'file'), 0o700)).toThrow(/EEXIST/);
  expect(() => makeDirectories(join(directory, 'file', 'x'), 0o700)).toThrow(/ENOTDIR/);
});
