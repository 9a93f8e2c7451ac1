/** A connection to the coordinator that outlives its restarts. */
import { setTimeout as sleep } from 'node:timers/promises';
import { MusterError } from '@muster/common/errors';
import { backoffMs } from '@muster/common/retry';
import type { MusterApi } from '@muster/common/wire/client';
import { type ApiEndpoint, type ConnectionFlags, remediesForSilence, resolveEndpoint } from './connection.ts';
import type { Context } from './context.ts';
import { CliError } from './errors.ts';

export interface Session {
  readonly endpoint: ApiEndpoint;
  readonly api: MusterApi;
  /**
   * Runs the operation, again and again while the coordinator is away, until `patienceMs` passed without an answer.
   * The operation must be safe to repeat; a long one calls `alive` whenever it received something, which restarts the clock.
   */
  retrying<T>(
    operation: (api: MusterApi, alive: () => void) => Promise<T>,
    options: RetryOptions,
  ): Promise<T>;
}

export interface RetryOptions {
  readonly patienceMs: number;
  /** Called before each wait. */
  onAway?(error: MusterError): void;
  readonly abort?: AbortSignal;
}

/** How long a change is tried again under its request id: enough for a coordinator that restarts. */
export const submitPatienceMs = 5_000;

/** How long a command that waits or follows bears an outage: longer than a restart or an upgrade, but not for ever. */
export const outagePatienceMs = 5 * 60_000;

const backoff = { initialMs: 100, maxMs: 2_000 } as const;

/** Connects, runs `work`, and closes the connection whatever comes of it. */
export async function withSession<T>(
  context: Context,
  flags: ConnectionFlags,
  work: (session: Session) => Promise<T>,
): Promise<T> {
  const endpoint = resolveEndpoint(flags, context.environment);
  const { connectMuster } = await import('@muster/common/wire/client');
  const target = { ...endpoint, traceparent: traceparentIn(context.environment.variables) };
  let api = connectMuster(target);
  const session: Session = {
    endpoint,
    get api() {
      return api;
    },
    async retrying(operation, { patienceMs, onAway, abort }) {
      let failures = 0;
      let lastContactMs = context.clock.monotonicMs();
      const alive = () => {
        failures = 0;
        lastContactMs = context.clock.monotonicMs();
      };
      for (;;) {
        const used = api;
        try {
          return await operation(used, alive);
        } catch (error) {
          failures += 1;
          const patienceLeftMs = lastContactMs + patienceMs - context.clock.monotonicMs();
          const away = asAway(error);
          if (away === null || patienceLeftMs <= 0) throw away ?? error;
          onAway?.(away);
          const waitMs = retryWaitMs(failures, patienceMs, patienceLeftMs);
          await sleep(waitMs, undefined, abort === undefined ? {} : { signal: abort });
          // A fresh client: the old one would keep to its own, longer, delays before it dials again. Another operation
          // of this session may have replaced it already.
          if (api !== used) continue;
          used.close();
          api = connectMuster(target);
        }
      }
    },
  };
  try {
    return await work(session);
  } catch (error) {
    if (!isSilence(error)) throw error;
    const hints = remediesForSilence(endpoint, flags, context.environment);
    throw new CliError(error.message, { code: error.code, hints, cause: error });
  } finally {
    api.close();
  }
}

/** TRACEPARENT, by which a pipeline or another job tells its programs what they are part of. */
function traceparentIn({ TRACEPARENT: named = '' }: Readonly<Record<string, string>>): string | null {
  return /^[\da-f]{2}-[\da-f]{32}-[\da-f]{16}-[\da-f]{2}$/.test(named) ? named : null;
}

/**
 * The last try is at the end of the patience, however long the usual wait is by then; and whoever has little of it notices soon that
 * the coordinator is back.
 */
export function retryWaitMs(failures: number, patienceMs: number, patienceLeftMs: number): number {
  return Math.min(backoffMs(backoff, failures), patienceMs / 10, patienceLeftMs);
}

function isSilence(error: unknown): error is MusterError {
  return (
    error instanceof MusterError &&
    error.code === 'unavailable' &&
    error.message.startsWith('no coordinator answers')
  );
}

/** The error of a coordinator that is not there at the moment; null for one that answered. */
function asAway(error: unknown): MusterError | null {
  if (!(error instanceof MusterError)) return null;
  return error.code === 'unavailable' || error.code === 'deadline_exceeded' ? error : null;
}

/**
 * Does what `write` does, and says how to find out what became of it where its answer did not come.
 * @param lookUp the command, without the program's name, that shows whether the request was accepted
 * @throws {CliError} `deadline_exceeded`, with that command
 */
export async function explainingSilence<T>(
  lookUp: string,
  { environment }: Context,
  write: () => Promise<T>,
): Promise<T> {
  try {
    return await write();
  } catch (error) {
    if (!(error instanceof MusterError) || error.code !== 'deadline_exceeded') throw error;
    throw new CliError('the coordinator did not answer in time; the request may have been accepted', {
      code: error.code,
      hints: [`See whether it was: ${environment.programName} ${lookUp}`],
      cause: error,
    });
  }
}
