/** `design_pipeline`: a pipeline file from the data to a registered model, with the programs that it runs. Pure. */
import type { ConfigFile } from '../configFiles.ts';
import type { TrainingContext } from '../contextFields.ts';
import { cpuNode } from '../gpus.ts';
import {
  checkProgram,
  dataHelper,
  evaluateProgram,
  preprocessProgram,
  registerProgram,
} from './dataPrograms.ts';
import { modelPrograms } from './modelPrograms.ts';

export interface PipelineStepAdvice {
  readonly name: string;
  /** Steps whose outputs it reads. */
  readonly needs: readonly string[];
  readonly command: readonly string[];
  readonly outputs: readonly string[];
}

/** Part of the contract with scripts: exactly these members. */
export interface PipelineConfig {
  readonly orchestrator: 'muster';
  readonly steps: readonly PipelineStepAdvice[];
  readonly triggers: readonly { readonly kind: 'manual'; readonly value: null }[];
}

export interface PipelineAdvice {
  readonly pipeline_config: PipelineConfig;
  readonly files: readonly ConfigFile[];
  readonly reasons: readonly string[];
  readonly assumptions: readonly string[];
}

export type PipelineDraft = Readonly<Record<string, unknown>>;

interface Step {
  readonly inputs: Readonly<Record<string, string>>;
  readonly outputs: Readonly<Record<string, { readonly type: 'file' | 'directory'; readonly path?: string }>>;
  readonly run?: readonly string[];
  readonly job?: { readonly command: readonly string[]; readonly [setting: string]: unknown };
  readonly [setting: string]: unknown;
}

/**
 * @param context has passed the checks of `readContext`
 * @returns `pipeline`: what the pipeline file says, which its reader has to take
 */
export function designPipeline(context: TrainingContext): {
  readonly advice: PipelineAdvice;
  readonly pipeline: PipelineDraft;
} {
  const { framework } = context;
  const { model, train, packages } = modelPrograms[framework];
  const steps = stepsOf(context);
  const pipeline = pipelineOf(context, steps);
  const python = (name: string, about: string, text: string) => ({ name, about, text, fits: true });
  const images = context.modelType === 'cv' ? ['pillow'] : [];
  return {
    pipeline,
    advice: {
      pipeline_config: {
        orchestrator: 'muster',
        steps: Object.entries(steps).map(([name, step]) => adviceOf(name, step)),
        triggers: [{ kind: 'manual', value: null }],
      },
      files: [
        python('pipeline.yaml', 'pipeline file: muster pipeline run -f pipeline.yaml', yamlOf(pipeline)),
        python('pipeline_data.py', 'what the programs share', dataHelper),
        python('check_data.py', 'refuses data that a training would fail on', checkProgram),
        python('preprocess.py', 'splits the data, and makes numbers of it', preprocessProgram),
        python('model.py', `the model: ${framework}`, model),
        python('train.py', 'trains, and prints losses as Muster reads them', train),
        python(
          'evaluate.py',
          'scores the model on unseen rows; fails where a constant is as good',
          evaluateProgram,
        ),
        python('register.py', 'makes the model the next version in the registry', registerProgram),
        python(
          'requirements.txt',
          'packages of Python',
          `${['numpy', 'pandas', 'joblib', ...packages, ...images].join('\n')}\n`,
        ),
      ],
      reasons: reasonsOf(context),
      assumptions: [
        'artifacts, registry and data are directories that all nodes share; change them with --param',
        'code is where the programs are: the directory in which the pipeline is started, unless --param code=PATH says another',
        'the packages of requirements.txt are installed on the nodes, Parquet needs pyarrow',
      ],
    },
  };
}

function isNetwork({ framework }: TrainingContext): boolean {
  return framework === 'pytorch' || framework === 'tensorflow';
}

/** A program of the pipeline. The braces are those of a pipeline file. */
function program(name: string, words: readonly string[]): readonly string[] {
  return ['python3', param('code', `/${name}`), ...words];
}

function param(name: string, rest = ''): string {
  return `\${params.${name}}${rest}`;
}

function stepsOf(context: TrainingContext): Readonly<Record<string, Step>> {
  const source = ['--data', param('data'), '--target', param('target')];
  const kinds = [
    ...(context.modelType === 'timeseries' ? ['--ordered'] : []),
    ...(context.modelType === 'nlp' || context.modelType === 'multimodal' ? ['--text'] : []),
  ];
  const splitting = ['--test-size', param('test_size'), '--seed', param('seed'), ...kinds];
  return {
    check: {
      inputs: {},
      outputs: { report: { type: 'file', path: 'report.json' } },
      run: program('check_data.py', [...source, '--out', `\${outputs.report}`]),
      timeout: '1h',
    },
    preprocess: {
      after: ['check'],
      inputs: {},
      outputs: { data: { type: 'directory' } },
      run: program('preprocess.py', [...source, ...splitting, '--out', `\${outputs.data}`]),
      timeout: '6h',
    },
    train: trainStep(context),
    evaluate: {
      inputs: { data: 'preprocess.data', model: 'train.model' },
      outputs: { metrics: { type: 'file', path: 'metrics.json' } },
      run: program('evaluate.py', [
        '--data',
        `\${inputs.data}`,
        '--model',
        `\${inputs.model}`,
        '--out',
        `\${outputs.metrics}`,
      ]),
      timeout: '1h',
    },
    register: {
      inputs: { data: 'preprocess.data', model: 'train.model', metrics: 'evaluate.metrics' },
      outputs: {},
      run: program('register.py', [
        '--model',
        `\${inputs.model}`,
        '--metrics',
        `\${inputs.metrics}`,
        '--data',
        `\${inputs.data}`,
        '--registry',
        param('registry'),
      ]),
      timeout: '1h',
    },
  };
}

function trainStep(context: TrainingContext): Step {
  const settings = isNetwork(context)
    ? ['--epochs', param('epochs'), '--batch-size', param('batch_size'), '--lr', param('lr')]
    : ['--learning-rate', param('lr'), '--trees', param('trees'), '--leaves', param('leaves')];
  const words = [
    '--data',
    `\${inputs.data}`,
    '--out',
    `\${outputs.model}`,
    ...settings,
    '--seed',
    param('seed'),
  ];
  const { nodes, gpus } = gpusOf(context);
  const resources = gpus === 0 ? { cpus: param('cpus') } : { nodes, gpus, ...gpuTypeOf(context) };
  const command =
    nodes * gpus > 1 && context.framework === 'pytorch'
      ? ['torchrun', param('code', '/train.py'), ...words]
      : program('train.py', words);
  const checkpoint =
    context.framework === 'pytorch' ? { checkpoint: { dir: `\${outputs.model}/checkpoints` } } : {};
  return {
    inputs: { data: 'preprocess.data' },
    outputs: { model: { type: 'directory' } },
    job: { command, resources, ...checkpoint },
    retries: { max: 2 },
    timeout: '24h',
  };
}

/** Trees of these programs are built on CPUs; TensorFlow's strategy here is one of a single node. */
function gpusOf(context: TrainingContext): { readonly nodes: number; readonly gpus: number } {
  const { compute, framework } = context;
  if (!isNetwork(context) || compute.gpuCount === null) return { nodes: 1, gpus: 0 };
  const gpus = Math.min(compute.gpuCount, compute.gpusPerNode);
  return { nodes: framework === 'tensorflow' ? 1 : Math.ceil(compute.gpuCount / compute.gpusPerNode), gpus };
}

function gpuTypeOf({ compute }: TrainingContext): Readonly<Record<string, string>> {
  return compute.gpuType === null ? {} : { gpu_type: compute.gpuType.toUpperCase() };
}

function pipelineOf(context: TrainingContext, steps: Readonly<Record<string, Step>>): PipelineDraft {
  const { framework, modelType, data, training } = context;
  const name = `${framework}-${modelType}`;
  const epochsUsual = 20;
  const settings = isNetwork(context)
    ? {
        epochs: training.epochs === 1 ? epochsUsual : training.epochs,
        batch_size: training.batchSize ?? 64 * Math.max(1, gpusOf(context).nodes * gpusOf(context).gpus),
        lr: 0.001,
      }
    : { lr: 0.1, trees: 500, leaves: 31 };
  // A node with fewer of them runs the pipeline as well, with another value of the parameter.
  const cpus = gpusOf(context).gpus === 0 ? { cpus: cpuNode.cores } : {};
  return {
    name,
    artifacts: param('artifacts'),
    params: {
      data: data.path ?? '',
      target: data.target,
      code: '.',
      artifacts: `/shared/artifacts/${name}`,
      registry: `/shared/models/${name}`,
      test_size: 0.2,
      seed: 1,
      ...settings,
      ...cpus,
    },
    steps,
  };
}

function adviceOf(name: string, { inputs, outputs, run, job, after }: Step): PipelineStepAdvice {
  const needed = Object.values(inputs).map((each) => each.split('.')[0] ?? '');
  return {
    name,
    needs: [...new Set([...(Array.isArray(after) ? after.map(String) : []), ...needed])],
    command: run ?? job?.command ?? [],
    outputs: Object.keys(outputs),
  };
}

function reasonsOf(context: TrainingContext): readonly string[] {
  const { framework, modelType, compute } = context;
  const { nodes, gpus } = gpusOf(context);
  return [
    gpus === 0
      ? `train runs on ${cpuNode.cores} CPUs, or as many as --param cpus=N says${compute.gpuCount === null ? '' : `; ${framework} does not use the GPUs here`}.`
      : `train runs on ${nodes * gpus} GPUs${nodes * gpus === compute.gpuCount ? '' : `, not ${compute.gpuCount}: MirroredStrategy has one node`}.`,
    modelType === 'timeseries'
      ? 'Rows are a series in time: the last ones are the test set, so that nothing is known of the future.'
      : 'The test set is drawn at random, with a seed.',
    'What is measured for preprocessing is measured on training rows only, and training stops by a validation set of its own.',
    'evaluate fails where the model is not better than a constant, so that such a model is not registered.',
  ];
}

/** Settings of parameters and steps in lines of their own; what is within is JSON, which YAML has too. */
function yamlOf(pipeline: PipelineDraft): string {
  const lines = Object.entries(pipeline).flatMap(([key, value]) => {
    if (key === 'params')
      return [
        `${key}:`,
        ...Object.entries(value as PipelineDraft).map(([name, each]) => `  ${name}: ${JSON.stringify(each)}`),
      ];
    if (key !== 'steps') return [`${key}: ${JSON.stringify(value)}`];
    const steps = Object.entries(value as Readonly<Record<string, PipelineDraft>>);
    return [
      `${key}:`,
      ...steps.flatMap(([name, step]) => [
        `  ${name}:`,
        ...Object.entries(step)
          .filter(([, each]) => JSON.stringify(each) !== '{}')
          .map(([setting, each]) => `    ${setting}: ${JSON.stringify(each)}`),
      ]),
    ];
  });
  return `${lines.join('\n')}\n`;
}
