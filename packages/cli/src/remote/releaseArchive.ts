/** The release that machines get: that of this program, packed, or an archive that somebody has. */
import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  createReadStream,
  createWriteStream,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { createGzip } from 'node:zlib';
import { messageOf } from '@muster/common/errors';
import type { ProgramEnvironment } from '../environment.ts';
import { CliError, fileErrorReason } from '../errors.ts';

export interface ReleaseArchive {
  /** A tarball, compressed, with one folder at its top. */
  readonly path: string;
  readonly bytes: number;
  /** SHA-256 of the file, in hexadecimal digits. */
  readonly sum: string;
  /** What tells one release from another: SHA-256 of the list of its files' sums. */
  readonly release: string;
  readonly version: string;
  /** As Node names the kind of machine. */
  readonly arch: string;
  /** Deletes what was made for this call alone. */
  close(): void;
}

const aboutPath = 'lib/muster/release.json';
const sumsPath = 'lib/muster/SHA256SUMS';

/**
 * @param file an archive; null: the release that this program runs from
 * @throws {CliError} when there is none, with the way to one
 */
export async function openArchive(
  file: string | null,
  { programDir, workingDir }: Pick<ProgramEnvironment, 'programDir' | 'workingDir'>,
): Promise<ReleaseArchive> {
  return file === null ? packTree(programDir) : readArchive(resolve(workingDir, file));
}

async function packTree(programDir: string): Promise<ReleaseArchive> {
  const top = join(programDir, '../../..');
  const isOwnFolder = programDir === join(top, 'lib/muster/dist') && top !== '/usr';
  if (!isOwnFolder || !existsSync(join(top, sumsPath))) {
    throw new CliError(
      `this program does not run from the archive of a release, which other machines could get`,
      {
        hints: [
          'Name an archive: --release muster-VERSION-linux-ARCH.tar.gz',
          'In a checkout this makes one, in dist/packages: npm run package',
        ],
      },
    );
  }
  const dir = mkdtempSync(join(tmpdir(), 'muster-release-'));
  const close = () => rmSync(dir, { recursive: true, force: true });
  try {
    const path = join(dir, 'release.tar.gz');
    const hash = createHash('sha256');
    const form = ['--format=gnu', '--sort=name', '--owner=0', '--group=0', '--numeric-owner'];
    const tar = spawn('tar', ['--create', ...form, '-C', top, '.'], { stdio: ['ignore', 'pipe', 'inherit'] });
    const ended = new Promise<void>((done, failed) => {
      tar.on('error', failed);
      tar.on('close', (code) => (code === 0 ? done() : failed(new Error(`tar ended with ${code}`))));
    });
    // The same release gives the same bytes, so that a copy that was interrupted can be continued by another call.
    await Promise.all([
      ended,
      pipeline(tar.stdout, createGzip({ level: 1 }), hashing(hash), createWriteStream(path, { mode: 0o600 })),
    ]);
    const texts = [
      readFileSync(join(top, aboutPath), 'utf8'),
      readFileSync(join(top, sumsPath), 'utf8'),
    ] as const;
    return { path, bytes: statSync(path).size, sum: hash.digest('hex'), ...aboutRelease(top, texts), close };
  } catch (error) {
    close();
    if (error instanceof CliError) throw error;
    throw new CliError(`the release in ${top} cannot be packed: ${messageOf(error)}`, { cause: error });
  }
}

async function readArchive(path: string): Promise<ReleaseArchive> {
  try {
    const hash = createHash('sha256');
    const { size } = statSync(path);
    const [about, sums] = await Promise.all([
      fileInside(path, aboutPath),
      fileInside(path, sumsPath),
      pipeline(createReadStream(path), hashing(hash), async (pieces) => {
        for await (const _ of pieces);
      }),
    ]);
    return {
      path,
      bytes: size,
      sum: hash.digest('hex'),
      ...aboutRelease(path, [about, sums]),
      close: () => {},
    };
  } catch (error) {
    if (error instanceof CliError) throw error;
    throw new CliError(`cannot read ${path}: ${fileErrorReason(error) ?? whatIsWrong(error)}`, {
      code: 'invalid',
      cause: error,
    });
  }
}

const notAnArchive = 'it is not an archive of a release, such as muster-0.1.0-linux-x64.tar.gz';

/** gzip compares its checksum, and knows where its data ends. @param error of tar, which has its words */
function whatIsWrong(error: unknown): string {
  const { stderr = '' } = error as { readonly stderr?: string };
  const isDamaged = /^gzip: .*(?:unexpected end of file|invalid compressed data|crc error)/m.test(stderr);
  return isDamaged ? 'it is damaged, or only a part of it has arrived. Copy it again' : notAnArchive;
}

async function fileInside(archive: string, path: string): Promise<string> {
  const args = ['--extract', '--gzip', '--to-stdout', `--file=${archive}`, '--wildcards', `*/${path}`];
  const { stdout } = await promisify(execFile)('env', ['LC_ALL=C', 'tar', ...args], {
    maxBuffer: 16 * 1024 * 1024,
  });
  return stdout;
}

function aboutRelease(
  place: string,
  [about, sums]: readonly [string, string],
): Pick<ReleaseArchive, 'release' | 'version' | 'arch'> {
  try {
    const { version, arch } = JSON.parse(about) as Readonly<Record<string, unknown>>;
    if (typeof version === 'string' && typeof arch === 'string' && sums !== '')
      return { release: createHash('sha256').update(sums).digest('hex'), version, arch };
  } catch {
    // The reason of a parser helps nobody.
  }
  throw new CliError(`${place}: ${notAnArchive}`, { code: 'invalid' });
}

function hashing(hash: ReturnType<typeof createHash>): Transform {
  return new Transform({
    transform(piece: Buffer, _encoding, done) {
      hash.update(piece);
      done(null, piece);
    },
  });
}
