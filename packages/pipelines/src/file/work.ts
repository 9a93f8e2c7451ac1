/** Checks the job or the sweep of a step as they would be with the defaults of the parameters. */
import { isMapping, type SpecPath, valueAt } from '@muster/common/spec/path';
import type { Finding } from '@muster/common/spec/problems';
import { checkJobSpec } from '@muster/common/spec/validate';
import type { FileMapping, FileReader } from '@muster/experiments/file/findings';
import { readSweep } from '@muster/experiments/file/sweepFile';
import type { PipelineParameter, PipelineParameterType, PipelineStep, PipelineValue } from '../model.ts';
import { referencesIn, type StepValues, substitute } from '../substitute.ts';

/** Of parameters without a default, while a file is checked. */
const samples: Readonly<Record<PipelineParameterType, PipelineValue>> = {
  string: 'text',
  int: 1,
  float: 1,
  bool: true,
  list: ['text'],
};

export function checkWork(
  reader: FileReader,
  step: PipelineStep,
  params: readonly PipelineParameter[],
): void {
  const { work, forEach, jobSettings } = step;
  const items = forEach !== null && 'parameter' in forEach ? samples.list : forEach;
  const values: StepValues = {
    params: Object.fromEntries(params.map((each) => [each.name, each.default ?? samples[each.type]])),
    inputs: Object.fromEntries(step.inputs.map(({ name }) => [name, `/inputs/${name}`])),
    outputs: Object.fromEntries(step.outputs.map(({ name }) => [name, `/outputs/${name}`])),
    item: Array.isArray(items) ? (items[0] ?? null) : null,
  };
  const place = [step.group, step.name];
  const check = (path: SpecPath, file: FileMapping, sent: unknown, kind: 'job' | 'sweep') => {
    for (const finding of findingsOf(kind, sent)) {
      if (!dependsOnRun(valueAt(file, finding.path), params))
        reader.findings.push({ ...finding, path: [...path, ...finding.path] });
    }
  };
  check(place, jobSettings, substitute({ ...someJob, ...jobSettings }, values), 'job');
  if (work.kind === 'run') return;
  const path = [...place, work.kind];
  check(path, work.file, substitute(work.file, values), work.kind);
  refuseJobSettings(reader, path, step);
}

/** What a job file must have. */
const someJob = { command: ['true'] };

function findingsOf(kind: 'job' | 'sweep', value: unknown): readonly Finding[] {
  const checked = kind === 'job' ? checkJobSpec(value) : readSweep(value);
  return checked.ok ? [] : checked.findings;
}

/** Whether a value is only known once a run says it: a sample in its place proves nothing. */
function dependsOnRun(written: unknown, params: readonly PipelineParameter[]): boolean {
  return referencesIn(isMapping(written) ? null : written).some(
    ({ kind, name }) =>
      kind === 'item' || (kind === 'params' && params.find((each) => each.name === name)?.default === null),
  );
}

function refuseJobSettings(
  reader: FileReader,
  path: SpecPath,
  { work, inputs, outputs }: PipelineStep,
): void {
  const ofSweep = work.kind === 'sweep' && isMapping(work.file['job']) ? work.file['job'] : null;
  const job = ofSweep ?? (work.kind === 'job' ? work.file : {});
  if (job['project'] !== undefined)
    reader.contradiction(
      [...path, ...(ofSweep === null ? [] : ['job']), 'project'],
      'all jobs of a pipeline are of one project',
      'project of the pipeline',
    );
  if (work.kind === 'sweep' && work.file['warm_start'] !== undefined)
    reader.contradiction([...path, 'warm_start'], 'a sweep of a pipeline takes over no trials');
  if (work.kind !== 'job') return;
  const { array, after, command } = work.file;
  if (array !== undefined && array !== null)
    reader.contradiction([...path, 'array'], 'the job of a step is one job', 'for_each of the step');
  if (after !== undefined)
    reader.contradiction([...path, 'after'], 'steps wait for steps', 'after of the step');
  const isWrapped = outputs.length > 0 || inputs.some(({ kind }) => kind === 'output');
  if (isWrapped && command === undefined)
    reader.wrong([...path, 'command'], undefined, 'the command of a step with inputs or outputs');
}
