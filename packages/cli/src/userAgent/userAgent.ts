/**
 * The agent of a user who is not root: settings, data and a unit in their home. Where systemd keeps nothing running for them after
 * they have logged out, a process of its own does, as it does for `muster up --detach`.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { takeFileLock } from '@muster/agent/dataDir/fileLock';
import { allProcesses, isRunning } from '@muster/agent/fence/processes';
import { whenAborted } from '@muster/common/async';
import { makeDirectories, writeFileDurably } from '@muster/common/files';
import { toLabel } from '@muster/common/spec/forms';
import { Command } from 'commander';
import { hasJoined, withAgentFlags } from '../agentFlags.ts';
import { parseConfig } from '../config/configFile.ts';
import { newConfigText, withSettings } from '../config/configText.ts';
import type { Context } from '../context.ts';
import type { ProgramEnvironment } from '../environment.ts';
import { CliError, usageError } from '../errors.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { endContainers, runningTasks } from '../install/runningTasks.ts';
import { abortOnStopRequest } from '../io.ts';
import { count } from '../output/text.ts';
import { requireConsent } from '../query.ts';
import { upInBackground, upLogPath } from '../supervisor/background.ts';
import { superviseChild } from '../supervisor/child.ts';
import { lockForUp, readUpState, removeUpState, writeUpState } from '../supervisor/upState.ts';

type Settings = ReadonlyMap<string, readonly string[]>;

const unit = 'muster-agent.service';
const stopGraceMs = 10_000;
const pollMs = 100;

function placesIn({ home }: Pick<ProgramEnvironment, 'home'>) {
  return {
    config: join(home, '.config/muster/agent.yaml'),
    joinToken: join(home, '.config/muster/join-token'),
    dataDir: join(home, '.local/share/muster-agent'),
    unit: join(home, '.config/systemd/user', unit),
  };
}

/**
 * @param typed settings, by key
 * @param joinToken null: the agent has joined before
 * @throws {CliError} for settings that are not valid, or an agent that does not start
 */
export async function installUserAgent(
  context: Context,
  typed: Settings,
  joinToken: string | null,
): Promise<ExitCode> {
  const { io, environment } = context;
  const places = placesIn(environment);
  if (joinToken === null && !hasJoined(places.dataDir))
    throw usageError('the agent has no join token', 'Name one: --join-token-file FILE');
  const text = configText(typed, places, environment);
  const before = existsSync(places.config) ? readFileSync(places.config, 'utf8') : null;
  const isKept = keepsRunning(environment);
  if (!isKept) requireOutlivesLogOut(environment);
  makeDirectories(dirname(places.config), 0o700);
  makeDirectories(places.dataDir, 0o711);
  const lock = takeFileLock(join(places.dataDir, 'install.lock'));
  if (lock === null)
    throw new CliError('another call installs the agent of this user at this moment', {
      hints: ['Repeat the command once that one has ended.'],
    });
  try {
    if (text !== before) writeFileDurably(places.config, text, 0o644);
    if (joinToken !== null) writeFileDurably(places.joinToken, `${joinToken}\n`, 0o600);
    // What runs has the earlier settings, release or credential.
    await stopAgent(environment);
    if (isKept) startUnit(places.unit, environment);
    else {
      const code = await upInBackground(context, places.dataDir, [
        'install',
        'agent',
        '--user',
        '--in-background',
      ]);
      if (code !== exitCodes.ok) return code;
    }
    const by = isKept
      ? 'systemd keeps it running'
      : `it runs in the background; its log: ${upLogPath(places.dataDir)}`;
    await io.stderr.write(`Installed for this user: ${by}.\n`);
  } finally {
    rmSync(places.joinToken, { force: true });
    lock.close();
  }
  return exitCodes.ok;
}

/** The process in the background: starts the agent again whenever it ends, until it is asked to stop. */
export async function superviseUserAgent({ io, environment, clock }: Context): Promise<ExitCode> {
  const { config, dataDir } = placesIn(environment);
  const unlock = lockForUp(dataDir, environment.programName);
  const stop = abortOnStopRequest(io);
  writeUpState(dataDir, null);
  const plan = {
    title: 'the agent',
    logPath: join(dataDir, 'agent.log'),
    prepare: async () => ({
      argv: [...environment.programCommand, 'agent', '--config', config],
      variables: environment.variables,
    }),
  };
  const agent = superviseChild(plan, clock, (sentence) => {
    void io.stderr.write(`${sentence}\n`).catch(() => {});
  });
  try {
    await Promise.race([agent.serving, whenAborted(stop.signal)]);
    // It serves nobody; what waits for it wants to know that it runs.
    writeUpState(dataDir, 'agent');
    await whenAborted(stop.signal);
    return exitCodes.ok;
  } finally {
    await agent.stop(stopGraceMs);
    stop.dispose();
    removeUpState(dataDir);
    unlock();
  }
}

/** Ends the agent, its guard and the tasks that still run, with consent. @throws {CliError} */
export async function uninstallUserAgent(
  context: Context,
  { purge, force }: { readonly purge: boolean; readonly force: boolean },
): Promise<ExitCode> {
  const { io, environment } = context;
  const places = placesIn(environment);
  const running = force ? 0 : await runningTasks(places.dataDir);
  const consequences = [
    ...(running > 0 ? [`ends ${count(running, 'running task')}`] : []),
    ...(purge && existsSync(places.dataDir) ? [`removes ${places.dataDir}`] : []),
  ];
  if (!force && consequences.length > 0) {
    const again = `${environment.programName} uninstall agent --user${purge ? ' --purge' : ''} --force`;
    await requireConsent(context, `This ${consequences.join(' and ')}`, again);
  }
  await stopAgent(environment);
  killWhatIsLeft(places.dataDir);
  await endContainers(places.dataDir, places.config, context);
  if (existsSync(places.unit)) {
    systemctl(['disable', '--quiet', unit], environment);
    rmSync(places.unit);
    systemctl(['daemon-reload'], environment);
  }
  const releases = join(environment.home, '.local/share/muster/releases');
  for (const path of [releases, ...(purge ? [places.config, places.dataDir] : [])])
    rmSync(path, { recursive: true, force: true });
  await io.stdout.write(`removed the agent of this user${purge ? ', its settings and its data' : ''}\n`);
  return exitCodes.ok;
}

function configText(
  typed: Settings,
  { config, dataDir, joinToken }: ReturnType<typeof placesIn>,
  { hostname }: ProgramEnvironment,
): string {
  const sub = new Command('agent');
  withAgentFlags(sub);
  const usual: Settings = new Map([
    ['data', [dataDir]],
    ['name', [toLabel(hostname) || 'node']],
    ['join_token_file', [joinToken]],
    ...typed,
  ]);
  const introduction = [
    'Settings of the Muster agent of this user: the flags of `muster agent --help`, with _ for -.',
  ];
  const text = existsSync(config)
    ? withSettings(readFileSync(config, 'utf8'), typed)
    : newConfigText(sub, introduction, usual);
  const parsed = parseConfig(text, sub);
  if (parsed.ok) return text;
  throw usageError(`${config} would not be valid`, ...parsed.problems);
}

/** Whether systemd keeps units of this user running when nobody is logged in; asks for that where it does not yet. */
function keepsRunning(environment: ProgramEnvironment): boolean {
  if (environment.uid === 0 || !existsSync('/run/systemd/system')) return false;
  if (runs('systemctl', ['--user', 'show-environment'], environment) === null) return false;
  const lingers = () =>
    runs('loginctl', ['show-user', String(environment.uid), '--property=Linger'], environment)?.trim() ===
    'Linger=yes';
  return lingers() || (runs('loginctl', ['enable-linger'], environment) !== null && lingers());
}

/** @throws {CliError} where logind ends whatever a session has started when its user logs out */
function requireOutlivesLogOut(environment: ProgramEnvironment): void {
  const isSession = /\/session-[^/]+\.scope/.test(readOf(process.pid, 'cgroup'));
  const manager = ['org.freedesktop.login1', '/org/freedesktop/login1', 'org.freedesktop.login1.Manager'];
  const asked = isSession
    ? runs('busctl', ['get-property', ...manager, 'KillUserProcesses'], environment)
    : null;
  if (asked?.trim() !== 'b true') return;
  throw new CliError('this machine ends what users have started when they log out, and the agent with it', {
    hints: [`As root there, once: loginctl enable-linger ${environment.uid}; then the same command again.`],
  });
}

function startUnit(path: string, environment: ProgramEnvironment): void {
  const { config } = placesIn(environment);
  const text = [
    '# Written by `muster install agent --user`, which replaces it.',
    '[Unit]',
    'Description=Muster agent',
    'StartLimitIntervalSec=0',
    '',
    '[Service]',
    'Type=notify',
    'TimeoutStartSec=5min',
    'WatchdogSec=60',
    `ExecStart=${launcherOf(environment)} agent --config ${config}`,
    'Restart=always',
    'RestartSec=2',
    // Tasks and their guard outlive the agent, and the next one finds them.
    'KillMode=process',
    '',
    '[Install]',
    'WantedBy=default.target',
    '',
  ].join('\n');
  makeDirectories(dirname(path), 0o755);
  writeFileDurably(path, text, 0o644);
  systemctl(['daemon-reload'], environment);
  systemctl(['enable', '--quiet', unit], environment);
  systemctl(['restart', unit], environment);
}

/** By the link to the current release, where there is one. */
function launcherOf({ programDir }: ProgramEnvironment): string {
  const top = join(programDir, '../../..');
  const byLink = join(dirname(top), 'current/lib/muster/muster');
  const inTree = basename(programDir) === 'dist' && existsSync(join(programDir, '../muster'));
  if (inTree && existsSync(byLink)) return byLink;
  if (inTree) return join(programDir, '../muster');
  throw new CliError('--user installs the agent of a release, and this program is a checkout', {
    hints: ['In a checkout: muster agent --data DIR --name NODE --coordinator HOST:PORT'],
  });
}

async function stopAgent(environment: ProgramEnvironment): Promise<void> {
  const places = placesIn(environment);
  if (existsSync(places.unit)) runs('systemctl', ['--user', 'stop', unit], environment);
  const running = readUpState(places.dataDir);
  if (running === null) return;
  kill(running.pid, 'SIGTERM');
  for (let waitedMs = 0; isRunning(running); waitedMs += pollMs) {
    if (waitedMs >= 2 * stopGraceMs)
      throw new CliError(`process ${running.pid}, which keeps the agent running, has not ended`, {
        hints: [`kill -9 ${running.pid}`],
      });
    await sleep(pollMs);
  }
}

/** The guard and tasks outlive their agent; in `muster uninstall` of a system, systemd knows them by their unit. */
function killWhatIsLeft(dataDir: string): void {
  for (const { pid } of allProcesses()) {
    if (pid === process.pid) continue;
    const isGuard = readOf(pid, 'cmdline').includes(`\0--runtime-dir\0${dataDir}/`);
    const isOfTask = readOf(pid, 'environ').includes(`\0MUSTER_TASK_DIRECTORY=${dataDir}/`);
    if (isGuard || isOfTask) kill(pid, 'SIGKILL');
  }
}

/** @returns empty: it has ended, or is another user's */
function readOf(pid: number, file: 'cmdline' | 'environ' | 'cgroup'): string {
  try {
    return `\0${readFileSync(`/proc/${pid}/${file}`, 'utf8')}`;
  } catch {
    return '';
  }
}

function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** systemd finds the manager of a user by this folder, which a shell over ssh may not name. */
function withRuntimeDir({ variables, uid }: ProgramEnvironment): Readonly<Record<string, string>> {
  return { XDG_RUNTIME_DIR: `/run/user/${uid}`, ...variables };
}

/** @returns null: it failed, or is not there */
function runs(program: string, args: readonly string[], environment: ProgramEnvironment): string | null {
  const { status, stdout } = spawnSync(program, args, { env: withRuntimeDir(environment), encoding: 'utf8' });
  return status === 0 ? stdout : null;
}

function systemctl(args: readonly string[], environment: ProgramEnvironment): void {
  if (runs('systemctl', ['--user', ...args], environment) !== null) return;
  throw new CliError(`systemctl --user ${args.join(' ')} failed`, {
    hints: [`Its log: journalctl --user -u ${unit}`],
  });
}
