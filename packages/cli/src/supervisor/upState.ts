/** Which `muster up` runs with a data directory: for `muster down`, for a second one, and for later calls of the same user. */
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { isRunning, readStat } from '@muster/agent/fence/processes';
import { messageOf } from '@muster/common/errors';
import { writeFileAtomically } from '@muster/common/files';
import { upLockName } from '../connection.ts';
import type { ProgramEnvironment } from '../environment.ts';
import { CliError, fileErrorReason } from '../errors.ts';

export interface UpState {
  readonly pid: number;
  /** Clock ticks from boot to its start: a pid alone names nothing for long. */
  readonly startTicks: number;
  /** `host:port` of its coordinator. null: it is starting. */
  readonly address: string | null;
}

const statePath = (dataDir: string) => join(dataDir, 'up.json');

/** Notes this process as the one that runs. To be called with the directory locked. */
export function writeUpState(dataDir: string, address: string | null): void {
  const { pid } = process;
  const startTicks = readStat(pid)?.startTicks ?? 0;
  writeFileAtomically(statePath(dataDir), `${JSON.stringify({ pid, startTicks, address })}\n`, 0o600);
}

export function removeUpState(dataDir: string): void {
  rmSync(statePath(dataDir), { force: true });
}

/** @returns null: none runs; what one that was killed has left behind counts as nothing */
export function readUpState(dataDir: string): UpState | null {
  let stored: Partial<UpState> | null;
  try {
    stored = JSON.parse(readFileSync(statePath(dataDir), 'utf8')) as Partial<UpState> | null;
  } catch {
    return null;
  }
  const { pid, startTicks, address } = stored ?? {};
  if (typeof pid !== 'number' || typeof startTicks !== 'number') return null;
  const state: UpState = { pid, startTicks, address: typeof address === 'string' ? address : null };
  return isRunning(state) ? state : null;
}

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

/**
 * Notes where this `muster up` keeps its data, so that other calls of this user find its coordinator.
 * @returns null, or why it could not be noted: no reason to stop, as `--data` does the same
 */
export function rememberLastUp(dataDir: string, { lastUpPath }: ProgramEnvironment): string | null {
  try {
    mkdirSync(dirname(lastUpPath), { recursive: true, mode: 0o700 });
    writeFileAtomically(lastUpPath, `${JSON.stringify({ dataDir })}\n`, 0o600);
    return null;
  } catch (error) {
    return `cannot write ${lastUpPath}: ${fileErrorReason(error) ?? messageOf(error)}`;
  }
}
