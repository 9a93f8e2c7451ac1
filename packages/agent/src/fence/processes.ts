/** What /proc says about processes. A pid alone names nothing for long: with its start time it does. */

import { readdirSync } from 'node:fs';
import { isGoneError, readKernelFileUnlessGone } from '../host/kernelFiles.ts';
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
  /** That have not ended, and the first one, which stays until the others have ended; 0: only its record is left. */
  readonly threads: number;
}

/** null: no such process. */
export function readStat(pid: number): ProcessStat | null {
  return parseStat(pid, `${pid}/stat`);
}

function parseStat(pid: number, path: string): ProcessStat | null {
  const text = readProc(path);
  if (text === null) return null;
  // pid (name) state ppid pgrp session … : the name may hold spaces and parentheses, nothing after it does.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return {
    pid,
    state: fields[0] ?? '?',
    session: Number(fields[3]),
    threads: Number(fields[17]),
    startTicks: Number(fields[19]),
  };
}

/** Whether this very process still runs; an ended one does not, and neither does another program with a reused pid. */
export function isRunning(process: ProcessIdentity): boolean {
  const stat = readStat(process.pid);
  return stat !== null && stat.startTicks === process.startTicks && !hasEnded(stat);
}

/**
 * Whether no thread of a process runs. The state is that of its first thread: a process whose first thread has ended is shown as
 * a zombie while others run.
 */
export function hasEnded({ state, threads }: Pick<ProcessStat, 'state' | 'threads'>): boolean {
  return isEndedState(state) && threads <= 1;
}

/** Whether every thread of a process is stopped, by a signal (`T`) or by a debugger (`t`), or has ended. */
export function isStopped({ pid, state, threads }: ProcessStat): boolean {
  const states = threads <= 1 ? [state] : threadsOf(pid).flatMap((thread) => threadState(pid, thread) ?? []);
  // Where none can be read, nothing is known of it.
  return states.length > 0 && states.every((each) => each === 'T' || each === 't' || isEndedState(each));
}

function isEndedState(state: string): boolean {
  return state === 'Z' || state === 'X';
}

/** Numbers of the threads of a process, the ended first one included. Empty: the process is gone. */
function threadsOf(pid: number): readonly number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).map(Number);
  } catch (error) {
    if (isGoneError(error)) return [];
    throw error;
  }
}

/** null: it has ended, and its record is gone. */
function threadState(pid: number, thread: number): string | null {
  return parseStat(pid, `${pid}/task/${thread}/stat`)?.state ?? null;
}

export function* allProcesses(): Generator<ProcessStat> {
  for (const name of readdirSync('/proc')) {
    const stat = /^\d+$/.test(name) ? readStat(Number(name)) : null;
    if (stat !== null) yield stat;
  }
}

/** Whether a process has exactly this user and these groups. null: it has ended. */
export function hasRightsOf(
  pid: number,
  { uid, gid, groups }: { readonly uid: number; readonly gid: number; readonly groups: readonly number[] },
): boolean | null {
  const text = readProc(`${pid}/status`);
  if (text === null) return null;
  const valueOf = (line: string) => new RegExp(`^${line}:[ \\t]*(\\S*)`, 'm').exec(text)?.[1] ?? '';
  if (hasEnded({ state: valueOf('State'), threads: Number(valueOf('Threads')) })) return null;
  const idsOf = (line: string) =>
    new RegExp(`^${line}:[ \\t]*(.*)$`, 'm').exec(text)?.[1]?.trim().split(/\s+/);
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
  const environ = environmentOfProcess(pid);
  if (environ === null || environ === '') return false;
  const entries = `\0${environ}`;
  return Object.entries(taskMarker(task)).every(([name, value]) => entries.includes(`\0${name}=${value}\0`));
}

/**
 * The environment that a process was born with, each entry ended by a NUL. A thread that has ended shows none, so it is read from
 * another one where the first has ended.
 * @returns null: the process has ended, or belongs to another user. Empty: it has ended, or is the kernel's
 */
export function environmentOfProcess(pid: number): string | null {
  const ofFirst = readProc(`${pid}/environ`);
  if (ofFirst !== null && ofFirst !== '') return ofFirst;
  const stat = readStat(pid);
  if (stat === null || !isEndedState(stat.state) || hasEnded(stat)) return ofFirst;
  for (const thread of threadsOf(pid)) {
    const environ = thread === pid ? null : readProc(`${pid}/task/${thread}/environ`);
    if (environ !== null && environ !== '') return environ;
  }
  return ofFirst;
}

function readProc(path: string): string | null {
  return readKernelFileUnlessGone(`/proc/${path}`);
}

/** @returns a process for people, with what keeps it from doing anything if the kernel shows that */
export function processText(pid: number): string {
  const stat = readStat(pid);
  if (stat === null || hasEnded(stat)) return `pid ${pid}`;
  if (isStopped(stat)) return `pid ${pid} is stopped: kill -CONT ${pid}`;
  return stat.state === 'D' ? `pid ${pid} waits for a disk` : `pid ${pid}`;
}

/**
 * Sends a signal. A process that has ended, or that this user may not signal, is not an error.
 * @param pid negative for a process group
 * @throws {Error} for a name that is no signal
 */
export function sendSignal(pid: number, signal: string): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    // Ended in this very moment, or another user's (setuid): in both cases the end of the grace settles it.
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ESRCH' && code !== 'EPERM') throw error;
  }
}
