// For which kind of machine the native files of a release are: a release for arm64 is made on others, where none of it can be run.
import { open, readdir } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { Stop } from '../terminal.mjs';

/** `e_machine` of the ELF header (elf(5), the ABI supplements of the two processors). */
const machineNumbers = { x64: 62, arm64: 183 };

/** Only these two: bytes 4 and 5 of the header say 64 bits, the least significant byte first. */
const elf64Little = Buffer.from([0x7f, 0x45, 0x4c, 0x46, 2, 1]);

/**
 * @param {string} tree
 * @param {'x64' | 'arm64'} arch
 * @returns {Promise<string[]>} paths of its native files, below the tree
 * @throws {Stop} when one is for other machines, or there is none
 */
export async function requireMachine(tree, arch) {
  const entries = await readdir(tree, { recursive: true, withFileTypes: true });
  const native = [];
  for (const entry of entries.filter((each) => each.isFile())) {
    const path = join(entry.parentPath, entry.name);
    const header = await firstBytes(path, 20);
    if (!header.subarray(0, 4).equals(elf64Little.subarray(0, 4))) continue;
    const isRight =
      header.subarray(0, 6).equals(elf64Little) && header.readUInt16LE(18) === machineNumbers[arch];
    if (!isRight) throw new Stop(`${relative(tree, path)} is not for machines of the kind ${arch}.`);
    native.push(relative(tree, path));
  }
  if (native.length === 0) throw new Stop(`${tree} has no native file, not even Node.`);
  return native.toSorted();
}

/** @param {string} path @param {number} count @returns {Promise<Buffer>} zeros behind the end of a shorter file */
async function firstBytes(path, count) {
  const bytes = Buffer.alloc(count);
  const file = await open(path, 'r');
  try {
    await file.read(bytes, 0, count, 0);
    return bytes;
  } finally {
    await file.close();
  }
}
