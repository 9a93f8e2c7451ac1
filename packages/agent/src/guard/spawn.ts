/** Starts the main process of a task, or reports why it cannot be started. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, fchownSync, openSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { hasRightsOf, taskMarker } from '../fence/processes.ts';
import { DriverError, LeaseExpired } from '../taskFacts/errors.ts';
import type { Account } from './account.ts';
import { asAccount, limitingCommand } from './asAccount.ts';
import { notExecutableMessage, notFoundMessage, requireRunnable, requireWorkdir } from './program.ts';
import type { GuardLaunch } from './protocol.ts';
import type { TaskStart } from './taskStart.ts';

/**
 * In a session and group of its own, so that neither a Ctrl-C nor the end of a terminal, agent or guard reaches it.
 * @param inside runs the spawn itself; see `Containment.spawnInside`
 * @throws {DriverError | LeaseExpired} the latter as `inside` throws it; and then no process is left, nor a log that was not there before
 */
export async function spawnTask(
  launch: TaskStart,
  inside: (spawn: () => ChildProcess) => ChildProcess,
): Promise<ChildProcess> {
  const { as } = launch;
  // With limits in between, nobody but the program that sets them would see that the command is missing.
  withRights(as, () => (as === null ? requireWorkdir(launch) : requireRunnable(launch)));
  const [file = '', ...args] = [...(as === null ? [] : limitingCommand(as.limits)), ...launch.command];
  const logPath = join(launch.directory, 'output.log');
  const logIsNew = !existsSync(logPath);
  const log = openLog(logPath);
  try {
    if (as !== null) fchownSync(log, as.uid, as.gid);
    const child = inside(() =>
      withUmask(launch.umask ?? null, () =>
        withRights(as, () =>
          spawn(file, args, {
            cwd: launch.workdir,
            env: { ...launch.env, ...taskMarker(launch) },
            // One open file for both, appended to: what the task writes first comes first, also after a restart of ours.
            stdio: ['ignore', log, log],
            detached: true,
            ...(as === null ? {} : { uid: as.uid }),
          }),
        ),
      ),
    );
    if (child.pid !== undefined) {
      if (as !== null) requireRights(child, child.pid, as);
      return child;
    }
    const [error] = await once(child, 'error');
    throw error;
  } catch (error) {
    if (logIsNew) rmSync(logPath, { force: true });
    throw error instanceof LeaseExpired ? error : spawnError(error as NodeJS.ErrnoException, launch);
  } finally {
    closeSync(log);
  }
}

/**
 * A new process inherits the mask of this one, and a spawn begins and ends within the call. Files that the guard makes for
 * itself name their mode, so that none of them is more open for that moment.
 */
function withUmask<T>(umask: number | null, act: () => T): T {
  if (umask === null) return act();
  const before = process.umask(umask);
  try {
    return act();
  } finally {
    process.umask(before);
  }
}

function withRights<T>(as: Account | null, act: () => T): T {
  return as === null ? act() : asAccount(as, act);
}

/**
 * Checks again which account the process runs as. A process that has ended already needs no check.
 * @throws {Error} and the process is killed
 */
function requireRights(child: ChildProcess, pid: number, as: Account): void {
  if (hasRightsOf(pid, as) !== false) return;
  child.kill('SIGKILL');
  throw new Error(`the task of ${as.name} was started with the rights of somebody else`);
}

function openLog(path: string): number {
  try {
    return openSync(path, 'a', 0o600);
  } catch (error) {
    throw storageError(error as NodeJS.ErrnoException, path);
  }
}

function spawnError(error: NodeJS.ErrnoException, launch: GuardLaunch): DriverError {
  const command = launch.command[0] ?? '';
  const options = { cause: error };
  // Making and entering the control group can fail with the same codes, and then the command is not the cause.
  const isOfSpawn = error.syscall?.startsWith('spawn') === true;
  switch (isOfSpawn ? error.code : undefined) {
    case 'ENOENT':
    case 'ENOTDIR':
      return new DriverError('command_not_found', notFoundMessage(command, launch), options);
    case 'EACCES':
      return new DriverError('exit_code', notExecutableMessage(command), options);
    case 'E2BIG':
      return new DriverError(
        'exit_code',
        `the command line and environment of ${command} (${sizeOf(launch)} bytes) exceed the limit of the kernel, ` +
          'which is 128 KiB for one string: put large values into a file',
        options,
      );
    default:
      return new DriverError(
        'unknown',
        `${command} could not be started on this node: ${error.message}`,
        options,
      );
  }
}

function sizeOf({ command, env }: GuardLaunch): number {
  const strings = [...command, ...Object.entries(env).map(([name, value]) => `${name}=${value}`)];
  return strings.reduce((sum, text) => sum + Buffer.byteLength(text) + 1, 0);
}

/** A task's files could not be written. */
export function storageError(error: NodeJS.ErrnoException, path: string): DriverError {
  if (error.code === 'ENOSPC' || error.code === 'EDQUOT') {
    return new DriverError('disk_full', `no space left for ${path}: free some on this node`, {
      cause: error,
    });
  }
  return new DriverError('unknown', `${path} cannot be written: ${error.message}`, { cause: error });
}
