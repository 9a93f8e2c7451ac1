/** A release as its archive is unpacked, with small files in place of the programs. */
import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

/**
 * @param top an absolute path where nothing is yet
 * @param commit of hexadecimal digits
 * @returns the folder in which its programs look for what lies beside them
 */
export function unpackedRelease(
  top: string,
  version = '1.2.3',
  commit = 'c0ffee00c0ffee00',
  storeSchema = 17,
  arch: string = process.arch,
): string {
  const lib = join(top, 'lib/muster');
  const files = {
    'release.json': `${JSON.stringify({ version, commit, arch, storeSchema })}\n`,
    'dist/muster.mjs': `// ${version}\n`,
    muster: '#!/bin/sh\nexit 0\n',
  };
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(lib, path)), { recursive: true });
    writeFileSync(join(lib, path), text, { mode: path === 'muster' ? 0o755 : 0o644 });
  }
  cpSync(join(import.meta.dirname, '../../../../deploy/systemd'), join(lib, 'systemd'), { recursive: true });
  mkdirSync(join(top, 'bin'));
  symlinkSync('../lib/muster/muster', join(top, 'bin/muster'));
  const lines = readdirSync(top, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => {
      const sum = createHash('sha256').update(readFileSync(path)).digest('hex');
      return `${sum}  ${relative(top, path)}\n`;
    });
  writeFileSync(join(lib, 'SHA256SUMS'), lines.sort().join(''));
  return join(lib, 'dist');
}
