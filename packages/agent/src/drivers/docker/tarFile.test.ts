import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { tempDir } from '../../../../../test/support/services.ts';
import { archivedFile } from './tarFile.ts';

const archive = (folder: string, name: string, format: string) =>
  execFileSync('tar', ['-C', folder, `--format=${format}`, '-c', name]);

test.each(['ustar', 'posix'])('the file of an archive of the form %s', (format) => {
  const folder = tempDir('tar').path;
  const text = 'root:x:0:\n'.repeat(100);
  writeFileSync(join(folder, 'group'), text);
  expect(archivedFile(archive(folder, 'group', format))?.toString()).toBe(text);
  expect(archivedFile(archive(folder, 'group', format).subarray(0, 1_024))).toBeNull();
  mkdirSync(join(folder, 'directory'));
  expect(archivedFile(archive(folder, 'directory', format))).toBeNull();
});

test('no archive has none', () => {
  expect(archivedFile(Buffer.alloc(0))).toBeNull();
});
