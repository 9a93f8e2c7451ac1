// Sums of files, as `sha256sum` and its like print and check them.
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * @param {'md5' | 'sha256'} algorithm
 * @param {string} folder
 * @param {readonly string[]} paths below it
 */
export async function sums(algorithm, folder, paths) {
  const lines = await Promise.all(
    paths.map(async (path) => {
      const hash = createHash(algorithm).update(await readFile(join(folder, path)));
      return `${hash.digest('hex')}  ${path}\n`;
    }),
  );
  return lines.join('');
}

/** Regular files; links have no content of their own. @param {string} folder */
export async function filesBelow(folder) {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}
