/** The tree of a release: what it holds, whether it is intact, and a copy of it that is never there in part. */
import { createHash } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { makeDirectories, syncDirectory } from '@muster/common/files';
import { requireSpace } from '../diskSpace.ts';
import { CliError, fileErrorReason } from '../errors.ts';

/** Where the releases of a machine lie, a folder each, with a link to the one that is used. */
export const releasesDir = '/opt/muster';
export const currentLink = `${releasesDir}/current`;
/** What units run, whichever release is the current one. */
export const releaseLauncher = `${currentLink}/lib/muster/muster`;

/** Below the top of a release: sums of all its other files, as `sha256sum --check` reads them. */
export const sumsPath = 'lib/muster/SHA256SUMS';
const aboutPath = 'lib/muster/release.json';

export interface ReleaseTree {
  /** Absolute. */
  readonly top: string;
  readonly version: string;
  readonly commit: string;
  /** As Node names the kind of machine. */
  readonly arch: string;
  /** Version of the schema that its coordinator gives the store. */
  readonly storeSchema: number;
  /** SHA-256 in hexadecimal digits, by paths below the top. */
  readonly sums: ReadonlyMap<string, string>;
}

/**
 * Reads what a release tells about itself; its files are compared by `requireIntact`.
 * @param top absolute
 * @throws {CliError} when this is not a release, or only a part of one
 */
export function readReleaseTree(top: string): ReleaseTree {
  const sums = new Map<string, string>();
  const text = readPart(top, sumsPath);
  for (const line of text.split('\n').slice(0, -1)) {
    const [, sum, path] = /^([0-9a-f]{64}) {2}([^/].*)$/.exec(line) ?? [];
    if (sum === undefined || path === undefined || path.split('/').includes('..'))
      throw damaged(top, sumsPath);
    sums.set(path, sum);
  }
  if (!text.endsWith('\n') || !sums.has(aboutPath)) throw damaged(top, sumsPath);
  const about = parseAbout(readPart(top, aboutPath));
  if (about === null) throw damaged(top, aboutPath);
  return { top, ...about, sums };
}

/** @returns null: these are the files that the release was made with; else the first path that differs */
function firstDamage({ top, sums }: ReleaseTree): string | null {
  for (const [path, sum] of sums) {
    if (!statSync(join(top, path), { throwIfNoEntry: false })?.isFile()) return path;
    if (sumOf(join(top, path)) !== sum) return path;
  }
  // A list that was cut off at the end of a line names too few.
  const program = join(top, 'lib/muster');
  const unknown = readdirSync(program, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => relative(top, join(entry.parentPath, entry.name)))
    .find((path) => path !== sumsPath && !sums.has(path));
  return unknown ?? null;
}

/** @throws {CliError} with the first file that is not as the release was made */
export function requireIntact(tree: ReleaseTree): void {
  const path = firstDamage(tree);
  if (path !== null) throw damaged(tree.top, path);
}

/** Whether this release lies intact at a place. @param place absolute */
export function isReleaseAt(tree: ReleaseTree, place: string): boolean {
  if (!existsSync(place)) return false;
  try {
    const there = readReleaseTree(place);
    return isSameRelease(there, tree) && firstDamage(there) === null;
  } catch (error) {
    if (error instanceof CliError) return false;
    throw error;
  }
}

/**
 * A release that lies intact beside others.
 * @param releases absolute folder of them, which need not exist
 * @param sums text of its list of sums, which no other release has
 */
export function releaseWithSums(releases: string, sums: string): ReleaseTree | null {
  if (!existsSync(releases)) return null;
  for (const entry of readdirSync(releases, { withFileTypes: true })) {
    const top = join(releases, entry.name);
    const list = join(top, sumsPath);
    if (!entry.isDirectory() || !existsSync(list) || readFileSync(list, 'utf8') !== sums) continue;
    const tree = readReleaseTree(top);
    if (firstDamage(tree) === null) return tree;
  }
  return null;
}

function isSameRelease(one: ReleaseTree, other: ReleaseTree): boolean {
  return (
    one.sums.size === other.sums.size && [...one.sums].every(([path, sum]) => other.sums.get(path) === sum)
  );
}

/**
 * Name of the folder of a release: its version. Another build of the same version gets its commit as well.
 * @param releases folder of the releases, which need not exist
 */
export function releaseFolder(tree: ReleaseTree, releases: string): string {
  try {
    const there = readReleaseTree(join(releases, tree.version));
    return there.commit === tree.commit ? tree.version : `${tree.version}+${tree.commit.slice(0, 8)}`;
  } catch (error) {
    if (error instanceof CliError) return tree.version;
    throw error;
  }
}

/**
 * Copies a release beside its place, compares the copy, has it written to the disk, and then gives it its name. What an
 * interrupted copy has left is removed.
 * @param place absolute; what is there already is replaced
 * @throws {CliError} when there is no space, or the copy differs
 */
export function copyRelease(tree: ReleaseTree, place: string): void {
  const parent = dirname(place);
  const part = partPath(place);
  makeDirectories(parent, 0o755);
  rmSync(part, { recursive: true, force: true });
  const paths = [...tree.sums.keys(), sumsPath];
  requireSpace(parent, sizeOf(tree.top, paths), `the release ${tree.version}`);
  try {
    for (const path of paths) copyDurably(join(tree.top, path), join(part, path));
    mkdirSync(join(part, 'bin'), { recursive: true });
    symlinkSync('../lib/muster/muster', join(part, 'bin/muster'));
    requireIntact({ ...tree, top: part });
    syncFolders(part);
  } catch (error) {
    rmSync(part, { recursive: true, force: true });
    const reason = fileErrorReason(error);
    if (reason === null) throw error;
    throw new CliError(`cannot copy the release ${tree.version} to ${place}: ${reason}`);
  }
  putInPlace(part, place);
}

/** Gives what was made beside a place its name. @param part from `partPath` */
export function putInPlace(part: string, place: string): void {
  const old = `${part}.old`;
  rmSync(old, { recursive: true, force: true });
  if (existsSync(place)) renameSync(place, old);
  renameSync(part, place);
  syncDirectory(dirname(place));
  rmSync(old, { recursive: true, force: true });
}

/** Where the folder of a release lies while it is made. */
function partPath(place: string): string {
  return join(dirname(place), `.${basename(place)}.part`);
}

/** Has everything below a folder written to the disk. */
export function syncFiles(top: string): void {
  for (const entry of readdirSync(top, { recursive: true, withFileTypes: true }))
    if (entry.isFile()) syncDirectory(join(entry.parentPath, entry.name));
  syncFolders(top);
}

/** Makes what was written below a folder last: the entries of each folder, its own included. */
function syncFolders(top: string): void {
  for (const entry of readdirSync(top, { withFileTypes: true }))
    if (entry.isDirectory()) syncFolders(join(top, entry.name));
  syncDirectory(top);
}

function sizeOf(top: string, paths: readonly string[]): number {
  return paths.reduce(
    (sum, path) => sum + (statSync(join(top, path), { throwIfNoEntry: false })?.size ?? 0),
    0,
  );
}

function copyDurably(from: string, to: string): void {
  makeDirectories(dirname(to), 0o755);
  const runs = (statSync(from).mode & 0o100) !== 0;
  const file = openSync(to, 'wx', runs ? 0o755 : 0o644);
  try {
    writeFileSync(file, readFileSync(from));
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/** Piece by piece: Node itself has 130 MB. */
function sumOf(path: string): string {
  const hash = createHash('sha256');
  const piece = Buffer.allocUnsafe(1024 * 1024);
  const file = openSync(path, 'r');
  try {
    for (;;) {
      const bytes = readSync(file, piece);
      if (bytes === 0) return hash.digest('hex');
      hash.update(piece.subarray(0, bytes));
    }
  } finally {
    closeSync(file);
  }
}

function readPart(top: string, path: string): string {
  try {
    return readFileSync(join(top, path), 'utf8');
  } catch (error) {
    if (fileErrorReason(error) === null) throw error;
    throw damaged(top, path);
  }
}

function parseAbout(text: string): Omit<ReleaseTree, 'top' | 'sums'> | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof value !== 'object' || value === null) return null;
  const { version, commit, arch, storeSchema } = value as Readonly<Record<string, unknown>>;
  if (typeof version !== 'string' || typeof commit !== 'string' || typeof arch !== 'string') return null;
  if (typeof storeSchema !== 'number') return null;
  // They become the name of a folder.
  return /^[0-9A-Za-z.-]+$/.test(version) && /^[0-9a-f]+$/.test(commit)
    ? { version, commit, arch, storeSchema }
    : null;
}

function damaged(top: string, path: string): CliError {
  const state = existsSync(join(top, path)) ? 'is not the file of this release' : 'is missing';
  return new CliError(`the release in ${top} is damaged: ${path} ${state}`, {
    hints: ['Unpack it again: tar -xzf muster-VERSION-linux-ARCH.tar.gz'],
  });
}
