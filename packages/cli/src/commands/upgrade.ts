import { existsSync, lstatSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { agentDefaults } from '@muster/agent/options';
import { tooOld } from '@muster/common/version';
import { Command } from 'commander';
import { withAgentFlags } from '../agentFlags.ts';
import { parseConfig } from '../config/configFile.ts';
import { type ConnectionFlags, withConnection } from '../connection.ts';
import type { CommandModule, Context } from '../context.ts';
import { CliError, usageError } from '../errors.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { durationMs, pageListen, wholeNumberFlag } from '../flags.ts';
import { pointLink } from '../install/machine.ts';
import { currentLink, type ReleaseTree, readReleaseTree, releasesDir } from '../install/releaseTree.ts';
import { configPathOf, machineRoles, mainUnitPath, roleFacts } from '../install/roles.ts';
import { requireRoot } from '../install/steps.ts';
import { abortOnStopRequest } from '../io.ts';
import { contextKey, hostsOf } from '../remote/hostsFile.ts';
import { openArchive } from '../remote/releaseArchive.ts';
import { openRemoteShell } from '../remote/remoteShell.ts';
import { withSession } from '../session.ts';
import { schemaOfStore } from '../storeFiles.ts';
import { unpackArchive } from '../upgrade/archive.ts';
import { upgradingAlone } from '../upgrade/exclusive.ts';
import { programOf } from '../upgrade/health.ts';
import { openServices } from '../upgrade/services.ts';
import { goBack, type ServiceMachine, switchRelease } from '../upgrade/switchRelease.ts';
import { type BegunUpgrade, isNoted, notedUpgrade, unfinishedUpgrade } from '../upgrade/unfinished.ts';
import { nodeHosts, upgradeInWaves } from '../upgrade/upgradeNodes.ts';

interface UpgradeFlags extends ConnectionFlags {
  readonly wait?: number;
  readonly root?: string;
  readonly nodes?: string;
  readonly wave?: number;
}

const waitDefaultMs = 30_000;
const waveDefault = 4;

export const command: CommandModule = {
  define(sub) {
    sub
      .argument('<file>', 'archive of a release: muster-VERSION-linux-ARCH.tar.gz')
      .option(
        '--wait <duration>',
        'how long each daemon may take to become healthy before the old release runs again; default: 30s',
        durationMs('--wait', 1_000, 24 * 3_600_000),
      )
      .option(
        '--nodes <names>',
        'upgrade machines of the cluster through ssh, after the coordinator: all that `muster node add` has recorded, or names with ' +
          'commas between them, such as gpu-1,gpu-2=root@10.0.0.8',
      )
      .option(
        '--wave <count>',
        `how many of them at a time; the wave in which one fails is the last; default ${waveDefault}`,
        wholeNumberFlag('--wave', 1, 1_000),
      )
      .option('--root <dir>', 'upgrade the system image in this directory; nothing is restarted')
      .addHelpText(
        'after',
        '\nFor machines that `muster install` made from an archive. Restarts the coordinator, then the agent; tasks keep running. When ' +
          'a daemon\ndoes not become healthy, the old release and its store are put back. It stays beside the new one until the next upgrade.',
      );
    withConnection(sub);
  },
  run: upgrade,
};

async function upgrade(context: Context, file: string, flags: UpgradeFlags): Promise<ExitCode> {
  if (flags.nodes !== undefined) return upgradeCluster(context, file, flags.nodes, flags);
  if (flags.wave !== undefined) throw usageError('--wave is for --nodes: this call upgrades one machine');
  return upgradeMachine(context, file, flags);
}

async function upgradeMachine(context: Context, file: string, flags: UpgradeFlags): Promise<ExitCode> {
  const { environment, io, clock } = context;
  const root = flags.root === undefined ? '/' : resolve(environment.workingDir, flags.root);
  requireRoot(environment, 'upgrade', false);
  requireArchive(file, root, environment.programName);
  const releases = join(root, releasesDir);
  const holder = {
    who: whoCalls(environment.variables),
    sinceMs: clock.wallMs(),
    pid: process.pid,
    file: basename(file),
  };
  // A closed terminal or a lost ssh connection does not leave the machine half-way.
  const dispose = io.onStopRequest(() => {});
  try {
    return await upgradingAlone(join(root, '/run/muster-upgrade'), holder, async () => {
      const current = readlinkSync(join(root, currentLink));
      const unfinished = unfinishedUpgrade(releases, current);
      const old = readReleaseTree(join(releases, unfinished?.from ?? current));
      const path = resolve(environment.workingDir, file);
      const { tree: fresh, folder, isNew } = await unpackArchive(path, releases, process.arch);
      if (unfinished === null && fresh.top === old.top) {
        // Killed before the link was changed, or after it was put back: the coordinator may be stopped.
        const noted = root === '/' ? notedUpgrade(releases) : null;
        if (noted !== null) return await restartCurrent(old, noted, flags, context);
        await io.stderr.write(`Nothing to change: ${fresh.version} is the current release.\n`);
        return exitCodes.ok;
      }
      try {
        if (unfinished !== null) {
          if (folder !== unfinished.from && folder !== unfinished.to)
            throw otherUnfinished(unfinished, environment.programName);
          const { from, to } = unfinished;
          await io.stderr.write(`the upgrade from ${from} to ${to} was cut off\n`).catch(() => {});
          if (folder === unfinished.from) return await finishGoingBack(old, unfinished, flags, context);
        }
        const isGuardNew = await switchTo(fresh, old, unfinished, root, flags, context);
        prune(releases, [basename(old.top), folder]);
        await io.stdout.write(`upgraded from ${old.version} to ${fresh.version}\n`);
        if (!isGuardNew) await io.stderr.write(guardHint());
        return exitCodes.ok;
      } catch (error) {
        const isUsed = readlinkSync(join(root, currentLink)) === folder || isRunning(fresh.top);
        if (isNew && !isUsed) rmSync(fresh.top, { recursive: true, force: true });
        throw error;
      }
    });
  } finally {
    dispose();
  }
}

/** For a second admin, who would find only root in the list of processes. */
function whoCalls(variables: Context['environment']['variables']): string {
  const [address = ''] = (variables['SSH_CONNECTION'] ?? '').split(' ');
  return `${variables['SUDO_USER'] ?? 'root'}${address === '' ? '' : ` from ${address}`}`;
}

/** @returns whether the guard has the new release @throws {CliError} when this machine stays with the old one */
async function switchTo(
  fresh: ReleaseTree,
  old: ReleaseTree,
  unfinished: BegunUpgrade | null,
  root: string,
  flags: UpgradeFlags,
  context: Context,
): Promise<boolean> {
  if (tooOld(old.version, fresh.version) !== null) throw tooFar(old, fresh);
  if (fresh.storeSchema < old.storeSchema && isCoordinator(root)) {
    const schema = (await schemaOfStore(join(root, roleFacts.coordinator.dataDir))) ?? old.storeSchema;
    if (fresh.storeSchema < schema) throw olderStore(old, fresh, schema);
  }
  if (root === '/') {
    const services = await servicesOf(old, fresh, unfinished, flags, context);
    return (await switchRelease(installedRoles(), services)).isGuardNew;
  }
  pointLink(join(root, currentLink), basename(fresh.top));
  return true;
}

/** The coordinator first, then the machines through ssh. */
async function upgradeCluster(
  context: Context,
  file: string,
  typed: string,
  flags: UpgradeFlags,
): Promise<ExitCode> {
  const { environment, io } = context;
  const hosts = nodeHosts(typed, hostsOf(contextKey(flags, environment), environment));
  const archive = await openArchive(file, environment);
  const stop = abortOnStopRequest(io);
  try {
    const versionNow = () => withSession(context, flags, async ({ api }) => (await api.getCluster()).version);
    const isHere = environment.uid === 0 && isCoordinator('/');
    // One that was cut off may have left no coordinator to be asked.
    if (isHere && isNoted(releasesDir)) await upgradeMachine(context, file, flags);
    const version = await versionNow();
    if (version !== archive.version) {
      if (!isHere) throw coordinatorFirst(version, archive.version, file, environment.programName);
      await upgradeMachine(context, file, flags);
    }
    const isDone = await withSession(context, flags, ({ api }) =>
      upgradeInWaves(
        { hosts, archive, wave: flags.wave ?? waveDefault, waitMs: flags.wait ?? waitDefaultMs },
        {
          openShell: (target) => openRemoteShell(target, environment, stop.signal),
          listNodes: () => api.listNodes(),
          print: (line) => io.stdout.write(line),
          signal: stop.signal,
        },
      ),
    );
    return isDone ? exitCodes.ok : exitCodes.interrupted;
  } finally {
    stop.dispose();
    archive.close();
  }
}

function coordinatorFirst(version: string, wanted: string, file: string, programName: string): CliError {
  return new CliError(`the coordinator has version ${version}, and it is upgraded before its nodes`, {
    hints: [`On its machine, as root, for ${wanted}: ${programName} upgrade ${basename(file)}`],
  });
}

/** @throws {CliError} with the command that upgrades this machine, or this file */
function requireArchive(file: string, root: string, programName: string): void {
  const isFromArchive = lstatSync(join(root, currentLink), { throwIfNoEntry: false })?.isSymbolicLink();
  const isDeb = file.endsWith('.deb');
  if (isFromArchive === true) {
    if (!isDeb) return;
    throw usageError(
      'Muster on this machine is from an archive, and a package would be installed beside it',
      `Upgrade with the archive: ${programName} upgrade muster-VERSION-linux-${process.arch}.tar.gz`,
    );
  }
  if (existsSync(join(root, '/usr/lib/muster/release.json')))
    throw new CliError("Muster on this machine is Debian's package, which apt upgrades; tasks keep running", {
      hints: [`apt install ${isDeb ? resolve(file) : './muster_VERSION_ARCH.deb'}`],
    });
  throw new CliError('there is no release on this machine that `muster install` has made from an archive', {
    hints: [
      'A checkout: git pull, npm run setup, then muster install ROLE and systemctl restart muster-ROLE',
    ],
  });
}

function isCoordinator(root: string): boolean {
  return existsSync(join(root, mainUnitPath('coordinator')));
}

/** Agents, clients and coordinators of these two would refuse each other. */
function tooFar(old: ReleaseTree, fresh: ReleaseTree): CliError {
  return new CliError(
    `from ${old.version} to ${fresh.version} is more than one minor version: nodes that still have ${old.version} would be refused`,
    { hints: [`Upgrade the machines of this cluster one minor version at a time, ${fresh.version} last.`] },
  );
}

function olderStore(old: ReleaseTree, fresh: ReleaseTree, schema: number): CliError {
  return new CliError(
    `release ${fresh.version} cannot read the store of ${old.version} (schema ${schema}; it knows up to ${fresh.storeSchema})`,
    {
      hints: [
        `Stop the coordinator, restore a backup from before with the program of ${fresh.version}, and call this again: ` +
          'see Upgrading in docs/operations.md',
      ],
    },
  );
}

function servicesOf(
  old: ReleaseTree,
  fresh: ReleaseTree,
  unfinished: BegunUpgrade | null,
  flags: UpgradeFlags,
  context: Context,
): Promise<ServiceMachine> {
  const waitMs = flags.wait ?? waitDefaultMs;
  const roles = installedRoles();
  return openServices({ roles, old, fresh, unfinished, waitMs, agentPage: agentPage(), context });
}

/** The archive of the release from before was given: its user has had enough of the other one. */
async function finishGoingBack(
  old: ReleaseTree,
  unfinished: BegunUpgrade,
  flags: UpgradeFlags,
  context: Context,
): Promise<ExitCode> {
  const left = readReleaseTree(join(releasesDir, unfinished.to));
  const services = await servicesOf(old, left, unfinished, flags, context);
  await goBack(installedRoles(), services, services.store !== null);
  await context.io.stdout.write(`went back from ${left.version} to ${old.version}\n`);
  return exitCodes.ok;
}

/** The link and the store are those of the current release: its daemons are started, and the note and the reserved space removed. */
async function restartCurrent(
  current: ReleaseTree,
  noted: BegunUpgrade,
  flags: UpgradeFlags,
  context: Context,
): Promise<ExitCode> {
  // The folder of the other release may be removed already, and nothing is needed from it.
  const services = await servicesOf(current, current, noted, flags, context);
  await goBack(installedRoles(), services, false);
  await context.io.stdout.write(`went back from ${noted.to} to ${current.version}\n`);
  return exitCodes.ok;
}

function otherUnfinished({ from, to }: BegunUpgrade, programName: string): CliError {
  return new CliError(
    `the upgrade of this machine from ${from} to ${to} was cut off, and is finished or taken back first`,
    {
      hints: [from, to].map((folder) => {
        const archive = `muster-${folder.replace(/\+.*/, '')}-linux-${process.arch}.tar.gz`;
        return `${folder === to ? 'To finish it' : 'To go back'}: ${programName} upgrade ${archive}`;
      }),
    },
  );
}

const installedRoles = () => machineRoles.filter((role) => existsSync(mainUnitPath(role)));

function agentPage(): string | null {
  const path = configPathOf('agent');
  if (!existsSync(path)) return null;
  const sub = new Command('agent');
  withAgentFlags(sub);
  const parsed = parseConfig(readFileSync(path, 'utf8'), sub);
  const typed = parsed.ok ? parsed.settings.find(({ key }) => key === 'metrics')?.values[0] : undefined;
  return pageListen(typed, agentDefaults.metricsListen ?? 'off');
}

/** Keeps the current release, the one before it, and what still runs, such as a guard with tasks. */
function prune(releases: string, kept: readonly string[]): void {
  for (const name of readdirSync(releases)) {
    const place = join(releases, name);
    const isRelease = existsSync(join(place, 'lib/muster/release.json')) && name !== 'current';
    if (isRelease && !kept.includes(name) && !isRunning(place))
      rmSync(place, { recursive: true, force: true });
  }
}

function isRunning(place: string): boolean {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .some((pid) => programOf(Number(pid))?.startsWith(`${place}/`) === true);
}

/** It may have one from before the release that ran until now. */
function guardHint(): string {
  return (
    'Tasks run, so their guard keeps its release. It takes the new one at its next start, once none runs:\n' +
    '  systemctl restart muster-guard\n'
  );
}
