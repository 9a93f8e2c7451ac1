/**
 * What of a checkpoint can be compared in a moment: names and sizes of its files, and their small parts. That is the header of
 * safetensors, the directory at the end of a zip archive, JSON as a whole. It does not depend on inodes and times, so that nodes of
 * one file server find the same. A change in the middle of a large file does not show in it; the version shows that.
 */
import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { belowAll, Directory, withDirectory } from './directories.ts';
import { type CheckpointListing, entriesUsual, listDirectory, listFile } from './listing.ts';

/** The bytes that are read of the beginning and of the end of a file of an unknown format. */
const endBytes = 16 * 1024;
/** A header or an index is read up to here. */
const headBytesMax = 1024 * 1024;
/** Of all files together. Of further ones only name and size count. */
const readBytesMax = 32 * 1024 * 1024;
const lengthBytes = 8;
/** Files whose beginnings and ends are compared one by one. */
const endsMax = 16;

export interface Fingerprint {
  /** 32 hexadecimal digits. */
  readonly fingerprint: string;
  /**
   * `INODE:HEAD:END` of each file, by path, with 8 digits of the digest of its beginning and of its end. A file that is being written
   * over has the end of the version before. Empty for a checkpoint of more than 16 files.
   */
  readonly ends: readonly string[];
}

interface ReadableFile {
  readonly path: string;
  readonly bytes: number;
  readonly inode: number;
}

/**
 * @param open returns a handle, which is closed here
 * @throws {Error} with the kernel's code
 */
export async function fingerprintOf(
  files: readonly ReadableFile[],
  open: (path: string) => Promise<FileHandle>,
): Promise<Fingerprint> {
  const all = createHash('sha256');
  const ends: string[] = [];
  let leftBytes = readBytesMax;
  for (const { path, bytes, inode } of files) {
    all.update(`${JSON.stringify([path, bytes])}\n`);
    if (leftBytes <= 0 || bytes === 0) continue;
    const handle = await open(path);
    try {
      const head = await readAt(handle, 0, await headBytesOf(handle, path, bytes));
      const end = await readAt(handle, Math.max(0, bytes - endBytes), Math.min(endBytes, bytes));
      leftBytes -= head.length + end.length;
      all.update(head).update(end);
      if (files.length <= endsMax) ends.push(`${inode}:${shortDigest(head)}:${shortDigest(end)}`);
    } finally {
      await handle.close();
    }
  }
  return { fingerprint: all.digest('hex').slice(0, 32), ends };
}

/** A checkpoint as it is found by its name. */
export interface Looked {
  readonly version: string;
  readonly bytes: number;
  readonly files: number;
  /** Wall clock of the file server or the node. */
  readonly savedAtMs: number;
  readonly kind: 'file' | 'directory';
}

/**
 * Looks at one checkpoint without reading it. Opens its directory, which makes a client of NFS ask its server.
 * @param name below the root, with `/` between its parts
 * @returns null: nothing that could be read is there under that name
 * @throws {Error} with the kernel's code, but for a name that does not exist
 */
export async function lookAt(root: string, name: string): Promise<Looked | null> {
  return withCheckpoint(root, name, async ({ kind, listing: { version, bytes, files, savedAtMs } }) => ({
    kind,
    version,
    bytes,
    files: files.length,
    savedAtMs,
  }));
}

/**
 * Reads the small parts of one checkpoint.
 * @returns null: it is not there
 * @throws {Error} with the kernel's code, also when it changes meanwhile
 */
export function fingerprintAt(root: string, name: string): Promise<Fingerprint | null> {
  return withCheckpoint(root, name, ({ listing, open }) => fingerprintOf(listing.files, open));
}

interface Found {
  readonly kind: 'file' | 'directory';
  readonly listing: CheckpointListing;
  readonly open: (path: string) => Promise<FileHandle>;
}

async function withCheckpoint<T>(
  root: string,
  name: string,
  use: (found: Found) => Promise<T>,
): Promise<T | null> {
  const parts = name.split('/');
  const last = parts.pop() ?? '';
  try {
    return await withDirectory(await Directory.open(root), (top) =>
      belowAll(top, parts, async (parent) => {
        const stat = await parent.statOf(last);
        if (stat.isFile())
          return use({
            kind: 'file',
            listing: listFile(stat),
            open: async () => (await parent.openFile(last)).handle,
          });
        if (!stat.isDirectory()) return null;
        return withDirectory(await parent.below(last), async (directory) =>
          use({
            kind: 'directory',
            listing: await listDirectory(directory, { left: entriesUsual }),
            open: (path) => openBelow(directory, path),
          }),
        );
      }),
    );
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

function openBelow(directory: Directory, path: string): Promise<FileHandle> {
  const parts = path.split('/');
  const last = parts.pop() ?? '';
  return belowAll(directory, parts, async (parent) => (await parent.openFile(last)).handle);
}

function isMissing(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : null;
  return code === 'ENOENT' || code === 'ENOTDIR' || code === 'ELOOP';
}

async function headBytesOf(handle: FileHandle, path: string, bytes: number): Promise<number> {
  if (path.endsWith('.json')) return Math.min(bytes, headBytesMax);
  if (bytes <= lengthBytes) return bytes;
  const start = await readAt(handle, 0, lengthBytes + 1);
  // A header of safetensors has its length before it, and begins with a brace.
  const claimed = start.length > lengthBytes && start[lengthBytes] === 0x7b ? start.readBigUInt64LE(0) : 0n;
  const header = claimed > BigInt(headBytesMax) ? headBytesMax : Number(claimed) + lengthBytes;
  return Math.min(bytes, Math.max(header, endBytes));
}

function shortDigest(part: Buffer): string {
  return createHash('sha256').update(part).digest('hex').slice(0, 8);
}

/** Cut where the file ends. */
async function readAt(handle: FileHandle, position: number, length: number): Promise<Buffer> {
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, position);
  return buffer.subarray(0, bytesRead);
}
