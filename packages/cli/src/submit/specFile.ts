/** Files of sweeps and pipelines, which hold job files: read and checked, with the place of each problem. */
import { readSpecDocument, type SpecDocument } from '@muster/common/spec/document';
import { formatProblems } from '@muster/common/spec/format';
import { type Finding, type PlacedFinding, toProblems } from '@muster/common/spec/problems';
import type { SpecProblem } from '@muster/common/spec/types';
import type { Context } from '../context.ts';
import { CliError } from '../errors.ts';
import { count } from '../output/text.ts';
import { readSpecFile } from './spec.ts';

type Failed = { readonly ok: false; readonly findings: readonly Finding[] };

/** @throws {CliError} with every problem and its place */
export async function readCheckedFile<Checked extends { readonly ok: true } | Failed>(
  file: string,
  context: Context,
  {
    noun,
    expected,
    check,
  }: {
    readonly noun: 'sweep' | 'pipeline';
    readonly expected: string;
    readonly check: (value: SpecDocument['value']) => Checked;
  },
): Promise<{
  readonly document: SpecDocument;
  readonly checked: Exclude<Checked, Failed>;
  /** The error that shows problems with their places in the file. */
  readonly refuse: (problems: readonly SpecProblem[]) => CliError;
}> {
  const text = await readSpecFile(file, context, `${noun} file`);
  const source = { file: file === '-' ? 'stdin' : file, text };
  const refuse = (problems: readonly SpecProblem[]) =>
    new CliError(`not a valid ${noun}: ${count(problems.length, 'problem')}`, {
      code: 'invalid',
      hints: [formatProblems(problems, source)],
      problems,
    });
  const read = readSpecDocument(text, { jobAt: ['job'], expected });
  if (!read.ok) throw refuse(toProblems(read.findings));
  const { document } = read;
  const checked = check(document.value);
  if (checked.ok && document.findings.length === 0)
    return { document, checked: checked as Exclude<Checked, Failed>, refuse };
  const known = new Set(document.findings.map(({ finding }) => JSON.stringify(finding.path)));
  const placed = (checked.ok ? [] : checked.findings)
    .filter(({ path }) => !known.has(JSON.stringify(path)))
    .map((finding): PlacedFinding => ({ finding, origin: document.originOf(finding.path, finding.at) }));
  throw refuse(toProblems([...document.findings, ...placed]));
}
