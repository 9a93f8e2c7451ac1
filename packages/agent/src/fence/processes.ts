/** What /proc says about processes. A pid alone names nothing for long: with its start time it does. */

import { readdirSync } from 'node:fs';
import { readKernelFileUnlessGone } from '../host/kernelFiles.ts';
import type { TaskLocation } from '../taskFacts/execution.ts';

export interface ProcessIdentity {
  readonly pid: number;
  /** Clock ticks from boot to the start of the process. */
  readonly startTicks: number;
}

export interface ProcessStat extends ProcessIdentity {
  /** `R`, `S`, `D`, `Z` … */
  readonly state: string;
  readonly session: number;
}

/** null: no such process. */
export function readStat(pid: number): ProcessStat | null {
  const text = readProc(`${pid}/stat`);
  if (text === null) return null;
  // pid (name) state ppid pgrp session … : the name may hold spaces and parentheses, nothing after it does.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return {
    pid,
    state: fields[0] ?? '?',
    session: Number(fields[3]),
    startTicks: Number(fields[19]),
  };
}

/** Whether this very process still runs; a zombie does not, and neither does another program with a reused pid. */
export function isRunning(process: ProcessIdentity): boolean {
  const stat = readStat(process.pid);
  return stat !== null && stat.startTicks === process.startTicks && !isZombie(stat);
}

export function isZombie(stat: ProcessStat): boolean {
  return stat.state === 'Z' || stat.state === 'X';
}

export function* allProcesses(): Generator<ProcessStat> {
  for (const name of readdirSync('/proc')) {
    const stat = /^\d+$/.test(name) ? readStat(Number(name)) : null;
    if (stat !== null) yield stat;
  }
}

/** Whether a process has exactly this user and these groups. null: it has ended, or has become a zombie. */
export function hasRightsOf(
  pid: number,
  { uid, gid, groups }: { readonly uid: number; readonly gid: number; readonly groups: readonly number[] },
): boolean | null {
  const text = readProc(`${pid}/status`);
  if (text === null || /^State:\s*[ZX]/m.test(text)) return null;
  const idsOf = (line: string) => new RegExp(`^${line}:\\s*(.*)$`, 'm').exec(text)?.[1]?.trim().split(/\s+/);
  const have = new Set(idsOf('Groups')?.filter((id) => id !== ''));
  return (
    idsOf('Uid')?.every((id) => id === String(uid)) === true &&
    idsOf('Gid')?.every((id) => id === String(gid)) === true &&
    groups.every((id) => have.delete(String(id))) &&
    have.size === 0
  );
}

/**
 * Marks every process of a task, for as long as it keeps its environment. The directory tells apart equal keys of two
 * agents on one machine.
 */
export function taskMarker(task: TaskLocation): Record<string, string> {
  return { MUSTER_TASK: task.key, MUSTER_TASK_DIRECTORY: task.directory };
}

/** Whether the process was born with the task's marker. False for processes of other users, unless we are root. */
export function carriesMarker(pid: number, task: TaskLocation): boolean {
  const environ = readProc(`${pid}/environ`);
  if (environ === null || environ === '') return false;
  const entries = `\0${environ}`;
  return Object.entries(taskMarker(task)).every(([name, value]) => entries.includes(`\0${name}=${value}\0`));
}

function readProc(path: string): string | null {
  return readKernelFileUnlessGone(`/proc/${path}`);
}
