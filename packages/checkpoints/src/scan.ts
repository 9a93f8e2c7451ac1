/** One look at a checkpoint directory: what is there, at the price of some system calls a file. Reads no checkpoint. */
import { nameBeforeSetAside } from '@muster/common/checkpoints';
import {
  belowAll,
  Directory,
  type DirectoryEntry,
  errorCode,
  unreadableBecause,
  withDirectory,
} from './directories.ts';
import { completionMarker, formatOf, type Trackers, unfinishedBecause } from './formats.ts';
import {
  type CheckpointListing,
  type EntryBudget,
  entriesUsual,
  listDirectory,
  listFile,
} from './listing.ts';
import { levelsOf, type NamePattern } from './namePattern.ts';
import { mayBePlace, mayHoldCheckpoints, recogniseName, trainingCompleteName } from './names.ts';

/** One that is there, whole or not. */
export interface CheckpointCandidate {
  /** Path below the directory that was looked at, with `/` between its parts. */
  readonly name: string;
  readonly kind: 'file' | 'directory';
  /** From its name; null: the name does not have it. An epoch is no step. */
  readonly step: number | null;
  /** As names show it, one of the values of `CheckpointFacts.format`. */
  readonly format: string;
  /** Of all its files. */
  readonly bytes: number;
  readonly files: number;
  /** Wall clock of the node: the newest file's last write. Of an empty directory, its own. */
  readonly savedAtMs: number;
  /** 32 characters from names, inodes, sizes and times of its files: another one as soon as anything was written. */
  readonly version: string;
  /** What its program writes last of all and is there, such as `.metadata`; null: its format has no such thing, or not yet. */
  readonly marker: string | null;
  /** What shows that it is still being written, such as a temporary name inside; null: nothing does. */
  readonly unfinished: string | null;
}

export interface CheckpointScan {
  /** By name, in code point order. */
  readonly candidates: readonly CheckpointCandidate[];
  /**
   * A sentence's end that follows the directory's path, such as `is a symbolic link`; null: all of it was looked at. With
   * one, candidates may still have been found: the directory holds more than was looked at.
   */
  readonly problem: string | null;
  /** The program has left `training_complete.marker`: it needs no further attempt. */
  readonly isTrainingComplete: boolean;
}

interface ScanOptions {
  /** Of the job's spec; null: the names that programs give by themselves. */
  readonly pattern: NamePattern | null;
  /** How many names to read, and how many files inside of checkpoints to look at, ≥ 1. */
  readonly entriesMax?: number;
  /** Maximum candidates, ≥ 1. Of more, those with the highest steps: a program that keeps so many has its newest ones there. */
  readonly candidatesMax?: number;
}

const candidatesUsual = 1_000;
/** A tracker holds one name. */
const trackerBytesMax = 256;

interface Found {
  readonly name: string;
  readonly kind: 'file' | 'directory';
  readonly step: number | null;
  /** Below the root; empty: in the root itself. */
  readonly parent: string;
}

interface Names {
  readonly found: Found[];
  readonly trackers: Map<string, Trackers>;
  isTrainingComplete: boolean;
  isCut: boolean;
  readonly unreadable: string[];
}

/**
 * Follows no symbolic link below `root`, and not `root` itself when it is one; links in the way to it are the user's.
 * Never throws for what is there or is not: `problem` has it.
 */
export async function scanCheckpoints(root: string, options: ScanOptions): Promise<CheckpointScan> {
  const { pattern, entriesMax = entriesUsual, candidatesMax = candidatesUsual } = options;
  try {
    return await withDirectory(await Directory.open(root), (directory) =>
      scan(directory, { pattern, entriesMax, candidatesMax }),
    );
  } catch (error) {
    return { candidates: [], problem: await problemOf(root, error), isTrainingComplete: false };
  }
}

/** The kernel reports a link as not a directory. */
async function problemOf(root: string, error: unknown): Promise<string> {
  const parts = /^(.*)\/([^/]+)\/*$/.exec(root);
  if (errorCode(error) === 'ENOTDIR' && parts !== null) {
    const [, parent = '', name = ''] = parts;
    const isLink = await Directory.open(parent === '' ? '/' : parent)
      .then((directory) => withDirectory(directory, (each) => each.statOf(name)))
      .then((stat) => stat.isSymbolicLink())
      .catch(() => false);
    if (isLink) return 'is a symbolic link';
  }
  return unreadableBecause(error);
}

async function scan(
  root: Directory,
  { pattern, entriesMax, candidatesMax }: Required<ScanOptions>,
): Promise<CheckpointScan> {
  const names: Names = {
    found: [],
    trackers: new Map(),
    isTrainingComplete: false,
    isCut: false,
    unreadable: [],
  };
  await readNames(root, '', levelsOf(pattern), pattern, { left: entriesMax }, names);
  const chosen = names.found.toSorted(newestFirst).slice(0, candidatesMax);
  const budget: EntryBudget = { left: entriesMax };
  const candidates: CheckpointCandidate[] = [];
  let cutContents = 0;
  for (const found of chosen) {
    const listing = await list(root, found, budget).catch((error: unknown) => {
      // It was renamed or removed since its name was read.
      if (errorCode(error) !== 'ENOENT') names.unreadable.push(`${found.name} ${unreadableBecause(error)}`);
      return null;
    });
    if (listing === null) continue;
    if (listing.isCut) cutContents += 1;
    else candidates.push(candidateOf(found, listing, names.trackers.get(found.parent) ?? noTrackers));
  }
  const problems = [
    ...(names.isCut ? [`holds more than ${entriesMax} entries; the others were not looked at`] : []),
    ...(names.found.length > candidatesMax
      ? [
          `holds ${names.found.length} checkpoints; only the ${candidatesMax} with the highest steps were looked at`,
        ]
      : []),
    ...(cutContents > 0
      ? [`holds checkpoints of more than ${entriesMax} files; ${cutContents} of them were skipped`]
      : []),
    ...names.unreadable.slice(0, 1).map((each) => `holds what cannot be read: ${each}`),
  ];
  return {
    candidates: candidates.toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    problem: problems.length === 0 ? null : problems.join('; '),
    isTrainingComplete: names.isTrainingComplete,
  };
}

/** Names without a step are few, and often the newest. */
function newestFirst(a: Found, b: Found): number {
  const [stepOfA, stepOfB] = [a.step ?? Infinity, b.step ?? Infinity];
  if (stepOfA !== stepOfB) return stepOfA > stepOfB ? -1 : 1;
  return a.name < b.name ? 1 : -1;
}

async function readNames(
  directory: Directory,
  parent: string,
  levels: number,
  pattern: NamePattern | null,
  budget: EntryBudget,
  names: Names,
): Promise<void> {
  /** With what they are themselves, unless they prove to be places. */
  const below = new Map<string, Found | null>();
  const trackerNames = new Set<string>();
  for await (const entry of directory.entries()) {
    if (budget.left <= 0) {
      names.isCut = true;
      break;
    }
    budget.left -= 1;
    if (entry.name === latestName || entry.name === latestIterationName) trackerNames.add(entry.name);
    if (parent === '' && entry.name === trainingCompleteName && entry.kind === 'file')
      names.isTrainingComplete = true;
    const found = recognise(entry, parent, pattern);
    const mayHold = levels > 0 && entry.kind === 'directory' && mayHoldCheckpoints(entry.name);
    if (mayHold && (found === null || (pattern === null && mayBePlace(entry.name))))
      below.set(entry.name, found);
    else if (found !== null) names.found.push(found);
  }
  names.trackers.set(parent, {
    latest: trackerNames.has(latestName) ? await firstLine(directory, latestName) : null,
    latestIteration: trackerNames.has(latestIterationName)
      ? await firstLine(directory, latestIterationName)
      : null,
  });
  for (const name of [...below.keys()].toSorted()) {
    const path = parent === '' ? name : `${parent}/${name}`;
    const itself = below.get(name) ?? null;
    const knownBefore = names.found.length;
    try {
      await withDirectory(await directory.below(name), (each) =>
        readNames(each, path, levels - 1, pattern, budget, names),
      );
    } catch (error) {
      // Links and what has vanished are no places to look in; other errors are reported.
      const code = errorCode(error);
      if (code !== 'ENOENT' && code !== 'ENOTDIR' && code !== 'ELOOP')
        names.unreadable.push(`${path} ${unreadableBecause(error)}`);
    }
    if (itself !== null && !names.found.slice(knownBefore).some(({ step }) => step !== null))
      names.found.splice(knownBefore, Infinity, itself);
  }
}

function recognise(entry: DirectoryEntry, parent: string, pattern: NamePattern | null): Found | null {
  if (entry.kind !== 'file' && entry.kind !== 'directory') return null;
  const name = parent === '' ? entry.name : `${parent}/${entry.name}`;
  const recognised = recogniseName(name, entry.kind, pattern);
  return recognised === null ? null : { name, kind: entry.kind, step: recognised.step, parent };
}

// ---- Trackers

const latestName = 'latest';
const latestIterationName = 'latest_checkpointed_iteration.txt';
const noTrackers: Trackers = { latest: null, latestIteration: null };

async function firstLine(directory: Directory, name: string): Promise<string | null> {
  try {
    const { handle } = await directory.openFile(name);
    try {
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(trackerBytesMax), 0, trackerBytesMax, 0);
      const [line = ''] = buffer.toString('utf8', 0, bytesRead).split('\n');
      return line.trim() === '' ? null : line.trim();
    } finally {
      await handle.close();
    }
  } catch {
    // As good as none: then it takes some seconds longer to find that a checkpoint is complete.
    return null;
  }
}

// ---- Contents

/** @throws {Error} with the kernel's code */
async function list(root: Directory, found: Found, budget: EntryBudget): Promise<CheckpointListing> {
  const parts = found.name.split('/');
  const last = parts.pop() ?? '';
  const look = async (directory: Directory): Promise<CheckpointListing> => {
    if (found.kind === 'directory')
      return withDirectory(await directory.below(last), (each) => listDirectory(each, budget));
    const stat = await directory.statOf(last);
    if (!stat.isFile()) throw Object.assign(new Error(`${last} was replaced`), { code: 'ENOENT' });
    return listFile(stat);
  };
  return belowAll(root, parts, look);
}

function candidateOf(
  { name, kind, step }: Found,
  { files, bytes, savedAtMs, version }: CheckpointListing,
  trackers: Trackers,
): CheckpointCandidate {
  const paths = files.map(({ path }) => path);
  const named = nameBeforeSetAside(name);
  const format = formatOf(named, kind, paths);
  return {
    name,
    kind,
    step,
    format,
    bytes,
    files: files.length,
    savedAtMs,
    version,
    marker: completionMarker(named, format, paths, trackers),
    unfinished: unfinishedBecause(paths, bytes),
  };
}
