import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** As small as a release can be: its program prints its version. @param top absolute folder, made with those above it */
export function makeSmallRelease(top: string, version: string, arch: string = process.arch): void {
  const files = {
    'lib/muster/muster': `#!/bin/sh\necho ${version}\n`,
    'lib/muster/release.json': JSON.stringify({ version, commit: 'abcdef', arch, storeSchema: 1 }),
    'share/doc/README.md': 'x'.repeat(10_000),
  };
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(top, path)), { recursive: true });
    writeFileSync(join(top, path), text, { mode: 0o755 });
  }
  const sum = (text: string) => createHash('sha256').update(text).digest('hex');
  const sums = Object.entries(files).map(([path, text]) => `${sum(text)}  ${path}\n`);
  writeFileSync(join(top, 'lib/muster/SHA256SUMS'), sums.join(''));
}
