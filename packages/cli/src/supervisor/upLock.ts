import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { upLockName } from '../connection.ts';
import { CliError } from '../errors.ts';

/**
 * Keeps a second `muster up` off a data directory. SQLite's file lock ends with the process however it ends, so that no
 * stale lock can be left behind; the file itself stays empty.
 * @returns gives the directory free again
 * @throws {CliError} when another `muster up` has it
 */
export function lockForUp(dataDir: string, programName: string): () => void {
  const database = new DatabaseSync(join(dataDir, upLockName));
  try {
    database.exec('PRAGMA busy_timeout = 0; BEGIN EXCLUSIVE');
  } catch (error) {
    database.close();
    throw new CliError(`another \`muster up\` is running with ${dataDir}`, {
      cause: error,
      hints: [`Stop that one with \`${programName} down\`, or use another directory with --data.`],
    });
  }
  return () => database.close();
}
