/** Which variables of the submitter a job gets: what `--export` says, or the Python environment that is in use here. */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Context } from '../context.ts';
import { usageError } from '../errors.ts';
import { detectEnvironment, exportable, type UserEnvironment } from './userEnvironment.ts';

interface Wanted {
  /** As `exportChoice` returns it. */
  readonly choice: string | undefined;
  readonly isContainer: boolean;
  /** As given by flag or file; relative to the current directory. */
  readonly workdir: string | null | undefined;
  /** Names that the job sets by itself. Anyone who sets PATH has chosen an environment. */
  readonly set: ReadonlySet<string>;
}

/** Of every command that sends jobs. */
export const exportFlag = [
  '--export <what>',
  'your variables to send: all, none, or NAME,NAME=VALUE; default: the active venv, conda, uv, poetry or pixi environment',
] as const;

/**
 * What `--export` says: `all` and `none` in either case, as sbatch takes them.
 * @returns `all`, `none`, or `NAME` and `NAME=VALUE` with commas between, of which one may be `all`; undefined: not given
 */
export function exportChoice(given: string | undefined): string | undefined {
  const entries = given?.split(',').map((entry) => {
    const word = entry.trim();
    return /^(?:all|none)$/i.test(word) ? word.toLowerCase() : word;
  });
  return entries?.join(',');
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
  const entries = choice.split(',');
  const every = entries.includes('all') ? exportable(variables) : {};
  const named = Object.fromEntries(
    entries.filter((entry) => entry !== 'all').map((entry) => namedVariable(entry, variables)),
  );
  return { ...detected, variables: { ...every, ...detected.variables, ...named } };
}

/** @param entry `NAME` or `NAME=VALUE` */
function namedVariable(
  entry: string,
  variables: Readonly<Record<string, string | undefined>>,
): readonly [string, string] {
  const [, name = entry, given] = /^([^=]+)=(.*)$/s.exec(entry) ?? [];
  const value = given ?? variables[name];
  if (value === undefined) throw usageError(`--export: ${name || '""'} is not set in your environment`);
  return [name, value];
}
