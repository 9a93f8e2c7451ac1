/**
 * What an AutoML run does: a job that checks the data, a sweep whose parameters choose the model and its settings, and a job that ranks
 * the trials and writes the report. Pure. The three are also the steps of a pipeline.
 */
import { formatDuration } from '@muster/common/spec/duration';
import type { PipelineConfig } from '../pipeline/designPipeline.ts';
import type { AutomlContext, AutomlModel } from './automlFields.ts';
import { automlParameters, type SpaceFile } from './automlSpace.ts';

/** A job file. */
export interface AutomlJob {
  readonly name: string;
  readonly command: readonly string[];
  readonly args?: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly workdir: string;
  readonly resources: Readonly<Record<string, number>>;
  readonly max_runtime?: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** A sweep file. */
export interface AutomlSweep {
  readonly name: string;
  readonly trials: number;
  readonly seed: number;
  readonly parallel?: number;
  readonly max_failures: number;
  readonly objective: { readonly metric: 'eval_loss'; readonly goal: 'min'; readonly of: 'last' };
  readonly early_stopping: { readonly rule: 'asha'; readonly min_steps: number; readonly reduction: number };
  readonly parameters: SpaceFile;
  readonly job: AutomlJob;
}

export interface AutomlPlan {
  readonly name: string;
  readonly dir: string;
  readonly models: readonly AutomlModel[];
  readonly profile: AutomlJob;
  readonly sweep: AutomlSweep;
  readonly finish: AutomlJob;
  readonly pipeline_config: PipelineConfig;
  readonly reports: readonly string[];
  readonly notes: readonly string[];
}

/** What the profile of the data has found on a node. */
export interface AutomlFacts {
  /** Of `xgboost` and `lightgbm`, those that the Python there has. */
  readonly libraries: readonly string[];
}

export const automlLabel = 'muster.automl';
export const automlStepLabel = 'muster.automl.step';
/** The program of the worker: a JSON of file names and texts, compressed by zlib, in base64. */
export const programVariable = 'MUSTER_AUTOML_PROGRAM';

/** Each time three times as much of the training rows, in percent; all rows are 100. As the worker prints them. */
const firstStep = 11;
const reduction = 3;
const mbOfGb = 1_000;
const failuresMax = 10;

/**
 * Writes the worker into the directory of the run, so that every trial runs the same program on every node, and starts it. It has no
 * braces, which would be parameters.
 */
const startProgram = `import base64, json, os, pathlib, runpy, sys, zlib
folder = pathlib.Path(sys.argv[1], "program", "muster_automl")
folder.mkdir(parents=True, exist_ok=True)
files = json.loads(zlib.decompress(base64.b64decode(os.environ["${programVariable}"])))
for name in files:
    new = folder / (name + ".new")
    new.write_text(files[name], encoding="utf-8")
    os.replace(new, folder / name)
sys.path.insert(0, str(folder.parent))
del sys.argv[1]
runpy.run_module("muster_automl", run_name="__main__", alter_sys=True)`;

/**
 * @param id of the run, for labels and names: lower-case letters and digits
 * @param program see `programVariable`
 * @param facts null: not known yet; then only the models of scikit-learn are tried, unless others are asked for
 */
export function automlPlan(
  context: AutomlContext,
  {
    id,
    program,
    facts,
  }: { readonly id: string; readonly program: string; readonly facts: AutomlFacts | null },
): AutomlPlan {
  const { data, constraints, run } = context;
  const dir = run.dir ?? `${data.path}.automl`;
  const name = `automl-${id}`;
  const models = modelsOf(context, facts);
  const { timeMs } = constraints;
  const job = (step: string): Pick<AutomlJob, 'name' | 'workdir' | 'resources' | 'labels'> => ({
    name: `${name}-${step}`,
    // Python finds modules in the working directory first, and every node has this one.
    workdir: '/',
    resources: {
      cpus: run.cpus,
      ...(context.compute.memoryGb === null ? {} : { memory_mb: context.compute.memoryGb * mbOfGb }),
    },
    labels: { [automlLabel]: id, [automlStepLabel]: step },
  });
  const worker = (verb: string, ...args: readonly string[]) => ({
    command: [run.python, '-m', 'muster_automl', verb, '--run', dir, ...args],
    env: { PYTHONPATH: `${dir}/program` },
  });
  const profile: AutomlJob = {
    ...job('profile'),
    command: [run.python, '-c', startProgram, dir, 'profile', '--run', dir, ...profileOptions(context)],
    env: { [programVariable]: program },
  };
  const trial = worker('trial', '--out', `${dir}/trials/{trial}`, '--cpus', String(run.cpus));
  const finish = worker('finish', ...(constraints.interpretable ? ['--single'] : []));
  const reports = ['report.html', 'report.md', 'leaderboard.csv'].map((file) => `${dir}/${file}`);
  return {
    name,
    dir,
    models,
    profile,
    sweep: {
      name,
      trials: constraints.trials,
      seed: run.seed,
      ...(constraints.parallel === null ? {} : { parallel: constraints.parallel }),
      max_failures: failuresMax,
      objective: { metric: 'eval_loss', goal: 'min', of: 'last' },
      early_stopping: { rule: 'asha', min_steps: firstStep, reduction },
      parameters: automlParameters(models, constraints.interpretable),
      job: {
        ...job('trial'),
        ...trial,
        ...(timeMs === null ? {} : { max_runtime: formatDuration(timeMs) }),
      },
    },
    finish: { ...job('finish'), ...finish },
    pipeline_config: {
      orchestrator: 'muster',
      steps: [
        { name: 'profile', needs: [], command: profile.command, outputs: [`${dir}/run.json`] },
        { name: 'trials', needs: ['profile'], command: trial.command, outputs: [`${dir}/trials`] },
        { name: 'finish', needs: ['trials'], command: finish.command, outputs: reports },
      ],
      triggers: [{ kind: 'manual', value: null }],
    },
    reports,
    notes: notesOf(context),
  };
}

function modelsOf(
  { constraints, framework }: AutomlContext,
  facts: AutomlFacts | null,
): readonly AutomlModel[] {
  if (constraints.interpretable) return constraints.models ?? ['linear', 'tree'];
  if (constraints.models !== null) return constraints.models;
  const further = (['xgboost', 'lightgbm'] as const).filter(
    (each) => framework === each || facts?.libraries.includes(each) === true,
  );
  return ['linear', 'forest', 'extra_trees', 'boosting', 'mlp', ...further];
}

function profileOptions({ data, task, constraints, run }: AutomlContext): readonly string[] {
  const option = (flag: string, value: string | null) => (value === null ? [] : [`${flag}=${value}`]);
  return [
    ...option('--data', data.path),
    ...option('--target', data.target),
    ...option('--task', task),
    ...option('--metric', constraints.metric),
    ...option('--seed', String(run.seed)),
    ...option('--encoding', data.encoding),
    ...option('--time-column', data.timeColumn),
    ...data.ignore.flatMap((each) => option('--ignore', each)),
    ...data.keep.flatMap((each) => option('--keep', each)),
  ];
}

function notesOf({ compute, training, constraints }: AutomlContext): readonly string[] {
  const { gpuType, gpuCount, storageGb } = compute;
  const { epochs, batchSize, distributedStrategy } = training;
  const unused = Object.entries({
    gpu_type: gpuType,
    gpu_count: gpuCount,
    storage_gb: storageGb,
    epochs,
    batch_size: batchSize,
    distributed_strategy: distributedStrategy === 'none' ? null : distributedStrategy,
  })
    .filter(([, value]) => value !== null)
    .map(([key]) => key);
  return [
    ...(unused.length === 0 ? [] : [`No effect on AutoML: ${unused.join(', ')}.`]),
    ...(constraints.gpuHours === null ? [] : ['Trials use no GPU, so gpu_hours is always kept.']),
  ];
}

/** The same run as a pipeline file. */
export function automlPipeline({
  name,
  profile,
  sweep,
  finish,
}: AutomlPlan): Readonly<Record<string, unknown>> {
  return {
    name,
    steps: {
      profile: { job: profile },
      trials: { sweep, after: ['profile'] },
      finish: { job: finish, after: ['trials'] },
    },
  };
}
