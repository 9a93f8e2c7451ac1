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
import { CliError, fileErrorReason } from '../errors.ts';
import {
  isReleaseAt,
  putInPlace,
  type ReleaseTree,
  readReleaseTree,
  releaseFolder,
  requireIntact,
  requireSpace,
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
 * the disk. One that is there already is not unpacked again.
 * @param path absolute, of a `.tar.gz`
 * @param releases absolute folder of the releases
 * @param arch as Node names the kind of this machine
 * @throws {CliError} when it cannot be used; nothing is left of it then
 */
export async function unpackArchive(path: string, releases: string, arch: string): Promise<UnpackedRelease> {
  const bytes = unpackedBytes(path);
  await requireListedSum(path);
  const { status } = spawnSync('tar', ['-tzf', path], { stdio: 'ignore' });
  if (status !== 0)
    throw new CliError(`${path} is damaged: it cannot be unpacked`, { hints: ['Copy it again.'] });
  makeDirectories(releases, 0o755);
  requireSpace(releases, bytes, basename(path));
  const part = join(releases, '.upgrade.part');
  rmSync(part, { recursive: true, force: true });
  try {
    makeDirectories(part, 0o755);
    unpack(path, part);
    const tree = readReleaseTree(part);
    requireIntact(tree);
    if (tree.arch !== arch)
      throw new CliError(`${path} is for machines of the kind ${tree.arch}, and this one is ${arch}`);
    const folder = releaseFolder(tree, releases);
    const place = join(releases, folder);
    const isNew = !isReleaseAt(tree, place);
    if (isNew) {
      syncFiles(part);
      putInPlace(part, place);
    }
    return { tree: { ...tree, top: place }, folder, isNew };
  } catch (error) {
    const reason = fileErrorReason(error);
    throw reason === null ? error : new CliError(`cannot unpack ${path} below ${releases}: ${reason}`);
  } finally {
    rmSync(part, { recursive: true, force: true });
  }
}

function unpack(path: string, target: string): void {
  const args = [
    '-xzf',
    path,
    '-C',
    target,
    '--strip-components=1',
    '--no-same-owner',
    '--no-same-permissions',
  ];
  const { status, stderr } = spawnSync('tar', args, { encoding: 'utf8' });
  if (status === 0) return;
  const reason = (stderr ?? '').trim().split('\n')[0] ?? '';
  throw new CliError(`cannot unpack ${path}: ${reason}`, { hints: ['Nothing was changed.'] });
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
