/**
 * The guard: starts bare tasks for an agent, keeps their exit status and ends them in time. It is a process of its own
 * so that an agent can crash, restart or be upgraded while its tasks run on and somebody still sees them end.
 *
 *     guard --runtime-dir DIR [--containment auto|cgroup2|freezer|session] [--idle-exit-ms N]
 */
import { chmodSync, existsSync, rmSync, statSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { parseArgs } from 'node:util';
import { type Clock, systemClock } from '@muster/common/clock';
import { messageOf } from '@muster/common/errors';
import type { Logger } from '@muster/common/log';
import { takeFileLock } from '../dataDir/fileLock.ts';
import { boottimeMs } from '../probes/boot.ts';
import { realPaths } from '../probes/realPaths.ts';
import { DriverError } from '../taskFacts/errors.ts';
import { Ballast } from './ballast.ts';
import { type ContainmentMode, chooseContainment, containmentModes } from './containment.ts';
import { LeaseFiles } from './leaseFiles.ts';
import { requireRunnable } from './program.ts';
import { exitAlreadyGuarded, guardSocketPath } from './protocol.ts';
import { TaskLinks } from './records.ts';
import { serve } from './server.ts';
import { Supervisor } from './supervisor.ts';

interface GuardOptions {
  readonly runtimeDir: string;
  readonly containment: ContainmentMode;
  /** Without clients and running tasks for this long, the guard is not needed and goes. */
  readonly idleExitMs: number;
}

function readOptions(argv: string[]): GuardOptions {
  const { values } = parseArgs({
    args: argv,
    options: {
      'runtime-dir': { type: 'string' },
      containment: { type: 'string', default: 'auto' },
      'idle-exit-ms': { type: 'string', default: '60000' },
    },
  });
  const runtimeDir = values['runtime-dir'];
  if (runtimeDir === undefined || !isAbsolute(runtimeDir))
    throw new Error('--runtime-dir takes an absolute path');
  const containment = containmentModes.find((mode) => mode === values.containment);
  if (containment === undefined) throw new Error(`--containment takes one of ${containmentModes.join(', ')}`);
  const idleExitMs = Number(values['idle-exit-ms']);
  if (!(idleExitMs >= 0)) throw new Error('--idle-exit-ms takes milliseconds');
  return { runtimeDir, containment, idleExitMs };
}

/**
 * Everyone who may write there may start programs as us. The directory is made by whoever starts the guard: one that
 * was removed in the meantime must not come back.
 */
function requirePrivate(runtimeDir: string): void {
  const stat = statSync(runtimeDir, { throwIfNoEntry: false });
  if (stat === undefined) throw new Error(`the runtime directory ${runtimeDir} does not exist: create it`);
  const { uid, mode } = stat;
  if (uid !== process.geteuid?.()) throw new Error(`${runtimeDir} belongs to another user (uid ${uid})`);
  if ((mode & 0o077) !== 0) chmodSync(runtimeDir, 0o700);
}

async function main(): Promise<void> {
  const { runtimeDir, containment: mode, idleExitMs } = readOptions(process.argv.slice(2));
  const socketPath = guardSocketPath(runtimeDir);
  requirePrivate(runtimeDir);
  const lock = takeFileLock(join(runtimeDir, 'guard.lock'));
  if (lock === null) process.exit(exitAlreadyGuarded);

  const log = stderrLogger(systemClock);
  // Every guard of this directory must find the groups of the one before; a hash of the path would cost 3 MB of OpenSSL.
  const { dev, ino } = statSync(runtimeDir);
  const instance = `${dev}-${ino}`;
  const containment = chooseContainment(mode, instance, log);
  const supervisor = new Supervisor({
    containment,
    links: new TaskLinks(runtimeDir),
    leases: new LeaseFiles(runtimeDir),
    ballast: new Ballast(join(runtimeDir, 'ballast'), log),
    clock: systemClock,
    boottimeMs,
    log,
  });
  const server = await serve(socketPath, {
    missing: async ({ paths }) => paths.filter((path) => !existsSync(path)),
    realPaths: ({ paths }) => realPaths(paths),
    prepare: async (launch) => {
      requireRunnable(launch);
      await makeTaskDirectories(launch.directories ?? [], launch.umask ?? null);
      return null;
    },
    start: (launch) => supervisor.start(launch, null),
    startLeased: ({ lease, ...launch }) => supervisor.start(launch, lease),
    recover: (location) => supervisor.recover(location),
    wait: (location) => supervisor.wait(location),
    signal: (request) => supervisor.signal(request),
    stop: (request) => supervisor.stop(request),
    renew: (renewal) => supervisor.renew(renewal),
    forget: (location) => supervisor.forget(location),
    remove: (location) => supervisor.remove(location),
    outputLimits: (limits) => supervisor.outputLimits(limits),
    list: () => supervisor.list(),
  });
  log.info({ pid: process.pid, runtimeDir, containment: containment.mode }, 'guarding');

  function exit(why: string): void {
    log.info({ why }, 'leaving');
    if (server.isReachable()) rmSync(socketPath, { force: true });
    server.close();
    containment.close();
    lock?.close();
    process.exit(0);
  }

  // A terminal that closes or gets a Ctrl-C means the agent, never the tasks.
  process.on('SIGHUP', () => {});
  process.on('SIGINT', () => {});
  process.on('SIGTERM', () => {
    if (!supervisor.isBusy) exit('asked to');
    else
      log.warn(
        {},
        'asked to stop while tasks run: keeps running, because they would lose their exit status and their fence',
      );
  });

  let neededAtMs = systemClock.monotonicMs();
  setInterval(
    () => {
      const nowMs = systemClock.monotonicMs();
      if (supervisor.isBusy) neededAtMs = nowMs;
      else if (!server.isReachable()) exit('the runtime directory is gone');
      else if (server.clientCount > 0) neededAtMs = nowMs;
      else if (nowMs - neededAtMs >= idleExitMs) exit('idle');
    },
    Math.max(50, Math.min(5000, idleExitMs / 4)),
  );
}

main().catch((error: unknown) => {
  process.stderr.write(`guard: ${messageOf(error)}\n`);
  process.exit(1);
});

/**
 * Makes those that are missing, parents included, as this process' user: tasks run as that.
 * @param paths absolute
 * @param umask of the task: beside that of this process, so that nothing is more open than either wants; null: none
 * @throws {DriverError} `disk_full`, or `unknown` with the remedy, when one cannot be made
 */
async function makeTaskDirectories(paths: readonly string[], umask: number | null): Promise<void> {
  for (const path of paths) {
    try {
      await mkdir(path, { recursive: true, mode: 0o777 & ~(umask ?? 0) });
    } catch (error) {
      throw refused(path, error as NodeJS.ErrnoException);
    }
  }
}

function refused(path: string, error: NodeJS.ErrnoException): DriverError {
  const options = { cause: error };
  if (error.code === 'ENOSPC' || error.code === 'EDQUOT')
    return new DriverError('disk_full', `no space left for ${path}: free some on this node`, options);
  const remedy = `create it on this node for the user ${userName()}, or set checkpoint.dir to a directory where that user may write`;
  return new DriverError(
    'unknown',
    `the checkpoint directory ${path} is missing and cannot be created on this node (${reasonOf(error)}): ${remedy}`,
    options,
  );
}

function reasonOf(error: NodeJS.ErrnoException): string {
  switch (error.code) {
    case 'EACCES':
    case 'EPERM':
      return 'permission denied';
    case 'EROFS':
      return 'read-only file system';
    case 'EEXIST':
    case 'ENOTDIR':
      return 'a file is in its place';
    default:
      return messageOf(error);
  }
}

/** A number where the node has no name for it. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return `${process.getuid?.() ?? 'of the agent'}`;
  }
}

/** JSON lines on stderr, written at once: a guard has little to say, and it must be there when the guard is killed. */
function stderrLogger(clock: Clock): Logger {
  const write = (level: string) => (fields: object, message: string) => {
    const line = { time: new Date(clock.wallMs()).toISOString(), level, message, ...fields };
    process.stderr.write(`${JSON.stringify(line, errorsAsText)}\n`);
  };
  return { info: write('info'), warn: write('warn'), error: write('error'), debug: () => {} };
}

function errorsAsText(_key: string, value: unknown): unknown {
  return value instanceof Error ? messageOf(value) : value;
}
