/**
 * The guard: starts bare tasks for an agent, keeps their exit status and ends them in time. It is a process of its own
 * so that an agent can crash, restart or be upgraded while its tasks run on and somebody still sees them end.
 *
 *     guard --runtime-dir DIR [--containment auto|cgroup2|freezer|session] [--idle-exit-ms N]
 *         [--tasks-unit NAME.service]
 */
import { chmodSync, existsSync, rmSync, statSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { parseArgs } from 'node:util';
import { type Clock, systemClock } from '@muster/common/clock';
import { messageOf } from '@muster/common/errors';
import type { Logger } from '@muster/common/log';
import { logFieldsOf, noLogFacts } from '@muster/common/logFields';
import { keepLogSmall, writesTo } from '@muster/common/logRotation';
import { takeFileLock } from '../dataDir/fileLock.ts';
import { boottimeMs } from '../probes/boot.ts';
import { realPaths } from '../probes/realPaths.ts';
import { Accounts } from './account.ts';
import { asAccount, openAccounts } from './asAccount.ts';
import { Ballast } from './ballast.ts';
import { type ContainmentMode, chooseContainment, containmentModes } from './containment.ts';
import { LeaseFiles } from './leaseFiles.ts';
import { requireRunnable } from './program.ts';
import { exitAlreadyGuarded, guardLockPath, guardSocketPath } from './protocol.ts';
import { TaskLinks } from './records.ts';
import { serve } from './server.ts';
import { Supervisor } from './supervisor.ts';
import { giveFiles, makeAccountDirectories, makeTaskDirectories } from './taskDirectories.ts';
import { startAs } from './taskStart.ts';

interface GuardOptions {
  readonly runtimeDir: string;
  readonly containment: ContainmentMode;
  /** Without clients and running tasks for this long, the guard is not needed and goes. */
  readonly idleExitMs: number;
  /** The unit of systemd whose control group those of tasks are made in, so that limits hold with version 2; null: none. */
  readonly tasksUnit: string | null;
}

function readOptions(argv: string[]): GuardOptions {
  const { values } = parseArgs({
    args: argv,
    options: {
      'runtime-dir': { type: 'string' },
      containment: { type: 'string', default: 'auto' },
      'idle-exit-ms': { type: 'string', default: '60000' },
      'tasks-unit': { type: 'string' },
    },
  });
  const runtimeDir = values['runtime-dir'];
  if (runtimeDir === undefined || !isAbsolute(runtimeDir))
    throw new Error('--runtime-dir takes an absolute path');
  const containment = containmentModes.find((mode) => mode === values.containment);
  if (containment === undefined) throw new Error(`--containment takes one of ${containmentModes.join(', ')}`);
  const idleExitMs = Number(values['idle-exit-ms']);
  if (!(idleExitMs >= 0)) throw new Error('--idle-exit-ms takes milliseconds');
  const tasksUnit = values['tasks-unit'] ?? null;
  if (tasksUnit !== null && !/^[\w.@-]+$/.test(tasksUnit))
    throw new Error('--tasks-unit takes the name of a unit');
  return { runtimeDir, containment, idleExitMs, tasksUnit };
}

/**
 * Everyone who may write there may start programs as us. The directory is made by what starts the guard: one that
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
  const { runtimeDir, containment: mode, idleExitMs, tasksUnit } = readOptions(process.argv.slice(2));
  const socketPath = guardSocketPath(runtimeDir);
  requirePrivate(runtimeDir);
  const lock = takeFileLock(guardLockPath(runtimeDir));
  if (lock === null) process.exit(exitAlreadyGuarded);

  // A log on a full disk: tasks need their guard more than its lines.
  process.stderr.on('error', () => {});
  const log = stderrLogger(systemClock);
  const logPath = join(runtimeDir, 'guard.log');
  // Under a unit the journal keeps the log.
  if (writesTo(process.stderr.fd, logPath))
    keepLogSmall(logPath, (error) => log.error({ error }, 'the log cannot be rotated'));
  // Every guard of this directory must find the groups of the one before; a hash of the path would cost 3 MB of OpenSSL.
  const { dev, ino } = statSync(runtimeDir);
  const instance = `${dev}-${ino}`;
  const containment = chooseContainment({ mode, instance, tasksUnit }, log);
  const accounts = new Accounts(() => systemClock.monotonicMs());
  const supervisor = new Supervisor({
    containment,
    links: new TaskLinks(runtimeDir),
    leases: new LeaseFiles(runtimeDir),
    accounts,
    ballast: new Ballast(join(runtimeDir, 'ballast'), log, () => systemClock.monotonicMs()),
    clock: systemClock,
    boottimeMs,
    log,
  });
  const server = await serve(socketPath, {
    missing: async ({ paths }) => paths.filter((path) => !existsSync(path)),
    realPaths: ({ paths }) => realPaths(paths),
    prepare: async (launch) => {
      requireRunnable({ ...launch, as: null });
      await makeTaskDirectories(launch.directories ?? [], launch.umask ?? null);
      return null;
    },
    prepareAs: async (launch) => {
      const start = await startAs(launch, accounts);
      asAccount(start.as, () => {
        requireRunnable(start);
        makeAccountDirectories(start.as, launch.directories ?? [], start.umask);
      });
      return null;
    },
    start: (launch) => supervisor.start(launch, null),
    startAs: ({ lease, ...launch }) => supervisor.start(launch, lease),
    accountIds: async ({ account, ownFiles, directories }) => {
      const found = await accounts.find(account);
      const { uid, gid, groups, umask } = found;
      if (directories.length > 0) {
        await openAccounts();
        asAccount(found, () => makeAccountDirectories(found, directories, umask));
      }
      giveFiles({ uid, gid, groups }, ownFiles);
      return { uid, gid, groups };
    },
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

/** JSON lines on stderr, written at once: a guard has little to say, and it must be there when the guard is killed. */
function stderrLogger(clock: Clock): Logger {
  const write = (level: string) => (fields: object, message: string) => {
    const about = logFieldsOf(fields, noLogFacts);
    const line = { time: new Date(clock.wallMs()).toISOString(), level, message, ...about };
    process.stderr.write(`${JSON.stringify(line, errorsAsText)}\n`);
  };
  return { info: write('info'), warn: write('warn'), error: write('error'), debug: () => {} };
}

function errorsAsText(_key: string, value: unknown): unknown {
  return value instanceof Error ? messageOf(value) : value;
}
