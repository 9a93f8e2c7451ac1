// Starting programs and seeing them end, for the scripts of this folder.
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { constants } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { Stop } from './terminal.mjs';

/**
 * Runs a program to its end and returns all it printed, stdout and stderr together.
 * @param {string} command
 * @param {readonly string[]} args
 * @param {import('node:child_process').SpawnOptions} [options]
 * @returns {Promise<{ code: number, output: string }>} code 127: no such program
 */
export function capture(command, args, options = {}) {
  return new Promise((resolve) => {
    let output = '';
    const child = spawn(command, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
    child.stdout?.on('data', (chunk) => (output += chunk));
    child.stderr?.on('data', (chunk) => (output += chunk));
    child.on('error', (error) => resolve({ code: 127, output: error.message }));
    child.on('close', (code, signal) => resolve({ code: exitCode(code, signal), output }));
  });
}

/** From the request to end to the kill of a whole group of processes. */
const groupGraceMs = 5_000;

/**
 * As `capture`, in a session of its own: the terminal's Ctrl-C does not reach it. When `abort` fires, the program and everything
 * that it has started in that session is ended, and only then does it resolve.
 * @param {string} command
 * @param {readonly string[]} args
 * @param {import('node:child_process').SpawnOptions} options
 * @param {AbortSignal} abort
 * @returns {Promise<{ code: number, output: string }>} code 127: no such program
 */
export async function captureGroup(command, args, options, abort) {
  /** @type {number | undefined} */
  let group;
  /** @param {NodeJS.Signals | 0} signal @returns {boolean} false: nothing of it is left */
  const tell = (signal) => {
    try {
      return group !== undefined && process.kill(-group, signal);
    } catch {
      return false;
    }
  };
  /** @type {NodeJS.Timeout | undefined} */
  let force;
  const end = () => {
    tell('SIGTERM');
    // npm finishes what it is about first, which may take minutes.
    force = setTimeout(() => tell('SIGKILL'), groupGraceMs);
  };
  const ended = new Promise((resolve) => {
    let output = '';
    const child = spawn(command, args, { ...options, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    group = child.pid;
    child.stdout?.on('data', (chunk) => (output += chunk));
    child.stderr?.on('data', (chunk) => (output += chunk));
    child.on('error', (error) => resolve({ code: 127, output: error.message }));
    /** @param {number | null} code @param {NodeJS.Signals | null} signal */
    const done = (code, signal) => resolve({ code: exitCode(code, signal), output });
    child.on('close', done);
    // What it has started may hold its output open, and is ended below.
    child.on('exit', (code, signal) => abort.aborted && done(code, signal));
  });
  abort.addEventListener('abort', end);
  if (abort.aborted) end();
  try {
    const result = await ended;
    if (!abort.aborted) return result;
    // Killed ones that nobody reaps stay in the process table, and are not waited for.
    for (let waitedMs = 0; tell(0) && waitedMs < 2 * groupGraceMs; waitedMs += 50) await delay(50);
    return result;
  } finally {
    clearTimeout(force);
    abort.removeEventListener('abort', end);
  }
}

/**
 * What a shell would report.
 * @param {number | null} code
 * @param {NodeJS.Signals | null} signal
 */
export function exitCode(code, signal) {
  return code ?? 128 + constants.signals[signal ?? 'SIGKILL'];
}

/** @param {import('node:child_process').ChildProcess} child */
export function hasEnded(child) {
  return child.exitCode !== null || child.signalCode !== null;
}

/**
 * Asks a child to end and kills it when it has not by then.
 * @param {import('node:child_process').ChildProcess} child
 * @param {number} graceMs
 * @returns {Promise<boolean>} false: it had to be killed
 */
export async function endChild(child, graceMs) {
  if (hasEnded(child) || child.pid === undefined) return true;
  const gone = new Promise((resolve) => child.once('exit', () => resolve(true)));
  child.kill('SIGTERM');
  const polite = await Promise.race([gone, delay(graceMs, false, { ref: false })]);
  if (polite) return true;
  child.kill('SIGKILL');
  await gone;
  return false;
}

/**
 * Aborted by the first Ctrl-C or request to end; what runs then has the chance to clean up. More of them change nothing:
 * npm passes the terminal's Ctrl-C on, so that one key press arrives twice.
 */
export function interruption() {
  return disposableInterruption().signal;
}

/** The same for a while: once disposed of, signals do again what they did before. */
export function disposableInterruption() {
  const controller = new AbortController();
  const listeners = /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP']).map((signal) => {
    const listener = () => controller.abort(new Interrupted(signal));
    process.on(signal, listener);
    return () => process.off(signal, listener);
  });
  return {
    signal: controller.signal,
    dispose() {
      for (const remove of listeners) remove();
    },
  };
}

export class Interrupted extends Stop {
  /** @param {NodeJS.Signals} signal */
  constructor(signal) {
    super('Interrupted.', exitCode(null, signal));
  }
}

/**
 * Processes whose command line, environment or working directory names a folder that only this run knows: what it
 * started, however far its children have detached themselves.
 * @param {string} folder a fresh temporary folder
 * @returns {number[]} process ids
 */
export function processesNaming(folder) {
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => Number.isInteger(pid) && pid !== process.pid)
    .filter((pid) => placesOf(pid).some((place) => place.includes(folder)));
}

/** @param {number} pid */
function placesOf(pid) {
  try {
    const process = `/proc/${pid}`;
    return [
      readFileSync(`${process}/cmdline`, 'utf8'),
      readFileSync(`${process}/environ`, 'utf8'),
      readlinkSync(`${process}/cwd`),
    ];
  } catch {
    return []; // gone in between, or not ours to read
  }
}

/** What a person knows a process by. @param {number} pid */
export function commandOf(pid) {
  return (placesOf(pid)[0] ?? '').replaceAll('\0', ' ').trim();
}

/**
 * Ends what `processesNaming` finds, and what those started in the meantime: politely for as long as `graceMs`, because a
 * guard asked to leave tidies up its control groups once its tasks are gone, and by force after that.
 * @param {string} folder
 * @param {number} graceMs
 */
export async function endAllNaming(folder, graceMs) {
  const politeUntilMs = performance.now() + graceMs;
  // Bounded: a process stuck in the kernel must not hold up the clean-up.
  const giveUpAtMs = politeUntilMs + 5_000;
  while (performance.now() < giveUpAtMs) {
    const pids = processesNaming(folder);
    if (pids.length === 0) return;
    signalAll(pids, performance.now() < politeUntilMs ? 'SIGTERM' : 'SIGKILL');
    await delay(100);
  }
}

/**
 * @param {readonly number[]} pids
 * @param {NodeJS.Signals} signal
 */
export function signalAll(pids, signal) {
  for (const pid of pids) {
    try {
      process.kill(pid, signal);
    } catch {
      // It ended by itself in between.
    }
  }
}
