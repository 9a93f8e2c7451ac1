/** Advice on the training context of a file with flags laid over it, or of flags alone. */
import type { AdviceTask } from '@muster/advice/actionShape';
import { contextPlaces } from '@muster/advice/contextFields';
import { adviseAs } from '@muster/advice/file/advise';
import type { AnswerOf } from '@muster/advice/file/answerSchemas';
import type { GpuModel } from '@muster/advice/gpus';
import { readSpecDocument, type SpecDocument } from '@muster/common/spec/document';
import { formatProblems, type SpecSource } from '@muster/common/spec/format';
import { type SpecPath, withValueAt } from '@muster/common/spec/path';
import { type Finding, noOrigin, type PlacedFinding, toProblems } from '@muster/common/spec/problems';
import type { Command } from 'commander';
import type { Context } from '../context.ts';
import { CliError } from '../errors.ts';
import { count } from '../output/text.ts';
import { readSpecFile } from './spec.ts';

const kind = {
  jobAt: ['no job is in this file'],
  expected: 'a training context: task_type and training_context',
};

interface ContextFlag {
  readonly path: SpecPath;
  /** `--gpu-type` */
  readonly long: string;
  readonly usage: string;
  readonly about: string;
  read(typed: string): unknown;
}

const contextFlags: readonly ContextFlag[] = contextPlaces.flatMap(({ path, field }) =>
  field.flag === undefined
    ? []
    : [
        {
          path,
          long: field.flag.split(' ')[0] ?? '',
          usage: field.flag,
          about: field.about,
          read: readTyped,
        },
      ],
);

/** Text that is no number goes to the checks as it is. */
function readTyped(typed: string): unknown {
  return /^\d+(?:\.\d+)?$/.test(typed) ? Number(typed) : typed;
}

export function withContextFlags(command: Command): Command {
  command.optionsGroup('The training (each wins over the file):');
  for (const { usage, about } of contextFlags) command.option(usage, about);
  return command;
}

/** `--gpu-type` → `gpuType`, as commander names it. */
function optionName(long: string): string {
  return long.slice(2).replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
}

/**
 * @param file null: flags alone
 * @throws {CliError} with every problem and its place
 */
export async function adviseOnInput<Task extends AdviceTask>(
  task: Task,
  file: string | null,
  flags: Readonly<Record<string, unknown>>,
  gpus: readonly GpuModel[],
  context: Context,
): Promise<AnswerOf<Task>> {
  const text = file === null ? null : await readSpecFile(file, context);
  const source = file === null || text === null ? null : { file: file === '-' ? 'stdin' : file, text };
  const read = text === null ? null : readSpecDocument(text, kind);
  if (read !== null && !read.ok) throw refused(read.findings, source);
  const document = read === null ? null : read.document;
  let value: unknown = document?.value ?? { training_context: {} };
  const typed = new Map<string, string>();
  for (const { path, long, read: readFlag } of contextFlags) {
    const written = flags[optionName(long)];
    if (typeof written !== 'string') continue;
    value = withValueAt(value, path, readFlag(written));
    typed.set(path.join('.'), long);
  }
  const outcome = adviseAs(task, value, gpus);
  const first = document?.findings ?? [];
  if (outcome.ok && first.length === 0) return outcome.answer;
  const found = outcome.ok ? [] : outcome.findings;
  const placed = found.map((finding) => ({ finding, origin: originOf(finding, document, typed) }));
  throw refused([...first, ...placed], source);
}

function originOf(
  { path, at }: Finding,
  document: SpecDocument | null,
  typed: ReadonlyMap<string, string>,
): PlacedFinding['origin'] {
  const flag = typed.get(path.join('.'));
  if (flag !== undefined) return { ...noOrigin, flag };
  return document === null ? noOrigin : document.originOf(path, at);
}

function refused(findings: readonly PlacedFinding[], source: SpecSource | null): CliError {
  const problems = toProblems(findings);
  return new CliError(`not a valid training context: ${count(problems.length, 'problem')}`, {
    code: 'invalid',
    hints: [formatProblems(problems, source)],
    problems,
  });
}
