/**
 * The agent's side of the guard: finds it, starts it where there is none, and sends again what a broken connection
 * left unanswered. That is safe because every request may be repeated.
 */

import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { messageOf } from '@muster/common/errors';
import type { Logger } from '@muster/common/log';
import { processText } from '../../fence/processes.ts';
import type { OutputLimits } from '../../guard/outputPace.ts';
import {
  exitAlreadyGuarded,
  type GuardMethod,
  type GuardMethods,
  guardLockPath,
  guardSocketPath,
} from '../../guard/protocol.ts';
import { lockHolder } from '../../probes/lockHolder.ts';
import { realPaths } from '../../probes/realPaths.ts';
import type { AccountIds, TaskAccount } from '../../taskFacts/account.ts';
import { DriverError } from '../../taskFacts/errors.ts';
import type { Lease, TaskLocation } from '../../taskFacts/execution.ts';
import type { Fence } from '../driver.ts';
import { ConnectionLost, GuardConnection, GuardRefusal } from './guardConnection.ts';

export interface GuardClientOptions {
  /** argv that starts a guard, paths absolute; `--runtime-dir` is appended. null: somebody else sees to it. */
  readonly guardCommand: readonly string[] | null;
  /** Of a guard that is started here. It outlives this agent, and anyone who may look at it must not find secrets of ours. */
  readonly environment: Readonly<Record<string, string>>;
  /** Absolute, one per agent. Made 0700 by the guard. */
  readonly runtimeDir: string;
  readonly log: Logger;
  /** Default: those of the guard. */
  readonly outputLimits?: OutputLimits;
  /** Time that a guard has to greet before the agent stops tasks in its place. Default: 3 s. */
  readonly probeMs?: number;
}

/** No guard could be reached or started. What became of the request is unknown: `recover` shows it once there is a guard. */
export class GuardUnavailable extends Error {
  override readonly name = 'GuardUnavailable';
}

/** From the first try to connect until we give up. A guard starts in a tenth of a second, and at a load of 60 in 20 of them. */
const connectDeadlineMs = 60_000;
const connectRetryMs = 20;
/** Before another guard is started: one that holds the directory without listening is about to, or about to be gone. */
const restartPauseMs = 200;
/** A request that loses this many connections in a row, each soon after it was sent, probably is what kills the guard. */
const quickLossesMax = 5;
const quickLossMs = 5000;

export class GuardClient implements Fence {
  private readonly options: GuardClientOptions;
  private readonly socketPath: string;
  private connection: GuardConnection | null = null;
  private connecting: Promise<GuardConnection> | null = null;
  private isClosed = false;

  /** @throws {Error} when the runtime directory's path is too long for a socket */
  constructor(options: GuardClientOptions) {
    this.options = options;
    this.socketPath = guardSocketPath(options.runtimeDir);
  }

  /** @throws {GuardRefusal | GuardMismatch | GuardUnavailable} */
  async request<M extends GuardMethod>(
    method: M,
    params: GuardMethods[M]['params'],
  ): Promise<GuardMethods[M]['result']> {
    for (let quickLosses = 0; ; ) {
      const connection = await this.connect();
      const sentAtMs = performance.now();
      try {
        return await connection.request(method, params);
      } catch (error) {
        if (!(error instanceof ConnectionLost) || this.isClosed) throw error;
        quickLosses = performance.now() - sentAtMs < quickLossMs ? quickLosses + 1 : 0;
        if (quickLosses >= quickLossesMax) {
          throw new GuardUnavailable(`the guard exited ${quickLosses} times during "${method}"`, {
            cause: error,
          });
        }
      }
    }
  }

  /** @throws {GuardRefusal | GuardMismatch | GuardUnavailable} */
  async renew(
    { key, directory }: TaskLocation,
    lease: Lease | null,
    groups: readonly string[],
  ): Promise<void> {
    await this.request('renew', { key, directory, lease, groups });
  }

  /** @throws {GuardRefusal | GuardMismatch | GuardUnavailable} */
  async forget({ key, directory }: TaskLocation): Promise<void> {
    await this.request('forget', { key, directory });
  }

  /** @throws {GuardMismatch | GuardUnavailable} */
  async realPaths(paths: readonly string[]): Promise<readonly (string | null)[]> {
    try {
      return await this.request('realPaths', { paths });
    } catch (error) {
      if (!(error instanceof GuardRefusal)) throw error;
      // A guard of before there was this question runs on with its tasks: what this agent sees has to do.
      return realPaths(paths);
    }
  }

  /** @throws {DriverError | GuardMismatch | GuardUnavailable} the first also where the guard is older than this question */
  async accountIds(
    account: TaskAccount,
    { ownFiles, directories }: Parameters<Fence['accountIds']>[1],
  ): Promise<AccountIds> {
    try {
      return await this.request('accountIds', { account, ownFiles, directories });
    } catch (error) {
      if (!(error instanceof GuardRefusal)) throw error;
      throw new DriverError(error.causeKind ?? 'unknown', error.message, { cause: error });
    }
  }

  /**
   * Asks whether a guard answers, on a connection of its own and without starting one. The kernel accepts connections for a
   * guard that is stopped, but only a guard that runs greets.
   * @param deadlineMs for the greeting
   * @returns `absent` if no guard listens, `silent` if one listens and does not greet. `detail` names it for people
   */
  async probe(
    deadlineMs: number,
  ): Promise<{ readonly state: 'answers' | 'absent' | 'silent'; readonly detail: string }> {
    const detail = this.socketPath;
    try {
      (await GuardConnection.open(this.socketPath, deadlineMs)).close();
      return { state: 'answers', detail };
    } catch (error) {
      // Another protocol is an answer, too.
      if (!(error instanceof ConnectionLost)) return { state: 'answers', detail };
      if (!error.isSilent) return { state: 'absent', detail };
      const pid = lockHolder(guardLockPath(this.options.runtimeDir));
      return { state: 'silent', detail: pid === null ? detail : processText(pid) };
    }
  }

  close(): void {
    this.isClosed = true;
    this.connection?.close();
  }

  private connect(): Promise<GuardConnection> {
    if (this.connection?.isOpen) return Promise.resolve(this.connection);
    this.connecting ??= this.openConnection().finally(() => {
      this.connecting = null;
    });
    return this.connecting;
  }

  private async openConnection(): Promise<GuardConnection> {
    const deadlineMs = performance.now() + connectDeadlineMs;
    let start: GuardStart | null = null;
    for (;;) {
      if (this.isClosed) throw new ConnectionLost('the connection to the guard was closed');
      const leftMs = Math.max(1, deadlineMs - performance.now());
      const connection = await GuardConnection.open(this.socketPath, leftMs).catch((error: unknown) => {
        if (!(error instanceof ConnectionLost)) throw error;
        if (performance.now() < deadlineMs) return null;
        const where = `no guard answers at ${this.socketPath}; its log is ${this.logPath}`;
        throw new GuardUnavailable(where, { cause: error });
      });
      if (connection !== null) {
        this.connection = connection;
        this.logLimits(connection);
        if (this.isClosed) connection.close();
        return connection;
      }
      if (start?.failure !== undefined) throw new GuardUnavailable(start.failure);
      if (start?.hasLeft) await delay(restartPauseMs);
      if (this.options.guardCommand !== null && (start === null || start.hasLeft))
        start = this.startGuard(this.options.guardCommand);
      await delay(connectRetryMs);
    }
  }

  /** To every guard on each connection, because guards do not store the limits. A guard that is older than these has none. */
  private logLimits(connection: GuardConnection): void {
    const { outputLimits, log } = this.options;
    if (outputLimits === undefined) return;
    connection.request('outputLimits', outputLimits).catch((error: unknown) => {
      if (error instanceof ConnectionLost) return;
      log.warn({ error: messageOf(error) }, 'the limits of output could not be sent to the guard');
    });
  }

  private get logPath(): string {
    return join(this.options.runtimeDir, 'guard.log');
  }

  /** In a session of its own and on no pipe of ours: what ends the agent does not reach it. */
  private startGuard(guardCommand: readonly string[]): GuardStart {
    const { runtimeDir, log } = this.options;
    const [file = '', ...args] = guardCommand;
    const start: GuardStart = { hasLeft: false };
    const fail = (why: string) => {
      start.failure = `the guard could not be started (${guardCommand.join(' ')}): ${why}; its log is ${this.logPath}`;
    };
    let logFile: number | null = null;
    try {
      mkdirSync(runtimeDir, { recursive: true, mode: 0o700 });
      logFile = openSync(this.logPath, 'a', 0o600);
      const child = spawn(file, [...args, '--runtime-dir', runtimeDir], {
        cwd: '/',
        detached: true,
        env: this.options.environment,
        stdio: ['ignore', logFile, logFile],
      });
      child.on('error', (error) => fail(error.message));
      child.on('exit', (code, signal) => {
        if (code === exitAlreadyGuarded || code === 0) start.hasLeft = true;
        else fail(`it ended with ${signal ?? `status ${code}`}`);
      });
      child.unref();
      log.info({ pid: child.pid, runtimeDir }, 'started a guard');
    } catch (error) {
      fail(messageOf(error));
    } finally {
      if (logFile !== null) closeSync(logFile);
    }
    return start;
  }
}

/** What became of a guard we started; filled in when it ends. */
interface GuardStart {
  /** It found another one in its place, or nothing to do. */
  hasLeft: boolean;
  failure?: string;
}
