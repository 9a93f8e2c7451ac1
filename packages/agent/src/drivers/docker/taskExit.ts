/** What the state of a container means for its task. */

import { constants } from 'node:os';
import type { TaskExit, TaskObservation } from '../../taskFacts/execution.ts';
import { labels } from './containerSpec.ts';
import type { Container } from './engineAnswers.ts';

export const statusLost: TaskExit = {
  exitCode: null,
  signal: null,
  oomKilled: false,
  finishedAtMs: null,
  statusLost: true,
};

/** These stop a process or do nothing unless it asked for them: they cannot have ended one. */
const harmlessSignals = new Set([
  'SIGCHLD',
  'SIGCONT',
  'SIGSTOP',
  'SIGTSTP',
  'SIGTTIN',
  'SIGTTOU',
  'SIGURG',
  'SIGWINCH',
]);

/** What an engine that finds a container dead at its own start writes as exit code: nobody saw the real one. */
const unseenExitCodes = new Set([255, 137]);

/**
 * @param bootId of the machine's current boot
 * @param frozen whether the container is
 */
export function observationOf(container: Container | null, bootId: string, frozen: boolean): TaskObservation {
  // A container that was created and never started is what an agent leaves that died in between: nothing has run.
  if (container === null || container.phase === 'created') return { kind: 'absent' };
  if (container.phase === 'ended') return { kind: 'exited', exit: exitOf(container, bootId) };
  return { kind: 'running', pid: container.pid, startedAtMs: container.startedAtMs, frozen };
}

/**
 * Engines report 128 + n for a main process that signal n ended, and keep nothing that distinguishes it from a program
 * that itself exits with that number. Shells use the number in the same sense, so it is taken for the signal.
 */
export function exitOf(container: Container, bootId: string): TaskExit {
  const isOfThisBoot = container.labels[labels.boot] === bootId;
  if (!isOfThisBoot && unseenExitCodes.has(container.exitCode)) return statusLost;
  const signal = signalOf(container.exitCode);
  return {
    exitCode: signal === null ? container.exitCode : null,
    signal,
    // The engine reports an OOM kill of any process of the container; a task that continued and succeeded was not ended by it.
    oomKilled: container.oomKilled && container.exitCode !== 0,
    finishedAtMs: container.finishedAtMs,
    statusLost: false,
  };
}

function signalOf(exitCode: number): string | null {
  const signals = Object.entries(constants.signals);
  const name = signals.find(([, number]) => number === exitCode - 128)?.[0] ?? null;
  return name === null || harmlessSignals.has(name) ? null : name;
}
