/** What a machine has once Muster is installed on it: for each role, a list of steps. Pure; `machine.ts` carries them out. */

import { currentLink, type ReleaseTree, releasesDir } from './releaseTree.ts';

export const machineRoles = ['coordinator', 'agent'] as const;
export type MachineRole = (typeof machineRoles)[number];

/** The state that a step leads to. A machine that is in that state already is not changed. */
export type InstallStep =
  | { readonly kind: 'user'; readonly name: string; readonly home: string; readonly description: string }
  | { readonly kind: 'directory'; readonly path: string; readonly mode: number; readonly owner: string }
  | {
      readonly kind: 'file';
      readonly path: string;
      readonly mode: number;
      readonly owner: string;
      readonly text: string;
    }
  /** A symbolic link, which is replaced at once. */
  | { readonly kind: 'link'; readonly path: string; readonly target: string }
  /** A copy of a release that is intact. */
  | { readonly kind: 'release'; readonly path: string; readonly tree: ReleaseTree }
  | { readonly kind: 'absent'; readonly path: string }
  | { readonly kind: 'enabled'; readonly unit: string }
  /** Restarted where it runs and one of these files was changed. */
  | { readonly kind: 'running'; readonly unit: string; readonly restartFor: readonly string[] }
  | { readonly kind: 'stopped'; readonly unit: string };

export const configDir = '/etc/muster';
export const joinTokenPath = `${configDir}/join-token`;
export const systemUser = 'muster';
/** Unix account of the jobs of the built-in user `admin`, whose name few machines have as an account. */
const taskUser = 'muster-tasks';
const taskUserHome = '/var/lib/muster-tasks';
const unitDir = '/etc/systemd/system';

interface RoleFacts {
  /** Lowest first: each is started after those before it, and stopped before them. */
  readonly units: readonly string[];
  readonly dataDir: string;
  readonly dataMode: number;
  readonly owner: string;
}

export const roleFacts: Readonly<Record<MachineRole, RoleFacts>> = {
  coordinator: {
    units: ['muster-coordinator.service'],
    dataDir: '/var/lib/muster',
    dataMode: 0o700,
    owner: systemUser,
  },
  agent: {
    units: ['muster-tasks.service', 'muster-guard.service', 'muster-agent.service'],
    dataDir: '/var/lib/muster-agent',
    // Tasks of other accounts pass through it to what is theirs.
    dataMode: 0o711,
    owner: 'root',
  },
};

export function configPathOf(role: MachineRole): string {
  return `${configDir}/${role}.yaml`;
}

/** What the unit of a role takes for granted. */
export const usualSettings: Readonly<Record<MachineRole, ReadonlyMap<string, readonly string[]>>> = {
  coordinator: new Map([['data', [roleFacts.coordinator.dataDir]]]),
  agent: new Map([
    ['data', [roleFacts.agent.dataDir]],
    ['guard', ['service']],
    ['kernel_log', ['-']],
    // Processes of jobs run as the accounts of their users.
    ['root_tasks', ['refuse']],
    ['account', [`user:admin=${taskUser}`]],
    ['join_token_file', [joinTokenPath]],
  ]),
};

export interface RoleWish {
  readonly role: MachineRole;
  /** Text of the configuration file. */
  readonly config: string;
  /** Texts of the shipped units, by their names. */
  readonly units: ReadonlyMap<string, string>;
  /** Absolute: starts `muster`. */
  readonly launcher: string;
  /** Lines of `[Service]` that follow from the settings. */
  readonly derived: readonly string[];
  /** Networks whose traffic the unit lets through; null: what is there stays. */
  readonly allow: readonly string[] | null;
  /** Text of a join token for the agent to join with; null: it needs none. */
  readonly joinToken: string | null;
  /** Nothing is started, so that an agent reads a token that is there later. */
  readonly isImage: boolean;
}

/** The launcher that the shipped units name. */
const shippedLauncher = '/usr/lib/muster/muster';

export function installSteps(wish: RoleWish): readonly InstallStep[] {
  const { role, config, launcher, derived, allow, joinToken, isImage } = wish;
  const { units, dataDir, dataMode, owner } = roleFacts[role];
  const configFile = rootFile(configPathOf(role), config, 0o644);
  const unitFiles = unitFilesOf(role, wish.units, launcher);
  const main = units.at(-1) ?? '';
  const dropIns = [
    dropIn(main, 'muster.conf', derived),
    ...(allow === null ? [] : [dropIn(main, 'network.conf', allow.map(networkLine))]),
  ];
  const mainFile = unitFiles.at(-1)?.path ?? '';
  // An agent reads its token when it starts.
  const readAtStart = [configFile.path, ...(joinToken === null ? [] : [joinTokenPath])];
  return [
    ...userSteps[role],
    rootDirectory(configDir, 0o755),
    configFile,
    { kind: 'directory', path: dataDir, mode: dataMode, owner },
    ...unitFiles,
    ...dropIns.flatMap((file) =>
      file.kind === 'file' ? [rootDirectory(`${unitDir}/${main}.d`, 0o755), file] : [file],
    ),
    ...(joinToken === null ? [] : [rootFile(joinTokenPath, joinToken, 0o600)]),
    ...units.map((unit) => ({ kind: 'enabled' as const, unit })),
    // The guard is the parent of running tasks: a new unit of it holds from its next start.
    ...units.map((unit) => ({
      kind: 'running' as const,
      unit,
      restartFor:
        unit === main ? [currentLink, ...readAtStart, mainFile, ...dropIns.map(({ path }) => path)] : [],
    })),
    // An agent that runs has joined; one from a call that failed may be there too.
    ...(role === 'agent' && !isImage ? [{ kind: 'absent' as const, path: joinTokenPath }] : []),
  ];
}

/** @param units texts of the shipped units, by their names @param launcher absolute: starts `muster` */
export function unitFilesOf(
  role: MachineRole,
  units: ReadonlyMap<string, string>,
  launcher: string,
): readonly FileStep[] {
  return roleFacts[role].units.map((name) => {
    const text = (units.get(name) ?? '').replaceAll(shippedLauncher, launcher);
    return rootFile(`${unitDir}/${name}`, text, 0o644);
  });
}

/** What people type: a link to the program of the current release. */
export const commandLink = '/usr/local/bin/muster';

/**
 * A release in its place, and the links by which units and people find it.
 * @param folder name of its folder, below `releasesDir`
 */
export function releaseSteps(tree: ReleaseTree, folder: string): readonly InstallStep[] {
  return [
    { kind: 'release', path: `${releasesDir}/${folder}`, tree },
    { kind: 'link', path: currentLink, target: folder },
    { kind: 'link', path: commandLink, target: `${currentLink}/bin/muster` },
  ];
}

/** @param purge with settings and data, which are gone for good */
export function uninstallSteps(role: MachineRole, purge: boolean): readonly InstallStep[] {
  const { units, dataDir } = roleFacts[role];
  const main = units.at(-1) ?? '';
  const absent = (path: string) => ({ kind: 'absent' as const, path });
  return [
    ...units.toReversed().map((unit) => ({ kind: 'stopped' as const, unit })),
    ...units.map((unit) => absent(`${unitDir}/multi-user.target.wants/${unit}`)),
    ...units.map((unit) => absent(`${unitDir}/${unit}`)),
    // Without --purge, the networks that were allowed and the drop-ins of the owner stay, as the settings do.
    absent(`${unitDir}/${main}.d/${purge ? '' : 'muster.conf'}`),
    ...(purge ? [absent(configPathOf(role)), absent(dataDir), absent(`/var/cache/${cacheOf[role]}`)] : []),
    ...(purge && role === 'agent' ? [absent(joinTokenPath), absent(taskUserHome)] : []),
  ];
}

/** As `CacheDirectory=` of the units. */
const cacheOf: Readonly<Record<MachineRole, string>> = { coordinator: 'muster', agent: 'muster-agent' };

/** Where a role's main unit lies, if it is installed. */
export function mainUnitPath(role: MachineRole): string {
  return `${unitDir}/${roleFacts[role].units.at(-1) ?? ''}`;
}

const userSteps: Readonly<Record<MachineRole, readonly InstallStep[]>> = {
  coordinator: [
    {
      kind: 'user',
      name: systemUser,
      home: roleFacts.coordinator.dataDir,
      description: 'Muster coordinator',
    },
  ],
  agent: [
    { kind: 'user', name: taskUser, home: taskUserHome, description: 'Muster jobs of admin' },
    { kind: 'directory', path: taskUserHome, mode: 0o700, owner: taskUser },
  ],
};

type FileStep = Extract<InstallStep, { kind: 'file' }>;

function rootFile(path: string, text: string, mode: number): FileStep {
  return { kind: 'file', path, mode, owner: 'root', text };
}

function rootDirectory(path: string, mode: number): InstallStep {
  return { kind: 'directory', path, mode, owner: 'root' };
}

function dropIn(
  unit: string,
  name: string,
  lines: readonly string[],
): Extract<InstallStep, { path: string }> {
  const path = `${unitDir}/${unit}.d/${name}`;
  if (lines.length === 0) return { kind: 'absent', path };
  const text = `# Written by \`muster install\`, which replaces it.\n[Service]\n${lines.join('\n')}\n`;
  return rootFile(path, text, 0o644);
}

function networkLine(network: string): string {
  return `IPAddressAllow=${network}`;
}

/**
 * What the sandbox of the agent's unit has to open for these settings.
 * @param places directories that the agent writes to
 */
export function derivedForAgent(places: readonly string[], hasKernelLog: boolean): readonly string[] {
  const isBelow = (...parents: readonly string[]) =>
    places.some((place) => parents.some((parent) => place === parent || place.startsWith(`${parent}/`)));
  return [
    ...places.map((place) => `ReadWritePaths=-${escapeUnit(place)}`),
    ...(isBelow('/home', '/root', '/run/user') ? ['ProtectHome=read-only'] : []),
    ...(isBelow('/tmp', '/var/tmp') ? ['PrivateTmp=no'] : []),
    ...(hasKernelLog ? [] : ['StandardInput=null']),
  ];
}

/** A path as one word of a unit file. */
function escapeUnit(path: string): string {
  const escaped = path.replaceAll('%', '%%').replaceAll('\\', '\\\\').replaceAll('"', '\\"');
  return /\s/.test(escaped) ? `"${escaped}"` : escaped;
}
