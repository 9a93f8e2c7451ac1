/**
 * What `PipelineSpec` of Kubeflow Pipelines v2 may hold, in its JSON form: the messages of `api/v2alpha1/pipeline_spec.proto` of
 * github.com/kubeflow/pipelines (at 009132aa) as far as they are used, and what its comments say of references between them.
 */
import { isMapping } from '@muster/common/spec/path';

type Rule = string | readonly string[];
type Message = Readonly<Record<string, Rule>>;

/** A list of words is an enum; `[X]` a list, `{X}` a mapping of X, `any` any value. */
const messages: Readonly<Record<string, Message>> = {
  PipelineSpec: {
    pipelineInfo: 'PipelineInfo',
    deploymentSpec: 'PipelineDeploymentConfig',
    schemaVersion: 'string',
    sdkVersion: 'string',
    components: '{ComponentSpec}',
    root: 'ComponentSpec',
    defaultPipelineRoot: 'string',
  },
  PipelineInfo: { name: 'string', displayName: 'string', description: 'string' },
  PipelineDeploymentConfig: { executors: '{ExecutorSpec}' },
  ExecutorSpec: { container: 'PipelineContainerSpec' },
  PipelineContainerSpec: {
    image: 'string',
    command: '[string]',
    args: '[string]',
    resources: 'ResourceSpec',
    env: '[EnvVar]',
  },
  EnvVar: { name: 'string', value: 'string' },
  ResourceSpec: {
    resourceCpuLimit: 'string',
    resourceMemoryLimit: 'string',
    resourceCpuRequest: 'string',
    resourceMemoryRequest: 'string',
    accelerator: 'AcceleratorConfig',
  },
  AcceleratorConfig: { resourceType: 'string', resourceCount: 'string' },
  ComponentSpec: {
    inputDefinitions: 'ComponentInputsSpec',
    outputDefinitions: 'ComponentOutputsSpec',
    dag: 'DagSpec',
    executorLabel: 'string',
  },
  ComponentInputsSpec: { parameters: '{ParameterSpec}', artifacts: '{ArtifactSpec}' },
  ComponentOutputsSpec: { parameters: '{ParameterSpec}', artifacts: '{ArtifactSpec}' },
  ParameterSpec: {
    parameterType: [
      'NUMBER_DOUBLE',
      'NUMBER_INTEGER',
      'STRING',
      'BOOLEAN',
      'LIST',
      'STRUCT',
      'TASK_FINAL_STATUS',
    ],
    defaultValue: 'any',
    isOptional: 'bool',
    description: 'string',
  },
  ArtifactSpec: { artifactType: 'ArtifactTypeSchema', isArtifactList: 'bool', description: 'string' },
  ArtifactTypeSchema: { schemaTitle: 'string', schemaVersion: 'string' },
  DagSpec: { tasks: '{PipelineTaskSpec}', outputs: 'DagOutputsSpec' },
  DagOutputsSpec: { artifacts: '{DagOutputArtifactSpec}' },
  DagOutputArtifactSpec: { artifactSelectors: '[ArtifactSelectorSpec]' },
  ArtifactSelectorSpec: { producerSubtask: 'string', outputArtifactKey: 'string' },
  PipelineTaskSpec: {
    taskInfo: 'PipelineTaskInfo',
    inputs: 'TaskInputsSpec',
    dependentTasks: '[string]',
    cachingOptions: 'CachingOptions',
    componentRef: 'ComponentRef',
    triggerPolicy: 'TriggerPolicy',
    parameterIterator: 'ParameterIteratorSpec',
    retryPolicy: 'RetryPolicy',
  },
  PipelineTaskInfo: { name: 'string' },
  CachingOptions: { enableCache: 'bool' },
  ComponentRef: { name: 'string' },
  RetryPolicy: { maxRetryCount: 'int' },
  TriggerPolicy: {
    condition: 'string',
    strategy: ['ALL_UPSTREAM_TASKS_SUCCEEDED', 'ALL_UPSTREAM_TASKS_COMPLETED'],
  },
  ParameterIteratorSpec: { items: 'ItemsSpec', itemInput: 'string' },
  ItemsSpec: { raw: 'string', inputParameter: 'string' },
  TaskInputsSpec: { parameters: '{InputParameterSpec}', artifacts: '{InputArtifactSpec}' },
  InputParameterSpec: { componentInputParameter: 'string' },
  InputArtifactSpec: { taskOutputArtifact: 'TaskOutputArtifactSpec', componentInputArtifact: 'string' },
  TaskOutputArtifactSpec: { producerTask: 'string', outputArtifactKey: 'string' },
};
/** Exactly one of their members is set. */
const choices: readonly string[] = ['ExecutorSpec', 'ItemsSpec', 'InputParameterSpec', 'InputArtifactSpec'];
const plain: Readonly<Record<string, (value: unknown) => boolean>> = {
  any: () => true,
  string: (value) => typeof value === 'string',
  bool: (value) => typeof value === 'boolean',
  int: (value) => Number.isInteger(value),
};

/** What is wrong, each with its place. */
export function problemsOfPipelineSpec(spec: unknown): readonly string[] {
  const problems: string[] = [];
  checkMessage(problems, 'PipelineSpec', spec, '');
  if (problems.length > 0) return problems;
  const { root, components, deploymentSpec } = spec as PipelineSpecJson;
  for (const [name, component] of Object.entries({ ...components, root }))
    checkComponent(problems, name, component, components, deploymentSpec.executors);
  return problems;
}

function checkMessage(problems: string[], rule: Rule, value: unknown, place: string): void {
  if (typeof rule !== 'string') {
    if (!rule.includes(String(value))) problems.push(`${place}: ${String(value)}`);
    return;
  }
  const inner = rule.slice(1, -1);
  const members = messages[rule];
  if (rule.startsWith('[')) {
    if (!Array.isArray(value)) problems.push(`${place}: no list`);
    else value.forEach((each, index) => checkMessage(problems, inner, each, `${place}[${index}]`));
  } else if (rule.startsWith('{') && isMapping(value)) {
    for (const [key, each] of Object.entries(value)) checkMessage(problems, inner, each, `${place}.${key}`);
  } else if (members === undefined) {
    if (plain[rule]?.(value) !== true) problems.push(`${place}: no ${rule}`);
  } else if (!isMapping(value)) problems.push(`${place}: no ${rule}`);
  else {
    const isChoice =
      choices.includes(rule) || (rule === 'ComponentSpec' && 'dag' in value && 'executorLabel' in value);
    if (isChoice && Object.keys(value).length !== 1)
      problems.push(`${place}: not one of ${Object.keys(members).join()}`);
    for (const [key, each] of Object.entries(value)) {
      const member = members[key];
      if (member === undefined) problems.push(`${place}.${key}: unknown`);
      else checkMessage(problems, member, each, `${place}.${key}`);
    }
  }
}

interface Definitions {
  readonly parameters?: Readonly<Record<string, unknown>>;
  readonly artifacts?: Readonly<Record<string, unknown>>;
}

interface ComponentJson {
  readonly inputDefinitions?: Definitions;
  readonly outputDefinitions?: Definitions;
  readonly executorLabel?: string;
  readonly dag?: {
    readonly tasks: Readonly<Record<string, TaskJson>>;
    readonly outputs?: {
      readonly artifacts: Readonly<
        Record<
          string,
          {
            readonly artifactSelectors: readonly {
              readonly producerSubtask: string;
              readonly outputArtifactKey: string;
            }[];
          }
        >
      >;
    };
  };
}

interface TaskJson {
  readonly componentRef: { readonly name: string };
  readonly dependentTasks?: readonly string[];
  readonly inputs?: {
    readonly parameters?: Readonly<Record<string, { readonly componentInputParameter: string }>>;
    readonly artifacts?: Readonly<
      Record<
        string,
        {
          readonly componentInputArtifact?: string;
          readonly taskOutputArtifact?: { readonly producerTask: string; readonly outputArtifactKey: string };
        }
      >
    >;
  };
  readonly parameterIterator?: {
    readonly items: { readonly inputParameter?: string };
    readonly itemInput: string;
  };
}

interface PipelineSpecJson {
  readonly root: ComponentJson;
  readonly components: Readonly<Record<string, ComponentJson>>;
  readonly deploymentSpec: {
    readonly executors: Readonly<
      Record<
        string,
        { readonly container: { readonly command?: readonly string[]; readonly args?: readonly string[] } }
      >
    >;
  };
}

function checkComponent(
  problems: string[],
  name: string,
  { inputDefinitions, outputDefinitions, dag, executorLabel }: ComponentJson,
  components: PipelineSpecJson['components'],
  executors: PipelineSpecJson['deploymentSpec']['executors'],
): void {
  const has = (isThere: boolean, what: string) => {
    if (!isThere) problems.push(`${name}: ${what}`);
  };
  const { parameters = {}, artifacts = {} } = inputDefinitions ?? {};
  if (executorLabel !== undefined) {
    const container = executors[executorLabel]?.container;
    has(container !== undefined, `no executor ${executorLabel}`);
    const known = { inputs: { parameters, artifacts }, outputs: { artifacts: {}, ...outputDefinitions } };
    const texts = [...(container?.command ?? []), ...(container?.args ?? [])].join(' ');
    for (const [, side = '', kind = '', key = ''] of texts.matchAll(/\{\{\$\.(\w+)\.(\w+)\['([^']*)'\]/g)) {
      const found = (known as Record<string, Record<string, object>>)[side]?.[kind];
      has(found !== undefined && key in found, `no ${side}.${kind} ${key}`);
    }
  }
  for (const [key, task] of Object.entries(dag?.tasks ?? {})) {
    const component = components[task.componentRef.name];
    has(component !== undefined, `${key}: no component ${task.componentRef.name}`);
    has(/^[a-z]([a-z0-9-]*[a-z0-9])?$/.test(key), `${key} is no name of a task`);
    for (const other of task.dependentTasks ?? [])
      has(dag?.tasks[other] !== undefined && other !== key, `${key} depends on ${other}`);
    const given = task.inputs ?? {};
    for (const wanted of Object.keys(component?.inputDefinitions?.parameters ?? {}))
      has(
        given.parameters?.[wanted] !== undefined || task.parameterIterator?.itemInput === wanted,
        `${key} lacks ${wanted}`,
      );
    for (const wanted of Object.keys(component?.inputDefinitions?.artifacts ?? {}))
      has(given.artifacts?.[wanted] !== undefined, `${key} lacks ${wanted}`);
    for (const each of Object.values(given.parameters ?? {}))
      has(each.componentInputParameter in parameters, `${key}: no parameter ${each.componentInputParameter}`);
    for (const { componentInputArtifact: own, taskOutputArtifact: other } of Object.values(
      given.artifacts ?? {},
    )) {
      if (own !== undefined) has(own in artifacts, `${key}: no artifact ${own}`);
      if (other === undefined) continue;
      const producer = components[dag?.tasks[other.producerTask]?.componentRef.name ?? ''];
      has(
        other.outputArtifactKey in (producer?.outputDefinitions?.artifacts ?? {}),
        `${key}: ${other.producerTask} has no ${other.outputArtifactKey}`,
      );
      has(
        task.dependentTasks?.includes(other.producerTask) === true,
        `${key} does not depend on ${other.producerTask}`,
      );
    }
    const items = task.parameterIterator?.items.inputParameter;
    if (items !== undefined)
      has(items in (component?.inputDefinitions?.parameters ?? {}), `${key}: no list ${items}`);
    if (task.parameterIterator !== undefined)
      has(component?.dag !== undefined, `${key}: only a DAG is repeated`);
  }
  for (const { artifactSelectors } of Object.values(dag?.outputs?.artifacts ?? {}))
    for (const { producerSubtask, outputArtifactKey } of artifactSelectors) {
      const producer = components[dag?.tasks[producerSubtask]?.componentRef.name ?? ''];
      has(
        outputArtifactKey in (producer?.outputDefinitions?.artifacts ?? {}),
        `no output ${outputArtifactKey}`,
      );
    }
}
