/** The directory that holds all an agent remembers: its credential, its tasks, the highest term it has followed. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { MusterError, messageOf } from '@muster/common/errors';
import { makeDirectories, writeFileDurably } from '@muster/common/files';
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

/**
 * Made with the data directory: distinguishes two machines with the same credential.
 * @param newId random
 */
export function readInstanceId(dataDir: string, newId: () => string): string {
  const path = join(dataDir, 'instance');
  if (!existsSync(path)) writeFileDurably(path, `${newId()}\n`, 0o600);
  return readFileSync(path, 'utf8').trim();
}
