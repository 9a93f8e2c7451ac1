import { existsSync, lstatSync, readdirSync, readlinkSync, rmdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { CommandModule, Context } from '../context.ts';
import { usageError } from '../errors.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { openMachine } from '../install/machine.ts';
import { currentLink, releasesDir } from '../install/releaseTree.ts';
import {
  commandLink,
  configDir,
  configPathOf,
  type InstallStep,
  machineRoles,
  mainUnitPath,
  roleFacts,
  uninstallSteps,
} from '../install/roles.ts';
import { endContainers, runningTasks } from '../install/runningTasks.ts';
import { carryOut, requireRoot, rolesOf } from '../install/steps.ts';
import { count } from '../output/text.ts';
import { type ForceFlag, requireConsent } from '../query.ts';

interface UninstallFlags extends ForceFlag {
  readonly purge?: boolean;
  readonly root?: string;
  readonly dryRun?: boolean;
  readonly user?: boolean;
}

export const command: CommandModule = {
  define(sub) {
    sub
      .argument('[role...]', `${machineRoles.join(', ')}, or both; default: what is installed`)
      .option('--purge', 'also remove settings and data: jobs, output, credentials')
      .option('--force', 'do not ask, though tasks run or data is removed')
      .option('--user', 'the agent that `muster install agent --user` has installed')
      .option('--root <dir>', 'remove from the system image in this directory')
      .option('--dry-run', 'print each change, and change nothing')
      .addHelpText(
        'after',
        `\nWithout --purge, ${configDir} and the data directories stay, and \`muster install\` continues with them. Tasks that run ` +
          'are ended, containers too;\n`muster node drain NAME --deadline 10m` has them saved first.',
      );
  },
  run: uninstall,
};

async function uninstall(
  context: Context,
  words: readonly string[],
  flags: UninstallFlags,
): Promise<ExitCode> {
  const { environment, io } = context;
  if (flags.user === true) {
    if (words.some((word) => word !== 'agent'))
      throw usageError('--user is for an agent: muster uninstall agent --user');
    if (flags.root !== undefined || flags.dryRun === true)
      throw usageError('--root and --dry-run are for services of the system, and exclude --user');
    const { uninstallUserAgent } = await import('../userAgent/userAgent.ts');
    return uninstallUserAgent(context, { purge: flags.purge === true, force: flags.force === true });
  }
  const root = flags.root === undefined ? '/' : resolve(environment.workingDir, flags.root);
  const isDryRun = flags.dryRun === true;
  const isPurge = flags.purge === true;
  const chosen =
    words.length > 0
      ? rolesOf(words)
      : machineRoles.filter(
          (role) =>
            existsSync(join(root, mainUnitPath(role))) ||
            (isPurge && existsSync(join(root, roleFacts[role].dataDir))),
        );
  requireRoot(environment, 'uninstall', isDryRun);
  if (!isDryRun && flags.force !== true) {
    const places = chosen.map((role) => roleFacts[role].dataDir);
    const running = chosen.includes('agent') ? await runningTasks(join(root, roleFacts.agent.dataDir)) : 0;
    const consequences = [
      ...(running > 0 ? [`ends ${count(running, 'running task')}`] : []),
      ...(isPurge && places.length > 0 ? [`removes ${places.join(' and ')}`] : []),
    ];
    if (consequences.length > 0) {
      const again = `${environment.programName} uninstall ${chosen.join(' ')}${isPurge ? ' --purge' : ''} --force`;
      await requireConsent(context, `This ${consequences.join(' and ')}`, again);
    }
  }
  const machine = openMachine(root);
  let changes = 0;
  // The agent first: it reports its end to a coordinator that is still there.
  for (const role of chosen.toReversed()) {
    const steps = uninstallSteps(role, isPurge);
    const isStop = ({ kind }: InstallStep) => kind === 'stopped';
    changes += await carryOut(steps.filter(isStop), machine, context, isDryRun);
    // The guard has ended with its unit, so it no longer holds a container; the records of containers may be removed below.
    if (role === 'agent' && root === '/' && !isDryRun)
      changes += await endContainers(roleFacts.agent.dataDir, configPathOf(role), context);
    changes += await carryOut(
      steps.filter((step) => !isStop(step)),
      machine,
      context,
      isDryRun,
    );
  }
  const isLast = machineRoles.every(
    (role) => chosen.includes(role) || !existsSync(join(root, mainUnitPath(role))),
  );
  // Last, because this program may be one of them.
  if (isLast) changes += await carryOut(withoutReleases(root), machine, context, isDryRun);
  const config = join(root, configDir);
  if (isPurge && !isDryRun && existsSync(config) && readdirSync(config).length === 0) rmdirSync(config);
  if (changes === 0) await io.stderr.write('Nothing to remove.\n');
  return exitCodes.ok;
}

/** What `install` copied and linked; a checkout or anything else in that folder stays. */
function withoutReleases(root: string): readonly InstallStep[] {
  const absent = (path: string) => ({ kind: 'absent' as const, path });
  const isOurs = (path: string, target: string) =>
    lstatSync(join(root, path), { throwIfNoEntry: false })?.isSymbolicLink() === true &&
    readlinkSync(join(root, path)).startsWith(target);
  if (!isOurs(currentLink, '')) return [];
  const folder = join(root, releasesDir);
  const releases = readdirSync(folder).filter((name) =>
    existsSync(join(folder, name, 'lib/muster/release.json')),
  );
  const isAll = readdirSync(folder).every((name) => name === 'current' || releases.includes(name));
  return [
    ...(isOurs(commandLink, currentLink) ? [absent(commandLink)] : []),
    ...(isAll
      ? [absent(releasesDir)]
      : [currentLink, ...releases.map((name) => `${releasesDir}/${name}`)].map(absent)),
  ];
}
