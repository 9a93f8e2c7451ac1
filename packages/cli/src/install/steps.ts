/** What `install` and `uninstall` have in common. */
import type { Context } from '../context.ts';
import type { ProgramEnvironment } from '../environment.ts';
import { CliError, usageError } from '../errors.ts';
import type { TargetMachine } from './machine.ts';
import { type InstallStep, type MachineRole, machineRoles } from './roles.ts';

/**
 * Carries the steps out, or only shows them; a line for each change.
 * @returns how many changes there were
 */
export async function carryOut(
  steps: readonly InstallStep[],
  machine: TargetMachine,
  { io }: Pick<Context, 'io'>,
  isDryRun: boolean,
): Promise<number> {
  let changes = 0;
  for (const step of steps) {
    const difference = machine.difference(step);
    if (difference === null) continue;
    changes += 1;
    await io.stdout.write(`${difference}\n`);
    if (isDryRun) machine.suppose(step);
    else machine.apply(step);
  }
  machine.settle();
  return changes;
}

/** @returns each once, in the order in which they are started @throws {CliError} for a word that is no role */
export function rolesOf(words: readonly string[]): readonly MachineRole[] {
  const unknown = words.find((word) => !machineRoles.some((role) => role === word));
  if (unknown !== undefined)
    throw usageError(`the roles of a machine are ${machineRoles.join(' and ')}; got "${unknown}"`);
  return machineRoles.filter((role) => words.includes(role));
}

/** @throws {CliError} */
export function requireRoot(
  { uid, programName }: ProgramEnvironment,
  command: 'install' | 'uninstall' | 'upgrade',
  isDryRun: boolean,
): void {
  if (uid === 0 || isDryRun) return;
  throw new CliError(`${command} changes this machine, which takes root`, {
    code: 'permission_denied',
    hints: [
      `sudo ${programName} ${command} …`,
      ...(command === 'upgrade' ? [] : [`What it would change: ${programName} ${command} … --dry-run`]),
    ],
  });
}
