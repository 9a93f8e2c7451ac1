/** Which `muster up` runs with a data directory, for `muster down` and for a second one. */
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { isRunning, readStat } from '@muster/agent/fence/processes';
import { writeFileAtomically } from '@muster/common/files';

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
