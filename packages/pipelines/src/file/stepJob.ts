/** What a step runs: its job, its command or its sweep, with parameters, inputs and outputs filled in. Pure. */
import type { ArtifactView } from '@muster/common/pipelines';
import { isMapping } from '@muster/common/spec/path';
import type { Finding } from '@muster/common/spec/problems';
import type { JobSpec } from '@muster/common/spec/types';
import { checkJobSpec } from '@muster/common/spec/validate';
import {
  type CheckedArtifact,
  isArtifactType,
  type WantedArtifact,
  withArtifacts,
} from '../artifactScript.ts';
import type { PipelineSpec, PipelineStep, PipelineValue, PipelineValues, PlainValue } from '../model.ts';
import { artifactsOfJob, inputPath, type StorePlace, storedOutputPath } from '../storeArtifacts.ts';
import { type StepValues, substitute } from '../substitute.ts';

/** Labels of the jobs of steps. */
export const pipelineLabel = 'muster.pipeline';
export const stepLabel = 'muster.step';
const nameLengthMax = 63;

export interface StepRun {
  readonly pipeline: Pick<PipelineSpec, 'name' | 'artifacts' | 'workdir' | 'env'>;
  /** Id of the run. */
  readonly run: string;
  readonly project: string;
  readonly step: PipelineStep;
  readonly index: number;
  readonly try: number;
  readonly item: PlainValue | null;
  readonly params: PipelineValues;
  /** What its inputs are, by name: artifacts of all instances of a step, or a text. */
  readonly inputs: Readonly<Record<string, readonly ArtifactView[] | string>>;
}

/** Values of a parameter that is a list; null: the step runs once. */
export function itemsOf({ forEach }: PipelineStep, params: PipelineValues): readonly PlainValue[] | null {
  if (forEach === null) return null;
  if (!('parameter' in forEach)) return forEach;
  const items = params[forEach.parameter];
  return Array.isArray(items) ? (items as readonly PlainValue[]) : [];
}

export function countOfInstances(step: PipelineStep, params: PipelineValues): number {
  return itemsOf(step, params)?.length ?? 1;
}

/**
 * Each run, step, item and try has a directory of its own, so that nothing that another step reads is written again. In a store the
 * paths are below that directory (`stepPlaceOf`).
 */
export function outputsOf(run: Omit<StepRun, 'inputs'>): readonly WantedArtifact[] {
  const values = valuesOf({ ...run, inputs: {} }, {});
  const isStored = run.pipeline.artifacts?.kind === 'store';
  const root = stepPlaceOf(run);
  return run.step.outputs.map(({ name, type, path }) => {
    const filled = String(substitute(path, values));
    return { name, type, path: isStored || filled.startsWith('/') ? filled : `${root}/${filled}` };
  });
}

/** A directory, or the URL of a store below which each attempt has a place of its own. */
export function stepPlaceOf(run: Omit<StepRun, 'inputs'>): string {
  const { pipeline, step, index, params } = run;
  const place = `${step.name}${step.forEach === null ? '' : `.${index}`}-${run.try}`;
  const { artifacts } = pipeline;
  const text = artifacts === null ? '' : artifacts.kind === 'store' ? artifacts.url : artifacts.path;
  const values = { ...valuesOf({ ...run, inputs: {} }, {}), params };
  return `${String(substitute(text, values))}/${run.run}/${place}`;
}

export type StepJobResult =
  | { readonly ok: true; readonly job: JobSpec }
  | { readonly ok: false; readonly findings: readonly Finding[] };

/** The job of a step that is a job or a command. */
export function stepJob(run: StepRun): StepJobResult {
  const { pipeline, step, params } = run;
  const outputs = outputsOf(run);
  const isStored = pipeline.artifacts?.kind === 'store';
  const seen = outputs.map(({ name, path }) => [name, isStored ? storedOutputPath(path) : path]);
  const values = valuesOf(run, Object.fromEntries(seen) as StepValues['outputs']);
  const filled = fileOf(step, values);
  const checked = checkJobSpec(
    isMapping(filled) ? { ...withCommon(run, values, filled), ...storeOf(run, outputs) } : filled,
  );
  if (!checked.ok) return checked;
  const { spec } = checked;
  if (spec.phases.length > 0) return { ok: false, findings: [phasesInStep] };
  const isMoved = spec.artifacts !== null;
  const checks = Object.values(run.inputs).flatMap((input) =>
    typeof input === 'string' ? [] : input.flatMap((each) => checkedOf(each)),
  );
  if (spec.stopSignal === 'SIGINT' && !isStored && (checks.length > 0 || handlesArtifacts(step)))
    return { ok: false, findings: [interruptWithArtifacts] };
  return {
    ok: true,
    job: {
      ...spec,
      name: nameOf(pipeline.name, run),
      command: isMoved ? spec.command : withArtifacts(spec.command, checks, outputs),
      env: { ...variablesOf(run, params, values), ...spec.env },
      labels: { ...spec.labels, [pipelineLabel]: run.run, [stepLabel]: step.name },
    },
  };
}

/** Also before it is known what its inputs are. `best` of a sweep is a text. */
function handlesArtifacts({ inputs, outputs }: PipelineStep): boolean {
  return outputs.length > 0 || inputs.some((each) => each.kind === 'output' && each.output !== 'best');
}

/** A shell starts the program in the background, where it ignores this signal. */
const interruptWithArtifacts: Finding = {
  path: ['stop_signal'],
  at: 'value',
  message: 'got SIGINT in a step with artifacts',
  expected:
    'SIGTERM, SIGUSR1, SIGUSR2 or SIGHUP: the shell that checks the artifacts starts the program with SIGINT ignored',
  suggestion: 'SIGTERM',
};

const phasesInStep: Finding = {
  path: ['phases'],
  at: 'value',
  message: 'given in a step of a pipeline',
  expected: 'a step for each phase, or the job with its phases outside of the pipeline',
  suggestion: null,
};

/** The sweep file of a step that is a sweep, as a plain value. */
export function stepSweep(run: StepRun): unknown {
  const { pipeline, step } = run;
  const values = valuesOf(run, {});
  const filled = fileOf(step, values);
  if (!isMapping(filled) || !isMapping(filled['job'])) return filled;
  const { job } = filled;
  const labels = isMapping(job['labels']) ? job['labels'] : {};
  return {
    ...filled,
    name: nameOf(pipeline.name, run),
    job: {
      ...withCommon(run, values, job),
      ...storeOf(run, []),
      labels: { ...labels, [pipelineLabel]: run.run, [stepLabel]: step.name },
    },
  };
}

/**
 * What decides whether a step does again what it has done before: its file with the values of parameters, the digests of its inputs,
 * and the code. To be hashed. null: the step is not cached.
 */
export function cacheText(run: StepRun, code: string | null): string | null {
  const { step, params, item, project, pipeline } = run;
  if (step.cache === null) return null;
  const digests = Object.fromEntries(
    Object.entries(run.inputs).map(([name, input]) => [
      name,
      typeof input === 'string' ? input : input.map(({ type, digest }) => `${type} ${digest}`),
    ]),
  );
  const outputs = step.outputs.map(({ name, type, path }) => ({ name, type, path }));
  const names = Object.fromEntries(outputs.map(({ name }) => [name, name]));
  const file = fileOf(step, { params, inputs: digests, outputs: names, item });
  return JSON.stringify([
    1,
    project,
    step.work.kind,
    sorted(file),
    sorted(params),
    item,
    sorted(digests),
    outputs,
    pipeline.workdir,
    sorted(pipeline.env),
    code,
    // What lies in another place is not taken, because these jobs could not read it.
    ...(pipeline.artifacts?.kind === 'store' ? [storeText(pipeline.artifacts)] : []),
  ]);
}

/** The bucket of a store, wherever in it. */
function storeText({ url, endpoint }: StorePlace): string {
  return `${endpoint ?? ''} ${url.split('/')[2] ?? ''}`;
}

/** Of a job without artifacts nothing is moved. */
function storeOf(run: StepRun, outputs: readonly WantedArtifact[]): Readonly<Record<string, unknown>> {
  const { artifacts } = run.pipeline;
  const hasInputs = Object.values(run.inputs).some((input) => typeof input !== 'string' && input.length > 0);
  if (artifacts?.kind !== 'store' || !(hasInputs || outputs.length > 0)) return {};
  return { artifacts: artifactsOfJob(artifacts, stepPlaceOf(run), run.inputs, outputs) };
}

/** What all jobs of a pipeline or of a step have, where they do not say it themselves. */
function withCommon(
  { pipeline: { workdir, env }, project, step: { jobSettings } }: StepRun,
  values: StepValues,
  job: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const own = isMapping(job['env']) ? job['env'] : {};
  const place = workdir === null || job['image'] !== undefined ? {} : { workdir };
  const settings = substitute(jobSettings, values) as Readonly<Record<string, unknown>>;
  return { project, ...place, ...settings, ...job, env: { ...env, ...own } };
}

function fileOf({ work }: PipelineStep, values: StepValues): unknown {
  return substitute(work.kind === 'run' ? { command: work.command } : work.file, values);
}

function valuesOf({ pipeline, params, inputs, item }: StepRun, outputs: StepValues['outputs']): StepValues {
  const isStored = pipeline.artifacts?.kind === 'store';
  const paths = Object.entries(inputs).map(
    ([name, input]) => [name, pathsOf(name, input, isStored)] as const,
  );
  return { params, item, outputs, inputs: Object.fromEntries(paths) };
}

function pathsOf(
  name: string,
  input: readonly ArtifactView[] | string,
  isStored: boolean,
): string | readonly string[] {
  if (typeof input === 'string') return input;
  const paths = input.map(({ path }, index) => (isStored ? inputPath(name, index, path) : path));
  return paths.length === 1 ? (paths[0] ?? '') : paths;
}

function checkedOf({ name, type, path, digest }: ArtifactView): readonly CheckedArtifact[] {
  return isArtifactType(type) ? [{ name, type, path, digest }] : [];
}

/** Lists have a value on each line. */
function variablesOf(
  run: StepRun,
  params: PipelineValues,
  { inputs, outputs }: StepValues,
): Record<string, string> {
  const text = (value: PipelineValue) => (Array.isArray(value) ? value.join('\n') : String(value));
  const named = (prefix: string, values: Readonly<Record<string, PipelineValue>>) =>
    Object.entries(values).map(([name, value]) => [`${prefix}${name}`, text(value)]);
  return Object.fromEntries([
    ...named('MUSTER_PARAM_', params),
    ...named('MUSTER_INPUT_', inputs),
    ...named('MUSTER_OUTPUT_', outputs),
    ['MUSTER_PIPELINE', run.run],
    ['MUSTER_STEP', run.step.name],
    ...(run.item === null ? [] : [['MUSTER_ITEM', String(run.item)]]),
  ]);
}

function nameOf(pipeline: string, { step, index }: StepRun): string {
  const place = step.name.replaceAll('_', '-') + (step.forEach === null ? '' : `-${index}`);
  const room = nameLengthMax - place.length - 1;
  return `${pipeline.slice(0, room).replace(/-+$/, '')}-${place}`;
}

/** With the keys of its mappings in order. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isMapping(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, each]) => [key, sorted(each)]),
  );
}
