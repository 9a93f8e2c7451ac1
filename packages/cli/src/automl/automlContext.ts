/** The context of `muster automl`, from a file with flags laid over it, or from flags alone. */
import { resolve } from 'node:path';
import { settingPlaces } from '@muster/advice/actionShape';
import { type AutomlContext, automlFields } from '@muster/advice/automl/automlFields';
import { readAutoml } from '@muster/advice/file/readAutoml';
import { readSpecDocument } from '@muster/common/spec/document';
import { formatProblems } from '@muster/common/spec/format';
import type { AnyField } from '@muster/common/spec/kinds';
import { type SpecPath, valueAt, withValueAt } from '@muster/common/spec/path';
import { noOrigin, type PlacedFinding, toProblems } from '@muster/common/spec/problems';
import type { Command } from 'commander';
import type { Context } from '../context.ts';
import { CliError } from '../errors.ts';
import { collect } from '../flags.ts';
import { count } from '../output/text.ts';
import { readSpecFile } from '../submit/spec.ts';

interface AutomlFlag {
  readonly path: SpecPath;
  readonly field: AnyField;
  readonly usage: string;
  /** `--time-column` */
  readonly long: string;
}

const settings: readonly AutomlFlag[] = settingPlaces(automlFields).flatMap(({ path, field }) =>
  field.flag === undefined ? [] : [{ path, field, usage: field.flag, long: field.flag.split(' ')[0] ?? '' }],
);
const inContext = (...path: readonly string[]) => ['training_context', ...path];
/** They are paths of this machine until they are sent. */
const paths = [
  {
    path: inContext('data', 'path'),
    long: '--data',
    usage: '--data <file>',
    about: 'the table: CSV or Parquet',
  },
  {
    path: inContext('run', 'dir'),
    long: '--dir',
    usage: '--dir <dir>',
    about: 'directory of the run, which all nodes share; default: that of the data, with .automl',
  },
] as const;
const target = inContext('data', 'target');

export function withAutomlFlags(command: Command): Command {
  command.optionsGroup('The task (each wins over the file):');
  for (const { usage, about } of paths) command.option(usage, about);
  command.option('--target <column>', 'the column to predict');
  for (const { field, usage } of settings) {
    const { flagForm, default: preset } = field;
    const shown = typeof preset === 'number' || typeof preset === 'string' ? ` Default: ${preset}.` : '';
    const about = `${field.about}${shown}`;
    if (flagForm === 'append') command.option(usage, about, collect);
    else command.option(usage, about);
  }
  return command;
}

/** `--time-column` → `timeColumn`, as commander names it. */
function optionName(long: string): string {
  return long.slice(2).replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
}

/**
 * @param file null: flags alone
 * @throws {CliError} with every problem and its place
 */
export async function readAutomlContext(
  file: string | null,
  flags: Readonly<Record<string, unknown>>,
  context: Context,
): Promise<AutomlContext> {
  const text = file === null ? null : await readSpecFile(file, context);
  const source = file === null || text === null ? null : { file: file === '-' ? 'stdin' : file, text };
  const refused = (findings: readonly PlacedFinding[]) => {
    const problems = toProblems(findings);
    return new CliError(`not a valid AutoML task: ${count(problems.length, 'problem')}`, {
      code: 'invalid',
      hints: [formatProblems(problems, source)],
      problems,
    });
  };
  const kind = { jobAt: ['no job is in this file'], expected: 'a task: task_type and training_context' };
  const read = text === null ? null : readSpecDocument(text, kind);
  if (read !== null && !read.ok) throw refused(read.findings);
  const document = read?.document ?? null;
  let value: unknown = document?.value ?? { training_context: { data: {} } };
  const typed = new Map<string, string>();
  const lay = (path: SpecPath, long: string, written: unknown) => {
    value = withValueAt(value, path, written);
    typed.set(path.join('.'), long);
  };
  for (const { path, long, field } of settings) {
    const written = flags[optionName(long)];
    if (written === undefined) continue;
    const reading = typeof written === 'string' ? field.readFlag?.(written) : undefined;
    lay(path, long, reading !== undefined && 'value' in reading ? reading.value : written);
  }
  if (flags['target'] !== undefined) lay(target, '--target', flags['target']);
  const { workingDir } = context.environment;
  for (const { path, long } of paths) {
    const given = flags[long.slice(2)];
    if (typeof given === 'string') lay(path, long, given);
    const written = valueAt(value, path);
    if (typeof written === 'string') value = withValueAt(value, path, resolve(workingDir, written));
  }
  const checked = readAutoml(value);
  const first = document?.findings ?? [];
  if (checked.ok && first.length === 0) return checked.context;
  const rest = checked.ok ? [] : checked.findings;
  throw refused([
    ...first,
    ...rest.map((finding): PlacedFinding => {
      const flag = typed.get(finding.path.join('.'));
      if (flag !== undefined) return { finding, origin: { ...noOrigin, flag } };
      return { finding, origin: document?.originOf(finding.path, finding.at) ?? noOrigin };
    }),
  ]);
}
