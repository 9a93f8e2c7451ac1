/**
 * Verifies one checkpoint. A quick look reads headers and directories of all files, a deep one then every byte of them:
 * so what is missing or cut off is known before gigabytes are read. What changes meanwhile is being written, whatever
 * it looks like.
 */
import { createHash } from 'node:crypto';
import type { Stats } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { nameBeforeSetAside, type VerificationDepth } from '@muster/common/checkpoints';
import { belowAll, Directory, errorCode, kindOf, unreadableBecause, withDirectory } from './directories.ts';
import { examineFile, type FileFinding } from './examine.ts';
import { fingerprintOf } from './fingerprint.ts';
import { formatOf } from './formats.ts';
import { type CheckpointListing, type ListedFile, listDirectory, listFile } from './listing.ts';
import { recogniseName } from './names.ts';
import {
  ChangingFile,
  chunkBytes,
  chunkBytesMin,
  type OpenedFile,
  ReadPace,
  readContents,
  type SummedRange,
} from './openedFile.ts';
import { unverifiable, type Verification, type VerifyOptions } from './verification.ts';
import { type Findings, type Judgement, judgeCheckpoint, piecesIn } from './wholeness.ts';

/** More than the largest jobs write: a file or two per rank, or some hundred shards. */
const filesMax = 100_000;
const tooMany: Judgement = {
  verdict: 'unverified',
  problem: `it has more than ${filesMax} files, or nests them too deeply`,
};
const beingWritten: Judgement = {
  verdict: 'unverified',
  problem: 'it is being written: it changed while it was read',
};

/**
 * Blocks its thread while it reads. Opens nothing but regular files and directories, and follows no symbolic link below
 * `root`.
 * @param root the checkpoint directory @param name of the checkpoint in it, with `/` between its parts
 * @throws the reason of the signal, and nothing else
 */
export async function verifyCheckpoint(
  root: string,
  name: string,
  options: VerifyOptions,
): Promise<Verification> {
  const pace = new ReadPace(options);
  const parts = name.split('/');
  if (parts.some((part) => part === '' || part === '.' || part === '..'))
    return unverifiable('its name leads out of the checkpoint directory');
  const last = parts.pop() ?? '';
  try {
    return await withDirectory(await Directory.open(root), (directory) =>
      belowAll(directory, parts, (parent) => verifyBelow(parent, last, options, pace)),
    );
  } catch (error) {
    options.signal?.throwIfAborted();
    return unverifiable(`it ${unreadableBecause(error)}`);
  }
}

async function verifyBelow(
  parent: Directory,
  name: string,
  options: VerifyOptions,
  pace: ReadPace,
): Promise<Verification> {
  const kind = kindOf(await parent.statOf(name));
  if (kind === 'link') return unverifiable('it is a symbolic link');
  if (kind === 'special') return unverifiable('it is neither a file nor a directory');
  if (kind === 'file') return verifyFiles(await singleFile(parent, name), options, pace);
  return withDirectory(await parent.below(name), async (directory) =>
    verifyFiles(await filesOf(directory, name), options, pace),
  );
}

/** What is verified, in the same way whether it is one file or a directory of them. */
interface CheckpointFiles {
  /** Last part of its name. */
  readonly name: string;
  readonly kind: 'file' | 'directory';
  readonly listing: CheckpointListing;
  listAgain(): Promise<CheckpointListing>;
  open(path: string): Promise<{ readonly handle: FileHandle; readonly stat: Stats }>;
}

async function singleFile(parent: Directory, name: string): Promise<CheckpointFiles> {
  const list = async () => listFile(await parent.statOf(name));
  const named = nameBeforeSetAside(name);
  return {
    name: named,
    kind: 'file',
    listing: await list(),
    listAgain: list,
    open: () => parent.openFile(name),
  };
}

async function filesOf(directory: Directory, name: string): Promise<CheckpointFiles> {
  const list = () => listDirectory(directory, { left: filesMax });
  return {
    name: nameBeforeSetAside(name),
    kind: 'directory',
    listing: await list(),
    listAgain: list,
    open: (path) => {
      const parts = path.split('/');
      const last = parts.pop() ?? '';
      return belowAll(directory, parts, (parent) => parent.openFile(last));
    },
  };
}

async function verifyFiles(
  files: CheckpointFiles,
  options: VerifyOptions,
  pace: ReadPace,
): Promise<Verification> {
  const { name, kind, listing } = files;
  const format = formatOf(
    name,
    kind,
    listing.files.map(({ path }) => path),
  );
  const found = await examineAll(files, format, options, pace).catch((error: unknown): Examined => {
    options.signal?.throwIfAborted();
    const isChanging = error instanceof ChangingFile || errorCode(error) === 'ENOENT';
    const problem = `it ${unreadableBecause(error)}`;
    const judgement: Judgement = isChanging ? beingWritten : { verdict: 'unverified', problem };
    return { judgement, depth: 'quick', digest: null, step: null, format };
  });
  // Before the last listing, which shows that nothing has changed up to then.
  const small = await fingerprintOf(listing.files, async (path) => (await files.open(path)).handle).catch(
    () => null,
  );
  const hasChanged = await files.listAgain().then(
    ({ version }) => version !== listing.version,
    () => true,
  );
  const { verdict, problem } = hasChanged ? beingWritten : found.judgement;
  return {
    verdict,
    depth: verdict === 'unverified' ? null : found.depth,
    format: found.format,
    bytes: listing.bytes,
    files: listing.files.length,
    step: recogniseName(name, kind, null)?.step ?? found.step,
    digest: hasChanged ? null : found.digest,
    version: listing.version,
    problem,
    ...(hasChanged || small === null ? {} : small),
  };
}

interface Examined {
  readonly judgement: Judgement;
  /** As far as was read before the judgement was clear. */
  readonly depth: VerificationDepth;
  readonly digest: string | null;
  readonly step: number | null;
  readonly format: string;
}

/** @throws {ChangingFile} {Error} with the kernel's code, and the signal's reason */
async function examineAll(
  files: CheckpointFiles,
  format: string,
  { depth }: VerifyOptions,
  pace: ReadPace,
): Promise<Examined> {
  const { listing } = files;
  const largestBytes = listing.files.reduce((most, { bytes }) => Math.max(most, bytes), 0);
  const buffer = Buffer.allocUnsafe(Math.min(chunkBytes, Math.max(chunkBytesMin, largestBytes)));
  const findings = new Map<string, FileFinding>();
  for (const file of metadataFirst(listing.files)) {
    await withFile(files, file, async (opened) => {
      findings.set(file.path, await examineFile(opened, piecesIn(findings, file.path), pace, buffer));
    });
    await pace.spend(0);
  }
  const unread = { notOpened: listing.others.map(({ path }) => path), empty: listing.empty };
  const steps = [...findings.values()].map((finding) => (finding.kind === 'whole' ? finding.step : null));
  const quick: Examined = {
    judgement: listing.isCut ? tooMany : judgeCheckpoint(findings, unread),
    depth: 'quick',
    digest: null,
    step: steps.find((step) => step !== null) ?? null,
    format: detectedFormat(format, findings),
  };
  if (depth === 'quick' || listing.isCut || quick.judgement.verdict === 'corrupt') return quick;

  const digest = createHash('sha256');
  for (const file of listing.files) {
    digest.update(`${JSON.stringify([file.path, file.bytes])}\n`);
    const problem = await withFile(files, file, (opened) =>
      readContents(opened, sumsOf(findings.get(file.path)), digest, pace, buffer),
    );
    if (problem === null) continue;
    findings.set(file.path, { kind: 'corrupt', problem });
    return { ...quick, depth: 'deep', judgement: judgeCheckpoint(findings, unread) };
  }
  return { ...quick, depth: 'deep', digest: `sha256:${digest.digest('hex')}` };
}

/** `.metadata` lists the content of the files beside it, so it is read first. */
function metadataFirst(files: readonly ListedFile[]): readonly ListedFile[] {
  const isMetadata = ({ path }: ListedFile) => path === '.metadata' || path.endsWith('/.metadata');
  return [...files.filter(isMetadata), ...files.filter((file) => !isMetadata(file))];
}

function sumsOf(finding: FileFinding | undefined): readonly SummedRange[] {
  return finding?.kind === 'whole' ? finding.sums : [];
}

/** The content decides rather than a suffix: under a pattern of the user, a file may have any name. */
function detectedFormat(named: string, findings: Findings): string {
  const only = findings.get('');
  return named === 'unknown' && only?.kind === 'whole' ? only.format : named;
}

/** @throws {ChangingFile} when it is another file than the listed one */
async function withFile<T>(
  files: CheckpointFiles,
  { path, bytes, inode, mtimeMs }: ListedFile,
  use: (file: OpenedFile) => Promise<T>,
): Promise<T> {
  const { handle, stat } = await files.open(path);
  try {
    if (stat.size !== bytes || stat.ino !== inode || stat.mtimeMs !== mtimeMs)
      throw new ChangingFile('was replaced');
    const name = path === '' ? files.name : path.slice(path.lastIndexOf('/') + 1);
    return await use({ name, descriptor: handle.fd, start: 0, bytes });
  } finally {
    await handle.close();
  }
}
