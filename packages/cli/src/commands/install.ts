import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { toLabel } from '@muster/common/spec/forms';
import { Command } from 'commander';
import { withAgentFlags } from '../agentFlags.ts';
import { configKeys, parseConfig, type Setting } from '../config/configFile.ts';
import { newConfigText, withSettings } from '../config/configText.ts';
import { hostOf, isLoopback, readToken } from '../connection.ts';
import type { CommandModule, Context } from '../context.ts';
import { withCoordinatorFlags } from '../coordinatorFlags.ts';
import { CliError, failureOf, usageError } from '../errors.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { collect } from '../flags.ts';
import { joinedIn, joinTokenSource } from '../install/joinToken.ts';
import { openMachine, type TargetMachine } from '../install/machine.ts';
import { type ReleaseFiles, releaseFiles } from '../install/release.ts';
import { releaseFolder, releasesDir } from '../install/releaseTree.ts';
import {
  configDir,
  configPathOf,
  derivedForAgent,
  installSteps,
  joinTokenPath,
  type MachineRole,
  machineRoles,
  mainUnitPath,
  releaseSteps,
  roleFacts,
  usualSettings,
} from '../install/roles.ts';
import { carryOut, requireRoot, rolesOf } from '../install/steps.ts';
import { withSession } from '../session.ts';

interface InstallFlags {
  readonly set?: readonly string[];
  readonly listen?: string;
  readonly advertise?: readonly string[];
  readonly name?: string;
  readonly coordinator?: string;
  readonly joinTokenFile?: string;
  readonly allow?: readonly string[];
  readonly root?: string;
  readonly dryRun?: boolean;
  readonly user?: boolean;
  /** The process that keeps the agent of a user running. */
  readonly inBackground?: boolean;
}

type Settings = ReadonlyMap<string, readonly string[]>;

export const command: CommandModule = {
  define(sub) {
    sub
      .argument('<role...>', `${machineRoles.join(', ')}, or both`)
      .option(
        '--set <key=value>',
        'setting of the configuration file; may be repeated; coordinator.KEY or agent.KEY where both have it',
        collect,
      )
      .option('--listen <host:port>', 'address that the coordinator serves on; default: loopback only')
      .option(
        '--advertise <host>',
        'name or address at which other machines reach the coordinator; may be repeated',
        collect,
      )
      .option('--name <node>', 'name of this node; default: the host name')
      .option(
        '--coordinator <host:port>',
        'coordinator that the agent joins; default: the one installed on this machine',
      )
      .option(
        '--join-token-file <file>',
        'file with a join token for the agent; - is standard input; default: made here, if the coordinator is on this machine',
      )
      .option(
        '--allow <network>',
        'network that the units let in and out, such as 10.0.0.0/8, or any; may be repeated; default: this machine only',
        collect,
      )
      .option('--root <dir>', 'install into the system image in this directory; nothing is started')
      .option('--user', 'without root: the agent runs as you, with settings and data in your home')
      .addOption(sub.createOption('--in-background').hideHelp())
      .option('--dry-run', 'print each change, and change nothing')
      .addHelpText(
        'after',
        `\nWrites ${configDir}/ROLE.yaml and the units of systemd, and starts them. Settings that are there stay. Run it again ` +
          'after a change\nof the settings, or of this program; what needs no change is left alone.',
      );
  },
  run: install,
};

/** What is read from the machine or typed, for one role. */
interface Plan {
  readonly role: MachineRole;
  readonly config: string;
  readonly settings: readonly Setting[];
}

async function install(context: Context, words: readonly string[], flags: InstallFlags): Promise<ExitCode> {
  const { environment } = context;
  const root = flags.root === undefined ? '/' : resolve(environment.workingDir, flags.root);
  const chosen = rolesOf(words);
  if (flags.user === true) return installForUser(context, chosen, flags);
  requireRoot(environment, 'install', flags.dryRun === true);
  const release = releaseFiles(environment.programDir);
  const machine = openMachine(root);
  const typed = settingsOf(chosen, flags);
  // All of them are checked before anything is changed.
  const plans = chosen.map((role) => planOf(role, chosen, typed.get(role) ?? new Map(), root, context));
  for (const plan of plans) requireNetwork(plan, flags, root);
  const typedToken = flags.joinTokenFile === undefined ? null : readTyped(flags.joinTokenFile, context);
  let changes = await putRelease(release, root, machine, context, flags);
  for (const plan of plans) {
    const joinToken =
      plan.role === 'agent' ? await joinTokenFor(plan, typedToken, root, flags, context) : null;
    changes += await carryOut(
      stepsOf(plan, release, joinToken, flags),
      machine,
      context,
      flags.dryRun === true,
    );
  }
  await report(context, chosen, changes, flags);
  return exitCodes.ok;
}

async function installForUser(
  context: Context,
  chosen: readonly MachineRole[],
  flags: InstallFlags,
): Promise<ExitCode> {
  if (chosen.join() !== 'agent') throw usageError('--user is for an agent: muster install agent --user');
  const { root, dryRun, allow } = flags;
  if (root !== undefined || dryRun !== undefined || allow !== undefined)
    throw usageError('--root, --dry-run and --allow are for services of the system, and exclude --user');
  const { installUserAgent, superviseUserAgent } = await import('../userAgent/userAgent.ts');
  if (flags.inBackground === true) return superviseUserAgent(context);
  const typed = settingsOf(chosen, flags).get('agent') ?? new Map();
  const token = flags.joinTokenFile === undefined ? null : readTyped(flags.joinTokenFile, context);
  return installUserAgent(context, typed, token);
}

/** Services run the copy, and people call it: the folder that the archive was unpacked to may go. */
async function putRelease(
  { tree }: ReleaseFiles,
  root: string,
  machine: TargetMachine,
  context: Context,
  flags: InstallFlags,
): Promise<number> {
  if (tree === null) return 0;
  const releases = join(root, releasesDir);
  if (existsSync(join(releases, 'package.json')))
    throw new CliError(`${releasesDir} is a checkout, and releases are kept there`, {
      hints: [`Move the checkout: mv ${releasesDir} /srv/muster; then install the services again.`],
    });
  const steps = releaseSteps(tree, releaseFolder(tree, releases));
  return carryOut(steps, machine, context, flags.dryRun === true);
}

function stepsOf(
  { role, config, settings }: Plan,
  release: ReleaseFiles,
  joinToken: string | null,
  flags: InstallFlags,
) {
  const valuesOf = (key: string) => settings.find((setting) => setting.key === key)?.values ?? [];
  const places = [...valuesOf('checkpoint_root'), ...valuesOf('hpc_job_dir')];
  const readsKernelLog = valuesOf('kernel_log')[0] === '-';
  return installSteps({
    role,
    config,
    ...release,
    derived: role === 'agent' ? derivedForAgent(places, !readsKernelLog || existsSync('/dev/kmsg')) : [],
    allow: flags.allow ?? null,
    joinToken,
    isImage: flags.root !== undefined,
  });
}

// ---- Settings

function commandOf(role: MachineRole): Command {
  const sub = new Command(role);
  if (role === 'coordinator') withCoordinatorFlags(sub);
  else withAgentFlags(sub);
  return sub;
}

/** What was typed, by role. @throws {CliError} for a key that no chosen role has, or that several have */
function settingsOf(chosen: readonly MachineRole[], flags: InstallFlags): ReadonlyMap<MachineRole, Settings> {
  const byRole = new Map(chosen.map((role) => [role, new Map<string, readonly string[]>()]));
  const put = (role: MachineRole, key: string, values: readonly string[] | undefined, flag: string) => {
    if (values === undefined) return;
    const settings = byRole.get(role);
    if (settings === undefined)
      throw usageError(`${flag} is a setting of the ${role}, which is not installed`);
    settings.set(key, values);
  };
  const one = (value: string | undefined) => (value === undefined ? undefined : [value]);
  put('coordinator', 'listen', one(flags.listen), '--listen');
  put('coordinator', 'advertise', flags.advertise, '--advertise');
  put('agent', 'name', one(flags.name), '--name');
  put('agent', 'coordinator', one(flags.coordinator), '--coordinator');
  for (const text of flags.set ?? []) {
    const [, named, key = '', value = ''] = /^(?:(coordinator|agent)\.)?([^=]+)=(.*)$/s.exec(text) ?? [];
    if (key === '') throw usageError(`--set takes KEY=VALUE, such as log_level=debug; got "${text}"`);
    const meant = chosen.filter((role) =>
      named === undefined ? configKeys(commandOf(role)).has(key) : role === named,
    );
    const [role] = meant;
    if (meant.length > 1)
      throw usageError(
        `${key} is a key of both roles`,
        `Say which: --set ${meant.join(`.${key}=… or --set `)}.${key}=…`,
      );
    // An unknown key is refused with a suggestion, like one in the file.
    const target = role ?? chosen[0] ?? 'agent';
    put(target, key, [...(byRole.get(target)?.get(key) ?? []), value], '--set');
  }
  return byRole;
}

/** @throws {CliError} with every problem of the settings */
function planOf(
  role: MachineRole,
  chosen: readonly MachineRole[],
  typed: Settings,
  root: string,
  context: Context,
): Plan {
  const sub = commandOf(role);
  const path = configPathOf(role);
  const existing = existsSync(join(root, path)) ? readFileSync(join(root, path), 'utf8') : null;
  const config =
    existing === null
      ? newConfigText(sub, introductionOf(role), firstSettings(role, chosen, typed, root, context))
      : withSettings(existing, typed);
  const parsed = parseConfig(config, sub);
  if (!parsed.ok) throw usageError(`${path} would not be valid`, ...parsed.problems);
  return { role, config, settings: parsed.settings };
}

function introductionOf(role: MachineRole): readonly string[] {
  return [
    `Settings of the Muster ${role}: the flags of \`muster ${role} --help\`, with _ for -. A flag that may be repeated takes`,
    `a list: [a, b]. After a change, as root: muster install ${role}`,
  ];
}

function firstSettings(
  role: MachineRole,
  chosen: readonly MachineRole[],
  typed: Settings,
  root: string,
  { environment }: Context,
): Settings {
  const usual = new Map([...usualSettings[role], ...typed]);
  if (role === 'coordinator') return usual;
  if (!usual.has('name')) usual.set('name', [toLabel(environment.hostname) || 'node']);
  if (usual.has('coordinator')) return usual;
  const isHere = chosen.includes('coordinator') || existsSync(join(root, mainUnitPath('coordinator')));
  if (!isHere)
    throw usageError(
      'which coordinator does the agent join?',
      'Name it: --coordinator HOST:PORT, with a join token: --join-token-file FILE',
    );
  return usual.set('coordinator', ['127.0.0.1:7070']);
}

/** The units let in and out only what is allowed; a daemon that nobody can reach would be a riddle. */
function requireNetwork({ role, settings }: Plan, { allow }: InstallFlags, root: string): void {
  const key = role === 'coordinator' ? 'listen' : 'coordinator';
  const [address = '127.0.0.1:0'] = settings.find((setting) => setting.key === key)?.values ?? [];
  const host = hostOf(address, { portMin: 0 });
  const networkFile = join(root, `${mainUnitPath(role)}.d/network.conf`);
  if (allow !== undefined || host === null || isLoopback(host) || existsSync(networkFile)) return;
  throw usageError(
    `${key} is ${address}, and the unit lets only this machine in and out`,
    'Name the networks of the cluster: --allow 10.0.0.0/8, or --allow any',
  );
}

// ---- Joining

function readTyped(path: string, { environment }: Context): string {
  return readToken(path === '-' ? '/dev/stdin' : resolve(environment.workingDir, path));
}

/** @returns null: the agent has joined before, or finds its token where its settings say */
async function joinTokenFor(
  { settings }: Plan,
  typed: string | null,
  root: string,
  flags: InstallFlags,
  context: Context,
): Promise<string | null> {
  if (typed !== null) return `${typed}\n`;
  const joined = joinedIn(join(root, roleFacts.agent.dataDir));
  const own = roleFacts.coordinator.dataDir;
  const source = joinTokenSource({
    joined,
    isImage: flags.root !== undefined,
    hasCoordinator: existsSync(join(own, 'connection.json')),
    hasTokenFile: existsSync(join(root, joinTokenPath)),
  });
  if (source === 'own') return null;
  if (flags.dryRun === true) return '(a join token)\n';
  const name = settings.find(({ key }) => key === 'name')?.values[0] ?? '';
  if (source === 'missing') {
    throw new CliError('the agent has no join token', {
      hints: [`On the coordinator: muster token create ${name}; then here: --join-token-file FILE`],
    });
  }
  try {
    const { token } = await withSession(context, { data: own }, ({ api }) =>
      api.createJoinToken(name, false),
    );
    return `${token}\n`;
  } catch (error) {
    // The answer to its join was lost: its credential is good.
    if (joined === false && failureOf(error).code === 'already_exists') return null;
    throw error;
  }
}

async function report(
  { io, environment }: Context,
  chosen: readonly MachineRole[],
  changes: number,
  { dryRun, root }: InstallFlags,
): Promise<void> {
  if (changes === 0) return io.stderr.write('Nothing to change.\n');
  if (dryRun === true) return io.stderr.write('Nothing was changed: --dry-run.\n');
  if (root !== undefined) return;
  const next = chosen.includes('agent') && chosen.includes('coordinator') ? 'nodes' : 'doctor';
  await io.stderr.write(`Installed. See: ${environment.programName} ${next}\n`);
}
