/** The directory that holds all an agent remembers: its credential, its tasks, the highest term it has followed. */
import { chmodSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { MusterError, messageOf } from '@muster/common/errors';
import { makeDirectories } from '@muster/common/files';
import { type FileLock, takeFileLock } from './fileLock.ts';

/** @throws {MusterError} when it cannot be made */
export function prepareDataDir(dataDir: string): void {
  try {
    makeDirectories(dataDir, 0o700);
  } catch (error) {
    throw new MusterError(
      'failed_precondition',
      `the data directory ${dataDir} cannot be created: ${messageOf(error)}`,
      {
        cause: error,
      },
    );
  }
}

/** What tasks of other accounts pass through; what is below is theirs or has a mode of its own. */
const passages = ['tasks', 'checkpoints'];

/**
 * Lets processes of every account reach what is theirs below the data directory. They can list nothing, and everything else in
 * it is closed to them.
 * @throws {MusterError} when they cannot reach the directory itself
 */
export function letAccountsPass(dataDir: string): void {
  for (let folder = dirname(dataDir); ; folder = dirname(folder)) {
    if ((statSync(folder).mode & 0o001) === 0) {
      throw new MusterError(
        'failed_precondition',
        `the data directory ${dataDir} is below ${folder}, which other accounts cannot enter, and tasks run as such: ` +
          'choose another --data, or `--root-tasks allow` where everybody who submits may be root on this node',
      );
    }
    if (folder === dirname(folder)) break;
  }
  for (const name of readdirSync(dataDir)) {
    const path = join(dataDir, name);
    if (!passages.includes(name)) chmodSync(path, statSync(path).mode & 0o700);
  }
  for (const name of passages) {
    const path = join(dataDir, name);
    mkdirSync(path, { recursive: true, mode: 0o711 });
    chmodSync(path, 0o711);
  }
  chmodSync(dataDir, 0o711);
}

/**
 * One agent per data directory.
 * @throws {MusterError} when another one uses it, or it cannot be locked
 */
export function lockDataDir(dataDir: string): FileLock {
  let lock: FileLock | null;
  try {
    lock = takeFileLock(join(dataDir, 'agent.lock'));
  } catch (error) {
    throw new MusterError(
      'failed_precondition',
      `the data directory ${dataDir} cannot be locked: ${messageOf(error)}`,
      { cause: error },
    );
  }
  if (lock !== null) return lock;
  throw new MusterError(
    'failed_precondition',
    `another agent is using ${dataDir}; stop it, or use another --data`,
  );
}
