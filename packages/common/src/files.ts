/** Writing files so that a crash leaves either the old or the new content, never a part. */
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { delimiter, dirname, join } from 'node:path';

/** Temporary file, fsync, rename, fsync of the directory: there after a power cut, whole or not at all. */
export function writeFileDurably(path: string, content: string, mode: number): void {
  const temporary = `${path}.tmp`;
  const file = openFresh(temporary, mode);
  try {
    // Not writeSync: it may write only a part, and reports that only in its return value.
    writeFileSync(file, content);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(temporary, path);
  syncDirectory(dirname(path));
}

/** The same without the wait for the disk: whole or not at all after a crash of the process. */
export function writeFileAtomically(path: string, content: string, mode: number): void {
  const temporary = `${path}.tmp`;
  const file = openFresh(temporary, mode);
  try {
    writeFileSync(file, content);
  } finally {
    closeSync(file);
  }
  renameSync(temporary, path);
}

/** What a crash has left there goes first; whatever else somebody may have put there, a link or a pipe, is never opened. */
function openFresh(path: string, mode: number): number {
  rmSync(path, { force: true });
  return openSync(path, 'wx', mode);
}

/**
 * Makes a directory and those above it that are missing; one that is there is fine. Unlike `mkdir` with `recursive`, which never
 * returns below /proc, it ends at the first failure, with that one.
 * @param mode of those that it makes
 * @throws {NodeJS.ErrnoException} of the first that could not be made
 */
export function makeDirectories(path: string, mode: number): void {
  const missing: string[] = [];
  for (let at = path; !existsSync(at) && dirname(at) !== at; at = dirname(at)) missing.unshift(at);
  for (const each of missing) {
    try {
      mkdirSync(each, { mode });
    } catch (error) {
      // Somebody else has just made it.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
  }
  // Through a file, or to one: mkdir has the reason.
  mkdirSync(path, { recursive: true, mode });
}

/** What was renamed or removed in it stays so after a power cut. */
export function syncDirectory(path: string): void {
  const directory = openSync(path, 'r');
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}

/**
 * @param name a path, or a name to be looked up
 * @param searchPath folders, as PATH has them
 * @returns null: there is no such program, or it may not be executed
 */
export function findProgram(name: string, searchPath: string): string | null {
  const candidates = name.includes('/')
    ? [name]
    : searchPath.split(delimiter).map((folder) => join(folder, name));
  return candidates.find(isExecutable) ?? null;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
