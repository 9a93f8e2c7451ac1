/** The archive of a release: whether it is intact, and its tree beside the releases that are there. */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  closeSync,
  createReadStream,
  existsSync,
  fstatSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { makeDirectories } from '@muster/common/files';
import { reportsFullDisk, requireSpace, spaceMissing } from '../diskSpace.ts';
import { CliError, fileErrorReason } from '../errors.ts';
import {
  isReleaseAt,
  putInPlace,
  type ReleaseTree,
  readReleaseTree,
  releaseFolder,
  releaseWithSums,
  requireIntact,
  sumsPath,
  syncFiles,
} from '../install/releaseTree.ts';

export interface UnpackedRelease {
  readonly tree: ReleaseTree;
  /** Name of its folder, below that of the releases. */
  readonly folder: string;
  /** It was not there before. */
  readonly isNew: boolean;
}

/**
 * Compares an archive with its checksums and unpacks it beside the other releases, under its name only when it is intact and on
 * the disk. One that is there already is not unpacked again, and takes no space.
 * @param path absolute, of a `.tar.gz`
 * @param releases absolute folder of the releases
 * @param arch as Node names the kind of this machine
 * @throws {CliError} when it cannot be used; nothing is left of it then
 */
export async function unpackArchive(path: string, releases: string, arch: string): Promise<UnpackedRelease> {
  const bytes = unpackedBytes(path);
  await requireListedSum(path);
  const sums = sumsInside(path);
  const there = sums === null ? null : releaseWithSums(releases, sums);
  if (there !== null) {
    requireKind(there, path, arch);
    return { tree: there, folder: basename(there.top), isNew: false };
  }
  makeDirectories(releases, 0o755);
  requireSpace(releases, bytes, basename(path));
  const part = join(releases, '.upgrade.part');
  rmSync(part, { recursive: true, force: true });
  try {
    makeDirectories(part, 0o755);
    unpack(path, part);
    const tree = readReleaseTree(part);
    requireIntact(tree);
    requireKind(tree, path, arch);
    const folder = releaseFolder(tree, releases);
    const place = join(releases, folder);
    const isNew = !isReleaseAt(tree, place);
    if (isNew) {
      syncFiles(part);
      putInPlace(part, place);
    }
    return { tree: { ...tree, top: place }, folder, isNew };
  } catch (error) {
    const reason = fileErrorReason(error) ?? (error instanceof TarError ? error.message : null);
    if (reason === null) throw error;
    rmSync(part, { recursive: true, force: true });
    throw unpackError(path, releases, bytes, reason);
  } finally {
    rmSync(part, { recursive: true, force: true });
  }
}

/** What `tar` has reported. */
class TarError extends Error {}

function unpack(path: string, target: string): void {
  const args = ['-C', target, '--strip-components=1', '--no-same-owner', '--no-same-permissions'];
  const { status, stderr } = tar(['-xzf', path, ...args]);
  if (status !== 0) throw new TarError((stderr ?? '').trim() || 'tar was ended');
}

/** @param reason of the system, or of `tar`, in its own words */
function unpackError(path: string, releases: string, bytes: number, reason: string): CliError {
  const hints = ['Nothing was changed.'];
  if (!reportsFullDisk(reason))
    return new CliError(`cannot unpack ${path} below ${releases}: ${reason.split('\n')[0]}`, { hints });
  const missing = spaceMissing(releases, bytes, basename(path));
  // Whoever took the space may have given it back.
  const sizes = missing?.message ?? `there is room below ${releases} now`;
  return new CliError(`the disk became full while ${basename(path)} was unpacked: ${sizes}`, {
    code: 'resource_exhausted',
    hints: missing?.hints ?? [...hints, 'The same command unpacks it again.'],
  });
}

/**
 * Reads all of an archive, which shows whether it is complete.
 * @returns the list of sums in it; null: it has none
 * @throws {CliError} when it is damaged
 */
function sumsInside(path: string): string | null {
  const args = ['--extract', '--gzip', '--to-stdout', `--file=${path}`, '--wildcards', `*/${sumsPath}`];
  const { status, stdout, stderr } = tar(args);
  if (status === 0) return stdout;
  if (/Not found in archive/.test(stderr ?? '') && !/gzip: |EOF|corrupt/.test(stderr)) return null;
  throw new CliError(`${path} is damaged: it cannot be unpacked`, { hints: ['Copy it again.'] });
}

/** What it reports is read here, so that it has to use the words that are known. */
function tar(args: readonly string[]) {
  return spawnSync('env', ['LC_ALL=C', 'tar', ...args], { encoding: 'utf8', maxBuffer: 16 * 1024 * 1024 });
}

function requireKind(tree: ReleaseTree, path: string, arch: string): void {
  if (tree.arch === arch) return;
  throw new CliError(`${path} is for machines of the kind ${tree.arch}, and this one is ${arch}`);
}

/** gzip ends with the length of what it has packed, modulo 4 GiB. @throws {CliError} unless it is such a file */
function unpackedBytes(path: string): number {
  const ends = Buffer.alloc(6);
  try {
    const file = openSync(path, 'r');
    try {
      const { size } = fstatSync(file);
      readSync(file, ends, 0, 2, 0);
      readSync(file, ends, 2, 4, Math.max(0, size - 4));
    } finally {
      closeSync(file);
    }
  } catch (error) {
    const reason = fileErrorReason(error);
    throw reason === null ? error : new CliError(`cannot read ${path}: ${reason}`, { code: 'invalid' });
  }
  if (ends.readUInt16BE(0) === 0x1f8b) return ends.readUInt32LE(2);
  throw new CliError(`${path} is not the archive of a release`, {
    code: 'invalid',
    hints: ['`npm run package` makes it: muster-VERSION-linux-ARCH.tar.gz'],
  });
}

/** The file beside an archive has the sums of all that were made with it; where it is missing, those inside have to do. */
async function requireListedSum(path: string): Promise<void> {
  const list = join(dirname(path), 'SHA256SUMS');
  if (!existsSync(list)) return;
  const lines = readFileSync(list, 'utf8').split('\n');
  const expected = lines.find((line) => line.endsWith(`  ${basename(path)}`))?.slice(0, 64);
  if (expected === undefined) return;
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash);
  if (hash.digest('hex') !== expected)
    throw new CliError(`${path} is damaged: its checksum differs from that in ${list}`, {
      hints: ['Copy it again.'],
    });
}
