/** Which variables of the submitter a job gets: what `--export` says, or the Python environment that is in use here. */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Context } from '../context.ts';
import { usageError } from '../errors.ts';
import { detectEnvironment, exportable, type UserEnvironment } from './userEnvironment.ts';

interface Wanted {
  /** `all`, `none`, or names with commas between; undefined: what was detected. */
  readonly choice: string | undefined;
  readonly isContainer: boolean;
  /** As given by flag or file; relative to the current directory. */
  readonly workdir: string | null | undefined;
  /** Names that the job sets by itself. Whoever sets PATH has chosen an environment. */
  readonly set: ReadonlySet<string>;
}

/** @throws {CliError} for a name that is not set here, and for a container, whose environment is its image's */
export function exportedEnvironment(
  { choice, isContainer, workdir, set }: Wanted,
  { environment }: Context,
): UserEnvironment {
  if (isContainer) {
    if (choice === undefined || choice === 'none') return { variables: {}, notes: [] };
    throw usageError('--export is for jobs without an image', 'Name the variables one by one: -e NAME');
  }
  if (choice === 'none') return { variables: {}, notes: [] };
  const { variables } = environment;
  const start = resolve(environment.workingDir, workdir ?? '.');
  const detected = set.has('PATH')
    ? { variables: {}, notes: [] }
    : detectEnvironment(variables, start, existsSync);
  if (choice === undefined) return detected;
  if (choice === 'all')
    return { ...detected, variables: { ...exportable(variables), ...detected.variables } };
  const named = choice.split(',').map((name) => {
    const value = variables[name.trim()];
    if (value === undefined)
      throw usageError(`--export: ${name.trim() || '""'} is not set in your environment`);
    return [name.trim(), value] as const;
  });
  return { ...detected, variables: { ...detected.variables, ...Object.fromEntries(named) } };
}
