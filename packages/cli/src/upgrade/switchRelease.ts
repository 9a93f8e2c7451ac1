/** From one release to another on a machine whose services run, and back where the new one does not become healthy. */

import { CliError, failureOf } from '../errors.ts';
import type { MachineRole } from '../install/roles.ts';

/** What the switch does to the machine. A seam: the order of the steps is tested without systemd. */
export interface ServiceMachine {
  /** Links the release, writes its units and has systemd read them. */
  useRelease(which: 'old' | 'new'): void;
  /** Asks systemd to end the running daemon, if any, and to start it. Does not wait. */
  restart(unit: string): void;
  /** Waits until it has ended. */
  stop(unit: string): void;
  /** Whether tasks run on this node, which only the agent starts. */
  hasTasks(): Promise<boolean>;
  /** @returns null once the daemon answers with that release's version; else, after the time for it, what is wrong */
  untilHealthy(role: MachineRole, which: 'old' | 'new'): Promise<string | null>;
  /** The newest lines of a unit's log. */
  newestLog(unit: string): readonly string[];
  /** Null: the new release leaves the form of the store as it is. Both while no coordinator runs. */
  readonly store: StoreCopy | null;
  /** One between these two was cut off before, so that each daemon may run either. */
  readonly wasCutOff: boolean;
  /** Notes, to last, that from now on daemons may be stopped, run the new release, and change the form of the store. */
  noteBegun(): void;
  /** One of the two runs, and the store is its own. */
  noteEnded(): void;
  /** Never fails: the terminal may be gone. */
  print(sentence: string): Promise<void>;
}

export interface StoreCopy {
  /** By an upgrade that was cut off: the store may have the new form since, so no other copy can be made. */
  readonly isMade: boolean;
  copy(): void;
  putBack(): Promise<void>;
}

export interface Switched {
  /** False: tasks run, so the guard keeps the old release until it is restarted. */
  readonly isGuardNew: boolean;
}

const coordinatorUnit = 'muster-coordinator.service';
const agentUnit = 'muster-agent.service';
const guardUnit = 'muster-guard.service';

/**
 * The coordinator first, because agents speak one version less and coordinators do not guess a newer one. Tasks belong to the
 * guard's unit or to Docker, and keep running.
 * @param roles installed on this machine
 * @throws {CliError} when the new release did not become healthy, and the old one runs again or does not
 */
export async function switchRelease(
  roles: readonly MachineRole[],
  machine: ServiceMachine,
): Promise<Switched> {
  const { store } = machine;
  const hasStore = store !== null && roles.includes('coordinator');
  const touched = new Set<MachineRole>(machine.wasCutOff ? roles : []);
  let isCopied = hasStore && store.isMade;
  try {
    machine.noteBegun();
    if (hasStore && !isCopied) {
      await machine.print('stopping the coordinator, to copy its store');
      touched.add('coordinator');
      machine.stop(coordinatorUnit);
      store.copy();
      isCopied = true;
    }
    machine.useRelease('new');
    const isGuardNew = await startAll(roles, 'new', machine, touched);
    machine.noteEnded();
    return { isGuardNew };
  } catch (error) {
    const { message, hints } = failureOf(error);
    await machine.print(`${message}; going back`);
    try {
      await goBack(
        roles.filter((role) => touched.has(role)),
        machine,
        isCopied,
      );
    } catch (second) {
      const { message: reason, hints: more } = failureOf(second);
      throw new CliError(`${message}, and going back failed: ${reason}`, { hints: [...hints, ...more] });
    }
    throw new CliError(`${message}; the old release runs again`, { hints });
  }
}

/**
 * The store first: where the link is that of the old release, its coordinator can read the store, whenever this is cut off.
 * @param roles whose daemons may run the new release
 * @param isCopied whether the store may have the form of the new release
 * @throws {CliError} when the old release does not become healthy either
 */
export async function goBack(
  roles: readonly MachineRole[],
  machine: ServiceMachine,
  isCopied: boolean,
): Promise<Switched> {
  if (isCopied) {
    machine.stop(coordinatorUnit);
    try {
      await machine.store?.putBack();
    } catch (error) {
      // Leases must still be renewed: the coordinator of the new release can read its own store.
      machine.restart(coordinatorUnit);
      throw error;
    }
  }
  machine.useRelease('old');
  const isGuardNew = await startAll(roles, 'old', machine);
  machine.noteEnded();
  return { isGuardNew };
}

/**
 * @param touched gets the roles whose daemons were restarted
 * @returns whether the guard was one of them
 * @throws {CliError} for what does not become healthy
 */
async function startAll(
  roles: readonly MachineRole[],
  which: 'old' | 'new',
  machine: ServiceMachine,
  touched = new Set<MachineRole>(),
): Promise<boolean> {
  if (roles.includes('coordinator')) {
    touched.add('coordinator');
    await machine.print('restarting the coordinator');
    machine.restart(coordinatorUnit);
    await requireHealthy('coordinator', coordinatorUnit, which, machine);
  }
  if (!roles.includes('agent')) return true;
  touched.add('agent');
  await machine.print('restarting the agent');
  // A guard that is restarted under tasks would not learn how they end. While the agent is away nobody starts any; where some run, it
  // is not stopped first, so that nothing can leave them without it.
  let isFree = !(await machine.hasTasks());
  if (isFree) {
    machine.stop(agentUnit);
    isFree = !(await machine.hasTasks());
    if (isFree) machine.restart(guardUnit);
  }
  machine.restart(agentUnit);
  await requireHealthy('agent', agentUnit, which, machine);
  return isFree;
}

async function requireHealthy(
  role: MachineRole,
  unit: string,
  which: 'old' | 'new',
  machine: ServiceMachine,
): Promise<void> {
  const problem = await machine.untilHealthy(role, which);
  if (problem === null) return;
  throw new CliError(`the ${role} is not healthy: ${problem}`, {
    hints: [...machine.newestLog(unit), `Its log: journalctl -u ${unit}`],
  });
}
