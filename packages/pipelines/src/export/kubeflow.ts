/**
 * A pipeline as the intermediate representation of Kubeflow Pipelines v2: `ml_pipelines.PipelineSpec` of `pipeline_spec.proto`, in its
 * JSON form. Pure.
 */
import { needsOf } from '../file/graph.ts';
import type { PipelineParameterType, PipelineSpec, PipelineStep } from '../model.ts';
import { kubeflowCondition, splitCondition } from './conditions.ts';
import { itemName, placeholderText } from './kubeflowText.ts';
import { type PieceText, type StepTexts, textsOf } from './stepTexts.ts';
import { commonlyUnmapped, type UnmappedSetting } from './unmapped.ts';

type Fields = Readonly<Record<string, unknown>>;

export interface KubeflowExport {
  readonly spec: Fields;
  readonly unmapped: readonly UnmappedSetting[];
  /** They have no image, and none was given for them. Kubeflow runs containers alone, so the export is of no use. */
  readonly withoutImage: readonly string[];
}

const parameterTypes: Readonly<Record<PipelineParameterType, string>> = {
  string: 'STRING',
  int: 'NUMBER_INTEGER',
  float: 'NUMBER_DOUBLE',
  bool: 'BOOLEAN',
  list: 'LIST',
};
const artifactType = { schemaTitle: 'system.Artifact', schemaVersion: '0.0.1' };

/** @param image of steps that have none */
export function kubeflowPipeline(pipeline: PipelineSpec, image: string | null): KubeflowExport {
  return new KubeflowWriter(pipeline, image).write();
}

class KubeflowWriter {
  private readonly pipeline: PipelineSpec;
  private readonly image: string | null;
  private readonly names: ReadonlyMap<string, string>;
  private readonly components: Record<string, Fields> = {};
  private readonly executors: Record<string, Fields> = {};
  private readonly unmapped: UnmappedSetting[];
  private readonly withoutImage: string[] = [];

  constructor(pipeline: PipelineSpec, image: string | null) {
    this.pipeline = pipeline;
    this.image = image;
    this.names = taskNames(pipeline.steps);
    this.unmapped = commonlyUnmapped(pipeline, () => false);
  }

  write(): KubeflowExport {
    const { pipeline } = this;
    const { steps } = pipeline;
    const ofGroup = (group: PipelineStep['group']) => steps.filter((step) => step.group === group);
    this.nameRest();
    const main = this.tasksOf(ofGroup('steps'), []);
    const last = ofGroup('finally');
    let tasks = main;
    if (last.length > 0) {
      const all = 'all-steps';
      this.components[`comp-${all}`] = { ...this.inputDefinitions([], false), dag: { tasks: main } };
      tasks = { [all]: this.task(all, [], {}), ...this.tasksOf(last, [all]) };
    }
    const parameters = Object.fromEntries(
      pipeline.params.map(({ name, type, default: preset }) => [
        name,
        { parameterType: parameterTypes[type], ...(preset === null ? {} : { defaultValue: preset }) },
      ]),
    );
    const spec = {
      pipelineInfo: { name: pipeline.name },
      schemaVersion: '2.1.0',
      sdkVersion: 'muster',
      components: this.components,
      deploymentSpec: { executors: this.executors },
      root: { ...(pipeline.params.length === 0 ? {} : { inputDefinitions: { parameters } }), dag: { tasks } },
    };
    return { spec, unmapped: this.unmapped, withoutImage: this.withoutImage };
  }

  private nameRest(): void {
    const { artifacts, parallel, params, steps } = this.pipeline;
    const add = (step: string | null, key: string, why: string) => this.unmapped.push({ step, key, why });
    if (artifacts !== null && steps.some(({ outputs }) => outputs.length > 0))
      add(null, 'artifacts', 'Kubeflow keeps outputs in its own pipeline root');
    if (parallel !== null) add(null, 'parallel', 'a run has no limit of tasks at the same time');
    if (params.some(({ type }) => type === 'list'))
      add(
        null,
        'params',
        'a list in a text is written as JSON, and not as one argument or line for each value',
      );
    for (const { name, group, timeoutMs, cache } of steps) {
      if (group === 'on_failure')
        add(name, group, 'no task runs only after a failure; the step is not in the file');
      if (timeoutMs !== null) add(name, 'timeout', 'the format has no time limit of a task');
      if (cache?.ttlMs != null) add(name, 'cache.ttl', 'an entry of the cache does not expire');
    }
  }

  private tasksOf(steps: readonly PipelineStep[], behind: readonly string[]): Record<string, Fields> {
    return Object.fromEntries(
      steps.map((step) => {
        const needs = needsOf(step).map((name) => this.nameOf(name));
        const strategy = needs.length === 0 && behind.length > 0 ? 'ALL_UPSTREAM_TASKS_COMPLETED' : null;
        const condition = this.conditionOf(step);
        const policy = {
          ...(condition === null ? {} : { condition }),
          ...(strategy === null ? {} : { strategy }),
        };
        const hasPolicy = condition !== null || strategy !== null;
        const task = this.stepTask(step, needs.length === 0 ? behind : needs);
        return [this.nameOf(step.name), hasPolicy ? { ...task, triggerPolicy: policy } : task];
      }),
    );
  }

  /** All that a task depends on must have succeeded, so a condition need not ask for that. What does not map never holds. */
  private conditionOf(step: PipelineStep): string | null {
    const { params, steps } = this.pipeline;
    const add = (key: string, why: string) => this.unmapped.push({ step: step.name, key, why });
    const { succeeded, rest } = splitCondition(step.when ?? 'true', needsOf(step));
    const mayBeSkipped = ({ name, when }: PipelineStep) =>
      when !== null && step.after.includes(name) && !succeeded.includes(name);
    if (steps.some(mayBeSkipped)) add('after', 'the step is also skipped when one of these was skipped');
    if (step.when === null || rest === null) return null;
    const condition = kubeflowCondition(rest, params);
    if (condition === null)
      add('when', 'a condition cannot ask for the state of a step; the step never runs');
    return condition ?? 'false';
  }

  /** Of a step with `for_each`, a task over a component of its own, because only such tasks can be repeated. */
  private stepTask(step: PipelineStep, dependent: readonly string[]): Fields {
    const name = this.nameOf(step.name);
    const sources = this.sourcesOf(step);
    const artifacts = Object.fromEntries(
      sources.map(({ input, source, output }) => [
        input,
        { taskOutputArtifact: { producerTask: this.nameOf(source), outputArtifactKey: output } },
      ]),
    );
    if (step.forEach === null) {
      this.addContainer(step, name);
      return { ...this.task(name, dependent, artifacts), ...policiesOf(step) };
    }
    const one = `${name}-item`;
    this.addContainer(step, one);
    const fromParent = Object.fromEntries(
      sources.map(({ input }) => [input, { componentInputArtifact: input }]),
    );
    const inner = { ...this.task(one, [], fromParent, [itemName]), ...policiesOf(step) };
    const outputs = Object.fromEntries(
      step.outputs.map((each) => [
        each.name,
        { artifactSelectors: [{ producerSubtask: one, outputArtifactKey: each.name }] },
      ]),
    );
    this.components[`comp-${name}`] = {
      ...this.inputDefinitions(sources, true, step),
      ...outputDefinitions(step, true),
      dag: {
        tasks: { [one]: inner },
        ...(step.outputs.length === 0 ? {} : { outputs: { artifacts: outputs } }),
      },
    };
    const { forEach } = step;
    const items =
      'parameter' in forEach ? { inputParameter: forEach.parameter } : { raw: JSON.stringify(forEach) };
    return { ...this.task(name, dependent, artifacts), parameterIterator: { items, itemInput: itemName } };
  }

  private task(
    name: string,
    dependent: readonly string[],
    artifacts: Fields,
    further: readonly string[] = [],
  ): Fields {
    const names = [...this.pipeline.params.map((each) => each.name), ...further];
    const inputs = {
      ...(names.length === 0
        ? {}
        : { parameters: Object.fromEntries(names.map((each) => [each, { componentInputParameter: each }])) }),
      ...(Object.keys(artifacts).length === 0 ? {} : { artifacts }),
    };
    return {
      taskInfo: { name },
      componentRef: { name: `comp-${name}` },
      ...(dependent.length === 0 ? {} : { dependentTasks: dependent }),
      ...(Object.keys(inputs).length === 0 ? {} : { inputs }),
    };
  }

  private addContainer(step: PipelineStep, name: string): void {
    const texts = textsOf(this.pipeline, step);
    const sources = this.sourcesOf(step);
    this.components[`comp-${name}`] = {
      ...this.inputDefinitions(sources, step.forEach !== null, step),
      ...outputDefinitions(step, false),
      executorLabel: `exec-${name}`,
    };
    const written = texts.image === null ? null : this.constantOf(step, 'job.image', texts.image);
    const image = written ?? this.image;
    if (image === null) this.withoutImage.push(step.name);
    if (texts.workdir !== null && step.work.kind === 'run')
      this.unmapped.push({
        step: step.name,
        key: 'workdir',
        why: 'a container has no working directory here',
      });
    for (const { input, source } of sources)
      if (this.pipeline.steps.some((each) => each.name === source && each.forEach !== null))
        this.unmapped.push({
          step: step.name,
          key: `inputs.${input}`,
          why: 'of the outputs of a step with for_each, only the path of the first is given',
        });
    for (const { name: output, path } of step.outputs)
      if (path.startsWith('/'))
        this.unmapped.push({
          step: step.name,
          key: `outputs.${output}`,
          why: `Kubeflow chooses the path; what the program writes to ${path} itself is not kept`,
        });
    this.executors[`exec-${name}`] = {
      container: { image: image ?? '', ...this.commandOf(step, texts), ...this.resourcesOf(step, texts) },
    };
  }

  /** A text without references; a parameter counts with its default. */
  private constantOf({ name }: PipelineStep, key: string, text: PieceText): string | null {
    const parts = text.map((piece) => {
      if (piece.kind === 'text') return piece.text;
      const param =
        piece.kind === 'param' ? this.pipeline.params.find((each) => each.name === piece.name) : null;
      return param?.default == null ? null : String(param.default);
    });
    if (parts.includes(null)) {
      this.unmapped.push({ step: name, key, why: 'it depends on a value that is only known in a run' });
      return null;
    }
    if (text.some(({ kind }) => kind !== 'text'))
      this.unmapped.push({
        step: name,
        key,
        why: 'it is the same in all runs: that of the default of its parameter',
      });
    return parts.join('');
  }

  private commandOf(step: PipelineStep, { command, env }: StepTexts): Fields {
    if (command === null)
      return { command: ['sh', '-c', `echo 'sweeps do not run in Kubeflow: ${step.name}' >&2; exit 1`] };
    for (const text of [...command, ...env.values()])
      if (text.some((piece) => piece.kind === 'text' && piece.text.includes('{{$')))
        this.unmapped.push({ step: step.name, key: 'command', why: 'Kubeflow replaces its "{{$"' });
    const directories = step.outputs
      .filter(({ type }) => type === 'directory')
      .map(({ name }) => `{{$.outputs.artifacts['${name}'].path}}`);
    const places = directories.map((_, index) => `"$${index + 1}"`).join(' ');
    const prelude =
      directories.length === 0
        ? []
        : [
            'sh',
            '-c',
            `mkdir -p ${places} && shift ${directories.length} && exec "$@"`,
            'muster',
            ...directories,
          ];
    const isConstant = ([, text]: readonly [string, PieceText]) => text.every(({ kind }) => kind === 'text');
    const constants = [...env]
      .filter(isConstant)
      .map(([name, text]) => ({ name, value: placeholderText(text) }));
    const others = [...env]
      .filter((each) => !isConstant(each))
      .map(([name, text]) => `${name}=${placeholderText(text)}`);
    return {
      command: [...prelude, 'env', 'MUSTER_PIPELINE={{$.pipeline_job_uuid}}', ...others],
      args: command.map(placeholderText),
      env: constants,
    };
  }

  private resourcesOf({ name }: PipelineStep, { resources }: StepTexts): Fields {
    if (resources === null) {
      this.unmapped.push({
        step: name,
        key: 'job.resources',
        why: 'they depend on a parameter without a default',
      });
      return {};
    }
    const { cpus, memoryMb, gpus } = resources;
    const given = {
      ...(cpus === null ? {} : { resourceCpuLimit: String(cpus) }),
      ...(memoryMb === null ? {} : { resourceMemoryLimit: `${memoryMb}Mi` }),
      ...(gpus === 0 ? {} : { accelerator: { resourceType: 'nvidia.com/gpu', resourceCount: String(gpus) } }),
    };
    return Object.keys(given).length === 0 ? {} : { resources: given };
  }

  private inputDefinitions(
    sources: ReturnType<KubeflowWriter['sourcesOf']>,
    hasItem: boolean,
    step?: PipelineStep,
  ): Fields {
    const parameters = {
      ...Object.fromEntries(
        this.pipeline.params.map(({ name, type }) => [name, { parameterType: parameterTypes[type] }]),
      ),
      ...(hasItem ? { [itemName]: { parameterType: itemType(step) } } : {}),
    };
    const artifacts = Object.fromEntries(
      sources.map(({ input, isList }) => [
        input,
        { artifactType, ...(isList ? { isArtifactList: true } : {}) },
      ]),
    );
    const found = {
      ...(Object.keys(parameters).length === 0 ? {} : { parameters }),
      ...(sources.length === 0 ? {} : { artifacts }),
    };
    return Object.keys(found).length === 0 ? {} : { inputDefinitions: found };
  }

  /** Its inputs that are artifacts. The best point of a sweep is none. */
  private sourcesOf({ inputs }: PipelineStep) {
    return inputs.flatMap((each) => {
      if (each.kind !== 'output') return [];
      const source = this.pipeline.steps.find(({ name }) => name === each.step);
      if (source === undefined || source.work.kind === 'sweep') return [];
      return [{ input: each.name, source: each.step, output: each.output, isList: source.forEach !== null }];
    });
  }

  private nameOf(step: string): string {
    return this.names.get(step) ?? step;
  }
}

/** Tasks have no "_" in their names, and the names that this file makes itself are taken. */
function taskNames(steps: readonly PipelineStep[]): ReadonlyMap<string, string> {
  const taken = new Set(['all-steps']);
  return new Map(
    steps.map(({ name }) => {
      const plain = name.replaceAll('_', '-');
      let free = plain;
      for (let number = 2; taken.has(free) || taken.has(`${free}-item`); number += 1)
        free = `${plain}-${number}`;
      taken.add(free).add(`${free}-item`);
      return [name, free];
    }),
  );
}

function policiesOf({ retries, cache }: PipelineStep): Fields {
  return {
    cachingOptions: cache === null ? {} : { enableCache: true },
    ...(retries === 0 ? {} : { retryPolicy: { maxRetryCount: retries } }),
  };
}

function outputDefinitions({ outputs }: PipelineStep, isList: boolean): Fields {
  if (outputs.length === 0) return {};
  const definition = { artifactType, ...(isList ? { isArtifactList: true } : {}) };
  return {
    outputDefinitions: { artifacts: Object.fromEntries(outputs.map(({ name }) => [name, definition])) },
  };
}

function itemType(step: PipelineStep | undefined): string {
  const items = step?.forEach ?? [];
  if ('parameter' in items) return 'STRING';
  if (items.every((each) => typeof each === 'boolean')) return 'BOOLEAN';
  if (items.every((each) => Number.isSafeInteger(each))) return 'NUMBER_INTEGER';
  return items.every((each) => typeof each === 'number') ? 'NUMBER_DOUBLE' : 'STRING';
}
