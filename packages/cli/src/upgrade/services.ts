/** The services of this machine as `switchRelease` needs them: systemd, the daemons' answers, the store of the coordinator. */
import { spawnSync } from 'node:child_process';
import { readlinkSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '@muster/common/errors';
import type { Context } from '../context.ts';
import { CliError, fileErrorReason } from '../errors.ts';
import { newestLog, openMachine, pointLink } from '../install/machine.ts';
import { unitsIn } from '../install/release.ts';
import { currentLink, type ReleaseTree, releaseLauncher, releasesDir } from '../install/releaseTree.ts';
import { type MachineRole, roleFacts, unitFilesOf } from '../install/roles.ts';
import { runningTasks } from '../install/runningTasks.ts';
import { withSession } from '../session.ts';
import { isNoSpace } from '../storeFiles.ts';
import { fetchPage, programOf, readAgentPage, untilHealthy } from './health.ts';
import { storeCopy } from './storeCopy.ts';
import type { ServiceMachine } from './switchRelease.ts';
import { type BegunUpgrade, isNoted, noteBegun, noteEnded } from './unfinished.ts';

export interface ServicesParts {
  readonly roles: readonly MachineRole[];
  readonly old: ReleaseTree;
  readonly fresh: ReleaseTree;
  /** Of these two, cut off; null: this one begins. */
  readonly unfinished: BegunUpgrade | null;
  /** For how long a daemon may take to become healthy. */
  readonly waitMs: number;
  /** `host:port` of the agent's page; null: it has none. */
  readonly agentPage: string | null;
  readonly context: Context;
}

const pauseMs = 250;

const unitsDir = '/etc/systemd/system';

/** Nothing is left to go back to from the old release, so it gets more time than a new one. */
const oldWaitMinMs = 5 * 60_000;

/** A daemon that has ended so often since it was restarted will not stay. */
const endsMax = 3;

/** @throws {CliError} when there is no space for a copy of the store */
export async function openServices(parts: ServicesParts): Promise<ServiceMachine> {
  const { roles, old, fresh, context } = parts;
  const treeOf = (which: 'old' | 'new') => (which === 'old' ? old : fresh);
  const wasInContact = roles.includes('agent') && (await answerOf(parts))?.isInContact === true;
  const problemOf = (role: MachineRole, which: 'old' | 'new') =>
    role === 'coordinator'
      ? coordinatorProblem(treeOf(which), context)
      : agentProblem(treeOf(which), wasInContact, parts);
  const { dataDir } = roleFacts.coordinator;
  const store = roles.includes('coordinator') ? storeCopy({ ...parts, dataDir }) : null;
  const begun = { from: basename(old.top), to: basename(fresh.top), storeCopy: store?.file ?? null };
  return {
    store,
    wasCutOff: isNoted(releasesDir),
    noteBegun: () => writing(releasesDir, () => noteBegun(releasesDir, begun)),
    noteEnded() {
      store?.endReserve();
      noteEnded(releasesDir);
    },
    useRelease(which) {
      const tree = treeOf(which);
      const units = unitsIn(join(tree.top, 'lib/muster/systemd'));
      const machine = openMachine('/');
      const target = basename(tree.top);
      // A full disk may have no room for a link. Where nothing has changed yet, going back needs none.
      if (readlinkSync(currentLink) !== target) writing(releasesDir, () => pointLink(currentLink, target));
      for (const step of roles.flatMap((role) => unitFilesOf(role, units, releaseLauncher)))
        if (machine.difference(step) !== null) writing(unitsDir, () => machine.apply(step));
      machine.settle();
    },
    restart: (unit) => systemctl('restart', '--no-block', unit),
    stop: (unit) => systemctl('stop', unit),
    hasTasks: async () => (await runningTasks(roleFacts.agent.dataDir)) > 0,
    untilHealthy(role, which) {
      const unit = roleFacts[role].units.at(-1) ?? '';
      const endsBefore = Number(property(unit, 'NRestarts'));
      const waitMs = which === 'new' ? parts.waitMs : Math.max(parts.waitMs, oldWaitMinMs);
      const problem = async () => {
        const what = await problemOf(role, which);
        if (what === null) return null;
        const ends = Number(property(unit, 'NRestarts')) - endsBefore;
        const missing = role === 'coordinator' && which === 'new' ? store?.spaceProblem() : null;
        if (ends > 0 && typeof missing === 'string')
          return { what: `it has ended; ${missing}`, isFinal: true };
        if (ends < endsMax) return { what };
        return { what: `it has ended ${ends} times since it was restarted`, isFinal: which === 'new' };
      };
      return untilHealthy(problem, waitMs, {
        monotonicMs: () => context.clock.monotonicMs(),
        pause: () => sleep(pauseMs),
      });
    },
    newestLog,
    // A machine whose admin is no longer connected is upgraded to the end, or back.
    print: (sentence) => context.io.stderr.write(`${sentence}\n`).catch(() => {}),
  };
}

/** @throws {CliError} for what the system refuses, with the place */
function writing(folder: string, work: () => void): void {
  try {
    work();
  } catch (error) {
    const reason = fileErrorReason(error);
    if (reason === null) throw error;
    const sizes = `Some KiB are enough. Which folders are large: du -xh --max-depth=2 ${folder} | sort -h | tail`;
    throw new CliError(`cannot write below ${folder}: ${reason}`, {
      cause: error,
      hints: isNoSpace(error) ? [sizes] : [],
    });
  }
}

/** @throws {CliError} with the last line that it printed on stderr */
function systemctl(...args: readonly string[]): void {
  const { status, stderr } = spawnSync('systemctl', args, { encoding: 'utf8' });
  if (status === 0) return;
  throw new CliError(`systemctl ${args.join(' ')} failed: ${(stderr ?? '').trim().split('\n').at(-1)}`);
}

function property(unit: string, name: string): string {
  const { stdout } = spawnSync('systemctl', ['show', `--property=${name}`, '--value', unit], {
    encoding: 'utf8',
  });
  return (stdout ?? '').trim();
}

async function coordinatorProblem(tree: ReleaseTree, context: Context): Promise<string | null> {
  try {
    const { version } = await withSession(context, { data: roleFacts.coordinator.dataDir }, ({ api }) =>
      api.getCluster(),
    );
    return version === tree.version ? null : `it answers with version ${version}, not ${tree.version}`;
  } catch (error) {
    return messageOf(error);
  }
}

async function answerOf({ agentPage }: ServicesParts) {
  if (agentPage === null) return null;
  return fetchPage(agentPage).then(readAgentPage, () => null);
}

async function agentProblem(
  tree: ReleaseTree,
  wasInContact: boolean,
  parts: ServicesParts,
): Promise<string | null> {
  const unit = 'muster-agent.service';
  const state = property(unit, 'ActiveState');
  if (state !== 'active') return `${unit} is ${state}`;
  const program = programOf(Number(property(unit, 'MainPID')));
  if (program === null || !program.startsWith(`${tree.top}/`)) return `${unit} does not run ${tree.version}`;
  if (parts.agentPage === null) return null;
  const answer = await answerOf(parts);
  if (answer === null) return `its page at ${parts.agentPage} does not answer`;
  if (answer.version !== tree.version)
    return `it answers with version ${answer.version}, not ${tree.version}`;
  return wasInContact && !answer.isInContact ? 'it is not in contact with the coordinator' : null;
}
