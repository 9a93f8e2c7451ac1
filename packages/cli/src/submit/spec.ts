/**
 * The JSON that a submit sends. Loading the spec's full checks (zod, yaml) takes as long as everything else a submit
 * does; a job given by flags alone leaves them to the coordinator and loads them only to explain a refusal.
 */

import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { resolve } from 'node:path';
import { MusterError } from '@muster/common/errors';
import { formatProblems } from '@muster/common/spec/format';
import { specBytesMax } from '@muster/common/spec/limits';
import { applyOverrides, type SpecOverrides, specFlags } from '@muster/common/spec/overrides';
import { encodeJobSpec } from '@muster/common/spec/serialize';
import type { JobSpec, SpecProblem } from '@muster/common/spec/types';
import type { Command } from 'commander';
import type { Context } from '../context.ts';
import { CliError, fileErrorReason, usageError } from '../errors.ts';
import { collect } from '../flags.ts';
import { count } from '../output/text.ts';
import { bytesText } from '../output/times.ts';
import { exportedEnvironment } from './exported.ts';
import { scriptAsJobFile, unreadDirectives } from './script.ts';

export interface PreparedSpec {
  readonly json: string;
  /** Of the environment that was found here, for people. */
  readonly notes: readonly string[];
  /** What the coordinator refused, in words that point at the user's flags or file. */
  explainRefusal(error: MusterError): Promise<Error>;
}

export async function specFromFile(
  file: string,
  overrides: SpecOverrides,
  context: Context,
  exports?: string,
): Promise<PreparedSpec> {
  const text = await readSpecFile(file, context);
  if (text.startsWith('#!')) throw scriptAsJobFile(file, text, context);
  const { jobDocument, parseJobSpec } = await import('@muster/common/spec/parse');
  const source = { file: file === '-' ? 'stdin' : file, text };
  const result = parseJobSpec(text, { overrides, environment: context.environment.variables });
  if (!result.ok) throw refusal(result.problems, formatProblems(result.problems, source));
  const { spec } = result;
  const { spec: sent, notes } = asSentFromHere(spec, context, exports);
  return {
    json: encodeJobSpec(sent),
    notes,
    explainRefusal: async (error) => {
      const { placedInFile } = await import('./placedInFile.ts');
      // No flag stands for a phase; for other keys one may, and the place would be wrong.
      const document = jobDocument(text);
      const problems =
        document !== null
          ? placedInFile(document, error.problems, ([key]) => key === 'phases')
          : error.problems.map(withoutPlace);
      return problems.length === 0 ? error : refusal(problems, formatProblems(problems, source));
    },
  };
}

/** With what a job gets of the shell that submits it: environment, working directory and file mode mask. */
export function asSentFromHere(
  spec: JobSpec,
  context: Context,
  exports: string | undefined,
): { readonly spec: JobSpec; readonly notes: readonly string[] } {
  const isContainer = spec.image !== null;
  const { variables, notes } = exportedEnvironment(
    { choice: exports, isContainer, workdir: spec.workdir, set: new Set(Object.keys(spec.env)) },
    context,
  );
  const umask = spec.umask ?? (isContainer ? null : umaskToSend(exports, context));
  const workdir = spec.workdir ?? (isContainer ? null : context.environment.workingDir);
  return { spec: { ...spec, workdir, umask, env: { ...variables, ...spec.env } }, notes };
}

export async function specFromFlags(
  overrides: SpecOverrides,
  context: Context,
  exports?: string,
): Promise<PreparedSpec> {
  const { workingDir, variables } = context.environment;
  const isContainer = overrides.image !== undefined;
  const given = overrides.env ?? [];
  const { variables: sent, notes } = exportedEnvironment(
    {
      choice: exports,
      isContainer,
      workdir: overrides.workdir,
      set: new Set(given.map((pair) => pair.replace(/=.*$/s, ''))),
    },
    context,
  );
  const env = [...Object.entries(sent).map(([name, value]) => `${name}=${value}`), ...given];
  const umask = isContainer ? null : umaskToSend(exports, context);
  const complete = {
    ...overrides,
    ...(umask === null || overrides.umask !== undefined ? {} : { umask: umask.toString(8).padStart(4, '0') }),
    ...(isContainer || overrides.workdir !== undefined ? {} : { workdir: workingDir }),
    ...(env.length === 0 ? {} : { env }),
  };
  const merged = applyOverrides({}, complete, variables);
  const explainRefusal = async (error: MusterError) => {
    const { jobSpecFromFlags } = await import('@muster/common/spec/resolve');
    const checked = jobSpecFromFlags(complete, variables);
    const problems = checked.ok ? error.problems.map(withoutPlace) : checked.problems;
    return problems.length === 0 ? error : refusal(problems, formatProblems(problems, null));
  };
  if (merged.findings.length > 0) throw await explainRefusal(new MusterError('invalid', 'wrong flags'));
  const ignored = isContainer
    ? []
    : unreadDirectives(overrides.command ?? [], resolve(workingDir, overrides.workdir ?? '.'));
  return { json: JSON.stringify(merged.value), notes: [...notes, ...ignored], explainRefusal };
}

/** What nodes have by themselves: not sent, so that a node's owner can choose a stricter one. */
const usualUmask = 0o022;

/** Of this shell. null: none is sent. */
function umaskToSend(exports: string | undefined, { environment }: Context): number | null {
  return exports === 'none' || environment.umask === usualUmask ? null : environment.umask;
}

/** The coordinator sees no file and no flags. */
function withoutPlace(problem: MusterError['problems'][number]): SpecProblem {
  return { ...problem, line: null, column: null, flag: null };
}

/** @param formatted the problems, for a person */
export function refusal(problems: readonly SpecProblem[], formatted: string): CliError {
  return new CliError(`not a valid job: ${count(problems.length, 'problem')}`, {
    code: 'invalid',
    hints: [formatted],
    problems,
  });
}

/** The flags of `muster submit` that describe the job. Values stay as typed: the job spec's own checks judge them. */

export function withSpecFlags(command: Command): Command {
  command.optionsGroup('The job (each wins over the file):');
  for (const { usage, help, isRepeated } of specFlags) {
    if (isRepeated) command.option(usage, help, collect);
    else command.option(usage, help);
  }
  return command;
}

/** @param commandLine what stands after `--`; null: no `--` */
export function overridesOf(flags: object, commandLine: readonly string[] | null): SpecOverrides {
  return { ...flags, command: commandLine ?? undefined };
}

/**
 * The text of a job file; `-` is standard input. Anything too large to be one is refused before it is read.
 * @throws {CliError} naming the file and what is wrong with it
 */
/** @param noun what the file is @throws {CliError} where it cannot be read */
export async function readSpecFile(
  file: string,
  { io, environment }: Context,
  noun = 'job file',
): Promise<string> {
  if (file === '-') {
    if (io.stdin.isTerminal)
      await io.stderr.write('Reading the job spec from the terminal; Ctrl-D ends the input.\n');
    const bytes = await io.stdin.readAll(specBytesMax);
    if (bytes === null) throw tooLarge('the job spec on standard input', null);
    return bytes.toString('utf8');
  }
  let descriptor: number | null = null;
  try {
    descriptor = openSync(resolve(environment.workingDir, file), 'r');
    const stat = fstatSync(descriptor);
    if (stat.size > specBytesMax) throw tooLarge(file, stat.size);
    return readBounded(descriptor, file).toString('utf8');
  } catch (error) {
    const reason = fileErrorReason(error);
    if (reason === null) throw error;
    throw usageError(`cannot read the ${noun} ${file}: ${reason}`);
  } finally {
    if (descriptor !== null) closeSync(descriptor);
  }
}

/** A pipe or a device has no size to look at beforehand. */
function readBounded(descriptor: number, file: string): Buffer {
  const buffer = Buffer.alloc(specBytesMax + 1);
  let bytes = 0;
  for (;;) {
    const read = readSync(descriptor, buffer, bytes, buffer.length - bytes, null);
    if (read === 0) return buffer.subarray(0, bytes);
    bytes += read;
    if (bytes > specBytesMax) throw tooLarge(file, null);
  }
}

function tooLarge(what: string, bytes: number | null): Error {
  const size = bytes === null ? 'too large' : bytesText(bytes);
  return usageError(
    `${what} is ${size}; a job spec has at most ${bytesText(specBytesMax)}`,
    'Put data into files that the job reads.',
  );
}
