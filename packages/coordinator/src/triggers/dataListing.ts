/**
 * What lies in a directory that triggers watch, as one digest of names, sizes and times of change. Only directories that the
 * coordinator's administrator has allowed are read, because the coordinator may see more of its machine than a user.
 */
import { createHash } from 'node:crypto';
import { lstat, opendir, realpath } from 'node:fs/promises';
import { isAbsolute, join, relative, sep } from 'node:path';
import { MusterError, messageOf } from '@muster/common/errors';

/** A directory with more is refused: it is read again every few seconds. */
const filesMax = 100_000;
const depthMax = 32;

export interface DataListing {
  /** Of the relative paths, sizes and times of change of all regular files, sorted. */
  readonly digest: string;
  readonly files: number;
}

/** Of a directory that a trigger watches. @throws {MusterError} `invalid`, with the remedy */
export type ListData = (directory: string) => Promise<DataListing>;

/**
 * Lists regular files below the directory. Links are not followed, and names that begin with a point are ignored: programs that copy
 * files give them such names until they are complete.
 * @param allowed below which the directory must be, once links are resolved
 * @throws {MusterError} `invalid`, with the remedy
 */
export async function listData(directory: string, allowed: readonly string[]): Promise<DataListing> {
  const root = await requireAllowed(directory, allowed);
  const lines: string[] = [];
  await readInto(lines, root, root, 0);
  const hash = createHash('sha256');
  for (const line of lines.toSorted()) hash.update(line);
  return { digest: hash.digest('hex'), files: lines.length };
}

/** Looked at again for each listing: what the path leads to may have been replaced. */
async function requireAllowed(directory: string, allowed: readonly string[]): Promise<string> {
  if (!isAbsolute(directory))
    throw invalid(directory, 'is not absolute', 'a path from the root, such as /data/incoming');
  const remedy =
    allowed.length === 0
      ? 'a coordinator that is started with --watch-dir, for a directory above this one'
      : `a directory of the coordinator's machine below ${allowed.join(' or ')}`;
  const root = await realOrNull(directory);
  const tops = await Promise.all(allowed.map(realOrNull));
  // Whether a path exists that may not be watched is nobody's business.
  if (root === null || !tops.some((top) => top !== null && isBelow(top, root)))
    throw invalid(directory, 'may not be watched, or is not there', remedy);
  const found = await lstat(root);
  if (!found.isDirectory()) throw invalid(directory, 'is not a directory', 'a directory');
  return root;
}

function isBelow(top: string, path: string): boolean {
  const inside = relative(top, path);
  return inside === '' || (inside !== '..' && !inside.startsWith(`..${sep}`) && !isAbsolute(inside));
}

async function realOrNull(path: string): Promise<string | null> {
  try {
    return await realpath(path);
  } catch {
    return null;
  }
}

async function readInto(lines: string[], root: string, directory: string, depth: number): Promise<void> {
  if (depth > depthMax)
    throw invalid(root, `has directories more than ${depthMax} deep`, 'a directory with the new data alone');
  for await (const entry of await opendir(directory)) {
    if (entry.name.startsWith('.')) continue;
    const path = join(directory, entry.name);
    // It may have been removed, or moved on, since its name was read.
    if (entry.isDirectory()) await readInto(lines, root, path, depth + 1).catch(unlessGone);
    if (!entry.isFile()) continue;
    const found = await lstat(path).catch(unlessGone);
    if (found === null) continue;
    lines.push(`${relative(root, path)}\0${found.size}\0${found.mtimeMs}\n`);
    if (lines.length > filesMax)
      throw invalid(root, `has more than ${filesMax} files`, 'a directory with the new data alone');
  }
}

/** What is wrong with a directory that could not be listed, for its users. */
export interface ListingProblem {
  readonly cause: string;
  readonly remedy: string;
}

/** @param error as `listData` has thrown it */
export function listingProblemOf(directory: string, error: unknown): ListingProblem {
  const [problem] = error instanceof MusterError ? error.problems : [];
  if (problem !== undefined) return { cause: problem.message, remedy: `provide ${problem.expected ?? ''}` };
  const isRefused = error instanceof Error && 'code' in error && error.code === 'EACCES';
  const remedy = isRefused
    ? `let the user of the coordinator read it and the directories in it, such as by chmod -R a+rX ${directory}`
    : `check the file system on the coordinator's machine, such as by ls -lR ${directory}`;
  return { cause: `"${directory}" cannot be listed: ${messageOf(error)}`, remedy };
}

function unlessGone(error: unknown): null {
  if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
  throw error;
}

function invalid(directory: string, message: string, expected: string): MusterError {
  const full = `"${directory.slice(0, 200)}" ${message}`;
  const problem = { path: 'directory', message: full, expected, suggestion: null };
  return new MusterError('invalid', `directory: ${full}; expected ${expected}`, { problems: [problem] });
}
