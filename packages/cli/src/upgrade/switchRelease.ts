/** From one release to another on a machine whose services run, and back where the new one does not become healthy. */

import { CliError } from '../errors.ts';
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
  readonly store: { copy(): void; putBack(): void } | null;
  say(sentence: string): Promise<void>;
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
 * guard's unit or to Docker, and go on.
 * @param roles installed on this machine
 * @throws {CliError} when the new release did not become healthy, and the old one runs again or does not
 */
export async function switchRelease(
  roles: readonly MachineRole[],
  machine: ServiceMachine,
): Promise<Switched> {
  const { store } = machine;
  const touched = new Set<MachineRole>();
  let isCopied = false;
  try {
    if (store !== null && roles.includes('coordinator')) {
      await machine.say('stopping the coordinator, to copy its store');
      touched.add('coordinator');
      machine.stop(coordinatorUnit);
      store.copy();
      isCopied = true;
    }
    machine.useRelease('new');
    return { isGuardNew: await startAll(roles, 'new', machine, touched) };
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    await machine.say(`${error.message}; going back`);
    const hints = [...error.hints];
    try {
      if (isCopied) machine.stop(coordinatorUnit);
      machine.useRelease('old');
      if (isCopied) store?.putBack();
      await startAll([...touched], 'old', machine, touched);
    } catch (second) {
      if (!(second instanceof CliError)) throw second;
      throw new CliError(`${error.message}, and going back failed: ${second.message}`, {
        hints: [...hints, ...second.hints],
      });
    }
    throw new CliError(`${error.message}; the old release runs again`, { hints });
  }
}

/** @param touched gets the roles whose daemons were restarted @returns whether the guard was one of them @throws {CliError} for what does not become healthy */
async function startAll(
  roles: readonly MachineRole[],
  which: 'old' | 'new',
  machine: ServiceMachine,
  touched: Set<MachineRole>,
): Promise<boolean> {
  if (roles.includes('coordinator')) {
    touched.add('coordinator');
    await machine.say('restarting the coordinator');
    machine.restart(coordinatorUnit);
    await requireHealthy('coordinator', coordinatorUnit, which, machine);
  }
  if (!roles.includes('agent')) return true;
  touched.add('agent');
  await machine.say('restarting the agent');
  // While it is away nobody starts tasks. A guard that is restarted under them would not learn how they end.
  machine.stop(agentUnit);
  const isFree = !(await machine.hasTasks());
  if (isFree) machine.restart(guardUnit);
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
