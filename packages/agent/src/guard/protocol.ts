/**
 * How an agent speaks with its guard: one JSON object per line over a unix socket, both ways.
 *
 * The guard greets with a `GuardHello`; after that the agent sends requests and gets one response for each id, in any
 * order. Every method may be repeated: an agent whose connection broke does not know what arrived and sends it again.
 * The guard outlives agents and their upgrades, so methods are only ever added.
 * The protocol number changes when an old guard could misunderstand a new agent.
 */

import type { Socket } from 'node:net';
import { join } from 'node:path';
import type { AccountIds, TaskAccount } from '../taskFacts/account.ts';
import type {
  Lease,
  StopOptions,
  TaskExit,
  TaskLocation,
  TaskName,
  TaskObservation,
} from '../taskFacts/execution.ts';
import type { OutputLimits } from './outputPace.ts';

export const guardProtocol = 2;

/** Exit status of a guard that found another one alive in its runtime directory: nothing is wrong. */
export const exitAlreadyGuarded = 3;

export interface GuardHello {
  readonly guard: 'muster';
  readonly protocol: number;
  readonly pid: number;
}

export interface GuardLaunch extends TaskLocation {
  /** argv, not empty. */
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Absolute. */
  readonly workdir: string;
  /** 0 to 0o777; null: the guard's own, as with a guard that is older than that. */
  readonly umask?: number | null;
  /** Limits; null: none. A guard that is older than that enforces none. */
  readonly cpus?: number | null;
  /** MiB */
  readonly memoryMb?: number | null;
  /** Absolute; `prepare` makes those that are missing. A guard that is older than that leaves them missing. */
  readonly directories?: readonly string[];
}

/** A task that runs as an account of its own. Its environment is completed with what the account's login has. */
export interface AccountLaunch extends Omit<GuardLaunch, 'workdir'> {
  readonly account: TaskAccount;
  /** Absolute; null: the account's home. */
  readonly workdir: string | null;
  /** Absolute; nobody but root can write to what they are in. The account gets them with the start. */
  readonly ownDirectories: readonly string[];
  /** As of `giveFiles`. A guard that is older than that leaves them to everybody who can reach them. */
  readonly ownFiles?: readonly string[];
}

export interface Renewal {
  readonly lease: Lease | null;
  /** Absolute paths of the control groups a container is in, or will be. Empty for the guard's own tasks. */
  readonly groups: readonly string[];
}

export interface GuardMethods {
  /** Those of these absolute paths that are not there, as the guard sees the node. */
  missing: { params: { readonly paths: readonly string[] }; result: readonly string[] };
  /** Where each of these absolute paths leads, as the guard sees the node; null: it is not there. */
  realPaths: { params: { readonly paths: readonly string[] }; result: readonly (string | null)[] };
  /** Whether the working directory and the program are there, as the guard sees the node; starts nothing, makes `directories`. */
  prepare: { params: GuardLaunch; result: null };
  start: { params: GuardLaunch; result: null };
  /**
   * With the lease in force before the first instruction. A method of its own, because a guard that is older than leases
   * would start the task and leave the lease out; this one it refuses.
   */
  startLeased: { params: GuardLaunch & { readonly lease: Lease }; result: null };
  /** As `prepare` and the starts, for a task with an account of its own: a guard that is older would start it as root. */
  prepareAs: { params: AccountLaunch; result: null };
  startAs: { params: AccountLaunch & { readonly lease: Lease | null }; result: null };
  /**
   * The ids that a container of this account runs as. Gives the account `ownFiles`, as of `giveFiles`, and makes
   * `directories` as `prepareAs` does.
   */
  accountIds: {
    params: Pick<AccountLaunch, 'account'> & Required<Pick<AccountLaunch, 'ownFiles' | 'directories'>>;
    result: AccountIds;
  };
  recover: { params: TaskLocation; result: TaskObservation };
  /** Answered when the task has ended, however long that takes. */
  wait: { params: TaskLocation; result: TaskExit };
  signal: { params: TaskLocation & { readonly signal: string }; result: null };
  /** The guard keeps the grace: the task is killed in time even when the agent is gone by then. */
  stop: { params: TaskLocation & StopOptions; result: TaskExit };
  /** At the deadline the guard freezes or kills the task, whatever else runs then. null: never fenced. */
  renew: { params: TaskLocation & Renewal; result: null };
  /** For tasks that are not the guard's own: what they were armed with is void, they have ended or never begun. */
  forget: { params: TaskLocation; result: null };
  remove: { params: TaskLocation; result: null };
  list: { params: null; result: readonly TaskName[] };
  /** How much output tasks may write; a guard that did not receive it, or is older, uses its defaults. */
  outputLimits: { params: OutputLimits; result: null };
}

export type GuardMethod = keyof GuardMethods;

export interface GuardRequest<M extends GuardMethod = GuardMethod> {
  readonly id: number;
  readonly method: M;
  readonly params: GuardMethods[M]['params'];
}

export type GuardResponse =
  | { readonly id: number; readonly result: unknown }
  | { readonly id: number; readonly error: GuardFailure };

export interface GuardFailure {
  /** The cause of a task that could not be started; null: the request was wrong. */
  readonly causeKind: string | null;
  readonly message: string;
  /** The task was not started because its lease had run out. */
  readonly leaseExpired?: true;
}

/** What `sun_path` of a unix socket address holds, less its final zero byte. */
const socketPathBytesMax = 107;

/** The file whose lock a guard holds while it runs. */
export function guardLockPath(runtimeDir: string): string {
  return join(runtimeDir, 'guard.lock');
}

/** @throws {Error} when the path is longer than the kernel takes; libuv would cut it off and bind another name. */
export function guardSocketPath(runtimeDir: string): string {
  const path = join(runtimeDir, 'guard.sock');
  const bytes = Buffer.byteLength(path);
  if (bytes <= socketPathBytesMax) return path;
  throw new Error(
    `the guard's socket ${path} has a path of ${bytes} bytes and Linux takes ${socketPathBytesMax}: ` +
      'choose a shorter runtime directory',
  );
}

/** Far above any launch the kernel would accept (128 KiB a string, 6 MiB in all); bounds a confused peer. */
const lineLengthMax = 32 * 1024 * 1024;

/** Calls back with every whole line; a peer that never ends its line is cut off. */
export function readLines(socket: Socket, onLine: (line: string) => void): void {
  let begun = '';
  socket.setEncoding('utf8');
  socket.on('data', (chunk: string) => {
    let from = 0;
    for (let end = chunk.indexOf('\n'); end >= 0; end = chunk.indexOf('\n', from)) {
      const line = begun + chunk.slice(from, end);
      begun = '';
      from = end + 1;
      onLine(line);
    }
    begun += chunk.slice(from);
    if (begun.length > lineLengthMax) {
      socket.destroy(new Error(`a line of more than ${lineLengthMax} characters`));
    }
  });
}

export function writeLine(socket: Socket, message: GuardHello | GuardRequest | GuardResponse): void {
  socket.write(`${JSON.stringify(message)}\n`);
}
