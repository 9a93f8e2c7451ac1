/** One daemon as a child process: started, watched, started again when it ends unasked. */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '@muster/common/clock';
import { messageOf } from '@muster/common/errors';
import { keepLogSmall } from '@muster/common/logRotation';
import { backoffMs } from '@muster/common/retry';
import { CliError } from '../errors.ts';
import type { DaemonMessage } from '../io.ts';
import { durationText } from '../output/times.ts';

export interface ChildStart {
  readonly argv: readonly string[];
  readonly variables: Readonly<Record<string, string>>;
}

export interface ChildPlan {
  /** As people know it: `coordinator`, `node-1`. */
  readonly title: string;
  readonly logPath: string;
  /** What to start; asked again before every start. */
  prepare(): Promise<ChildStart>;
}

export interface SupervisedChild {
  /** Resolves with its address once it serves; rejects when it ends before it ever did. */
  readonly serving: Promise<string | null>;
  /** SIGTERM, and SIGKILL after `graceMs`. Resolves when the process is gone and will not come back. */
  stop(graceMs: number): Promise<void>;
}

const restartBackoff = { initialMs: 1_000, maxMs: 30_000 } as const;
/** A process that ran this long starts with no failures counted. */
const settledMs = 60_000;

export function superviseChild(
  plan: ChildPlan,
  clock: Clock,
  notify: (sentence: string) => void,
): SupervisedChild {
  const stopping = new AbortController();
  const served = Promise.withResolvers<string | null>();
  let running: RunningChild | null = null;
  // A caller that stops everything before it serves no longer asks for it.
  served.promise.catch(() => {});

  async function runOnce(): Promise<CliError> {
    try {
      const start = await plan.prepare();
      if (stopping.signal.aborted) return stopped(plan);
      running = startChild(plan, start, served.resolve);
      return await running.ended;
    } catch (error) {
      return new CliError(`${plan.title} could not be started: ${messageOf(error)}`, { cause: error });
    } finally {
      running = null;
    }
  }

  async function superviseUntilStopped(): Promise<void> {
    let failures = 0;
    let hasServed = false;
    served.promise.then(
      () => {
        hasServed = true;
      },
      () => {},
    );
    while (!stopping.signal.aborted) {
      const startedMs = clock.monotonicMs();
      const end = await runOnce();
      if (stopping.signal.aborted) return;
      if (!hasServed) {
        served.reject(end);
        return;
      }
      failures = clock.monotonicMs() - startedMs > settledMs ? 1 : failures + 1;
      const waitMs = backoffMs(restartBackoff, failures);
      notify(`${end.message}; starting it again in ${durationText(waitMs)}`);
      await sleep(waitMs, undefined, { signal: stopping.signal }).catch(() => {});
    }
  }

  /** A child whose log cannot be rotated runs on: a full disk is reported by what fails because of it. */
  const endRotation = keepLogSmall(plan.logPath, () => {});
  const done = superviseUntilStopped().finally(endRotation);
  return {
    serving: served.promise,
    async stop(graceMs) {
      stopping.abort();
      await running?.stop(graceMs);
      await done;
    },
  };
}

function stopped({ title }: ChildPlan): CliError {
  return new CliError(`${title} was stopped`);
}

interface RunningChild {
  /** Why and how it ended. */
  readonly ended: Promise<CliError>;
  stop(graceMs: number): Promise<void>;
}

function startChild(
  plan: ChildPlan,
  start: ChildStart,
  onServing: (address: string | null) => void,
): RunningChild {
  const [program = '', ...rest] = start.argv;
  const log = openSync(plan.logPath, 'a', 0o600);
  const child = spawn(program, rest, {
    // A session of its own: Ctrl-C reaches the supervisor alone, which then ends its children in the right order.
    // Should the supervisor be killed, they notice that the channel to it is closed.
    detached: true,
    stdio: ['ignore', log, log, 'ipc'],
    env: start.variables,
  });
  closeSync(log);
  const ended = endOf(plan, child, onServing);
  return {
    ended,
    async stop(graceMs) {
      child.kill('SIGTERM');
      const force = setTimeout(() => child.kill('SIGKILL'), graceMs);
      await ended;
      clearTimeout(force);
    },
  };
}

function endOf(
  { title, logPath }: ChildPlan,
  child: ChildProcess,
  onServing: (address: string | null) => void,
): Promise<CliError> {
  return new Promise((resolve) => {
    let failure: Extract<DaemonMessage, { kind: 'failed' }> | null = null;
    child.on('message', (received) => {
      const message = received as DaemonMessage;
      if (message.kind === 'serving') onServing(message.address);
      else failure = message;
    });
    child.on('error', (error) =>
      resolve(new CliError(`${title} could not be started: ${error.message}`, { cause: error })),
    );
    child.on('close', (code, signal) => {
      const how = failure?.message ?? (signal === null ? `exit code ${code}` : signal);
      const hints = [...(failure?.hints ?? []), `Its log: ${logPath}`];
      resolve(new CliError(`${title} ended: ${how}`, { hints }));
    });
  });
}
