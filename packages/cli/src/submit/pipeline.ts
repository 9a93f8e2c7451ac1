/** The JSON of a pipeline that is sent, from a pipeline file, and the values of its parameters. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { MusterError, messageOf } from '@muster/common/errors';
import { checkJobSpec } from '@muster/common/spec/validate';
import { readPipeline } from '@muster/pipelines/file/pipelineFile';
import type { PipelineParameter, PipelineSpec } from '@muster/pipelines/model';
import { completeValues } from '@muster/pipelines/parameters';
import { refersToFire, withFireSamples } from '@muster/pipelines/triggerValues';
import type { Context } from '../context.ts';
import { CliError } from '../errors.ts';
import { placedInFile } from './placedInFile.ts';
import { asSentFromHere } from './spec.ts';
import { readCheckedFile } from './specFile.ts';

export interface PreparedPipeline {
  readonly json: string;
  readonly paramsJson: string;
  /** For people. */
  readonly notes: readonly string[];
  /** What the coordinator refused, with the place in the file. */
  explainRefusal(error: unknown): unknown;
}

export interface CheckedPipelineFile {
  /** As it is written. */
  readonly value: Readonly<Record<string, unknown>>;
  readonly spec: PipelineSpec;
  readonly explainRefusal: PreparedPipeline['explainRefusal'];
}

/** @throws {CliError} with every problem and its place */
export async function checkedPipelineFile(file: string, context: Context): Promise<CheckedPipelineFile> {
  const { document, checked, refuse } = await readCheckedFile(file, context, {
    noun: 'pipeline',
    expected: 'a pipeline: name and steps',
    check: readPipeline,
  });
  return {
    value: document.value,
    spec: checked.pipeline,
    explainRefusal: (error) => {
      if (!(error instanceof MusterError) || error.code !== 'invalid') return error;
      const problems = placedInFile(document, error.problems);
      // What is not of the file, such as times of a trigger, is told as it is.
      return problems.length === 0 || problems.some(({ line }) => line === null) ? error : refuse(problems);
    },
  };
}

/**
 * @param given as typed: `NAME=VALUE`
 * @param isTriggered values may have what a fire has, `${trigger.NAME}`
 * @throws {CliError} with every problem and its place
 */
export async function pipelineFromFile(
  file: string,
  given: readonly string[],
  context: Context,
  exports: string | undefined,
  isTriggered = false,
): Promise<PreparedPipeline> {
  const { value, spec, explainRefusal } = await checkedPipelineFile(file, context);
  const params = valuesFrom(spec.params, given, isTriggered);
  const here = sentFromHere(spec, context, exports);
  const code = await codeOf(spec, context.environment.workingDir);
  return {
    json: JSON.stringify({ ...value, ...here.settings, ...(code === null ? {} : { code }) }),
    paramsJson: JSON.stringify(params),
    notes: here.notes,
    explainRefusal,
  };
}

function sentFromHere({ workdir, env }: PipelineSpec, context: Context, exports: string | undefined) {
  const checked = checkJobSpec({ command: ['true'], env, ...(workdir === null ? {} : { workdir }) });
  if (!checked.ok) return { settings: {}, notes: [] };
  const { spec, notes } = asSentFromHere(checked.spec, context, exports);
  return { settings: { workdir: spec.workdir, env: spec.env }, notes };
}

/** @throws {CliError} for values that do not have the type of their parameter */
function valuesFrom(
  params: readonly PipelineParameter[],
  given: readonly string[],
  isTriggered: boolean,
): Readonly<Record<string, unknown>> {
  const values = typedValues(params, given, isTriggered);
  const complete = completeValues(params, isTriggered ? withFireSamples(params, values) : values);
  if (complete.ok) return values;
  throw new CliError(complete.problems.join('; '), { code: 'invalid' });
}

/**
 * Some values for a pipeline that the coordinator has, with the types of its parameters. They are not compared with them.
 * @param given as typed: `NAME=VALUE` @throws {CliError} for another form
 */
export function valuesForPipeline(
  file: Readonly<Record<string, unknown>>,
  given: readonly string[],
): Readonly<Record<string, unknown>> {
  const read = readPipeline(file);
  return typedValues(read.ok ? read.pipeline.params : [], given, false);
}

function typedValues(
  params: readonly PipelineParameter[],
  given: readonly string[],
  isTriggered: boolean,
): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    given.map((pair) => {
      const at = pair.indexOf('=');
      if (at < 1)
        throw new CliError(`--param: got "${pair}"; expected NAME=VALUE, such as --param lr=0.1`, {
          code: 'invalid',
        });
      const name = pair.slice(0, at);
      if (isTriggered && refersToFire(pair.slice(at + 1))) return [name, pair.slice(at + 1)];
      return [name, typed(params.find((each) => each.name === name)?.type ?? 'string', pair.slice(at + 1))];
    }),
  );
}

/** A value of a list is a text; one that is meant as a number is written as JSON: `[1, 2]`. */
function typed(type: PipelineParameter['type'], text: string): unknown {
  switch (type) {
    case 'int':
    case 'float':
      return text.trim() === '' || Number.isNaN(Number(text)) ? text : Number(text);
    case 'bool':
      return text === 'true' ? true : text === 'false' ? false : text;
    case 'list':
      if (!text.startsWith('[')) return text.split(',');
      try {
        return JSON.parse(text) as unknown;
      } catch {
        return text;
      }
    default:
      return text;
  }
}

/** @throws {CliError} where the directory cannot be read */
async function codeOf(
  { code }: PipelineSpec,
  workingDir: string,
): Promise<{ readonly digest: string } | null> {
  if (code === null || !('directory' in code)) return code;
  const directory = resolve(workingDir, code.directory);
  try {
    return { digest: (await cleanCommitOf(directory)) ?? `sha256:${await digestOfTree(directory)}` };
  } catch (error) {
    throw new CliError(`code: ${directory} cannot be read: ${messageOf(error)}`, { code: 'invalid' });
  }
}

/** @returns null: it is not below git, or something in it is not committed */
async function cleanCommitOf(directory: string): Promise<string | null> {
  const git = async (...args: readonly string[]) =>
    (await promisify(execFile)('git', ['-C', directory, ...args])).stdout.trim();
  try {
    if ((await git('status', '--porcelain', '--', '.')) !== '') return null;
    return `git:${await git('rev-parse', 'HEAD:./')}`;
  } catch {
    return null;
  }
}

/** What programs write beside code, and what is no code. */
const skipped: ReadonlySet<string> = new Set(['.git', '__pycache__', 'node_modules', '.venv']);

async function digestOfTree(root: string): Promise<string> {
  const whole = createHash('sha256');
  const entries = await readdir(root, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter(
      (path) =>
        !relative(root, path)
          .split('/')
          .some((part) => skipped.has(part)),
    )
    .sort();
  for (const path of files) {
    const content = createHash('sha256');
    await pipeline(createReadStream(path), content);
    whole.update(`${content.digest('hex')}  ${relative(root, path)}\n`);
  }
  return whole.digest('hex');
}
