import { expect, test } from 'vitest';
import { readPipeline } from '../file/pipelineFile.ts';
import { type KubeflowExport, kubeflowPipeline } from './kubeflow.ts';
import { problemsOfPipelineSpec } from './testing/pipelineSpecRules.ts';

function exported(file: object, image: string | null = 'python:3.12'): KubeflowExport {
  const read = readPipeline({ name: 'vision', artifacts: '/a', ...file });
  if (!read.ok) throw new Error(JSON.stringify(read.findings));
  return kubeflowPipeline(read.pipeline, image);
}

const full = {
  project: 'lab',
  parallel: 2,
  code: './src',
  env: { TOKEN: 'a $(B) $$', MODE: `\${params.data}` },
  params: { data: '/raw', lr: { type: 'float' }, epochs: 3, seeds: [1, 2] },
  steps: {
    prepare: {
      run: ['prepare', `\${outputs.data}`],
      outputs: { data: { type: 'directory' } },
      cache: { ttl: '7d' },
    },
    train_it: {
      for_each: `\${params.seeds}`,
      job: {
        command: ['train', `--lr=\${params.lr}`, `\${item}`, '{{$.x}}'],
        image: 'train:1',
        resources: { gpus: 1, nodes: 2, cpus: 2, memory_mb: 1024 },
        preemptible: true,
        checkpoint: { dir: '/c' },
      },
      inputs: { data: 'prepare.data' },
      outputs: { model: { type: 'file', path: 'm.pt' } },
      retries: { max: 2 },
      timeout: '1h',
    },
    'train-it': { run: 'true', when: `lr < 0.1 && epochs > 2 && data != 'epochs'` },
    report: {
      run: ['report', `\${inputs.models}`],
      inputs: { models: 'train_it.model' },
      when: `steps.prepare == 'succeeded'`,
    },
    sent: { run: 'send', after: 'train-it', when: `epochs > 2 && steps['train-it'] == 'succeeded'` },
    noted: { run: 'note', after: ['train-it', 'prepare'] },
    fixed: {
      for_each: ['a', true],
      run: ['echo', `\${item}`],
      outputs: { out: { type: 'file', path: '/tmp/out' } },
    },
  },
  on_failure: { alarm: { run: 'alarm' } },
  finally: { tidy: { run: 'tidy' }, after: { run: 'true', after: 'tidy' } },
};

test('every part of a pipeline becomes what the published messages allow', () => {
  const { spec, withoutImage } = exported(full);
  expect(problemsOfPipelineSpec(spec)).toEqual([]);
  expect(withoutImage).toEqual([]);
  expect(spec).toMatchObject({
    components: {
      'comp-all-steps': {
        dag: {
          tasks: {
            'train-it': {
              dependentTasks: ['prepare'],
              parameterIterator: { items: { inputParameter: 'seeds' }, itemInput: 'item' },
            },
            'train-it-2': {
              triggerPolicy: {
                condition: `inputs.parameter_values['lr'] < 0.1 && int(inputs.parameter_values['epochs']) > 2 && inputs.parameter_values['data'] != 'epochs'`,
              },
            },
            sent: {
              dependentTasks: ['train-it-2'],
              triggerPolicy: { condition: `int(inputs.parameter_values['epochs']) > 2` },
            },
            report: { triggerPolicy: { condition: 'false' } },
            fixed: { parameterIterator: { items: { raw: '["a",true]' } } },
          },
        },
      },
      'comp-train-it': {
        dag: { tasks: { 'train-it-item': { retryPolicy: { maxRetryCount: 2 }, cachingOptions: {} } } },
      },
    },
    root: {
      dag: {
        tasks: {
          tidy: {
            dependentTasks: ['all-steps'],
            triggerPolicy: { strategy: 'ALL_UPSTREAM_TASKS_COMPLETED' },
          },
          after: { dependentTasks: ['tidy'] },
        },
      },
    },
  });
  const { executors } = spec['deploymentSpec'] as { readonly executors: Record<string, unknown> };
  expect(executors['exec-train-it-item']).toMatchObject({
    container: {
      image: 'train:1',
      args: ['train', `--lr={{$.inputs.parameters['lr']}}`, `{{$.inputs.parameters['item']}}`, '{{$.x}}'],
      resources: {
        resourceCpuLimit: '2',
        resourceMemoryLimit: '1024Mi',
        accelerator: { resourceType: 'nvidia.com/gpu', resourceCount: '1' },
      },
      env: expect.arrayContaining([{ name: 'TOKEN', value: 'a $$(B) $$$$' }]),
    },
  });
});

test('what does not map is named', () => {
  const named = exported(full).unmapped.map(({ step, key }) => `${step ?? '-'} ${key}`);
  expect(named.toSorted()).toEqual(
    [
      '- artifacts',
      '- code',
      '- outputs',
      '- parallel',
      '- params',
      '- project',
      'alarm on_failure',
      'fixed outputs.out',
      'noted after',
      'prepare cache.ttl',
      'report inputs.models',
      'report when',
      'train_it command',
      'train_it job.checkpoint',
      'train_it job.preemptible',
      'train_it job.resources.nodes',
      'train_it timeout',
    ].toSorted(),
  );
});

test('a step without an image is named, and a sweep is a task that fails', () => {
  const tune = {
    sweep: {
      trials: 1,
      objective: { metric: 'eval_loss' },
      parameters: { x: [1] },
      job: { command: 'true' },
    },
  };
  const { spec, unmapped, withoutImage } = exported(
    { steps: { tune, use: { run: ['echo', `\${inputs.best}`], inputs: { best: 'tune.best' } } } },
    null,
  );
  expect(withoutImage).toEqual(['tune', 'use']);
  expect(problemsOfPipelineSpec(spec)).toEqual([]);
  expect(unmapped).toEqual([{ step: 'tune', key: 'sweep', why: expect.stringContaining('no sweeps') }]);
  expect(JSON.stringify(spec)).toContain('sweeps do not run in Kubeflow: tune');
});

test('what the messages do not allow is found', () => {
  const { spec } = exported({ steps: { a: { run: 'true' } } });
  const { components, ...rest } = spec as { readonly components: object };
  expect(problemsOfPipelineSpec({ ...rest, components, version: 1 })).toEqual(['.version: unknown']);
  expect(problemsOfPipelineSpec({ ...rest, components: {} })).toEqual(['root: a: no component comp-a']);
});
