import { readPipeline } from '@muster/pipelines/file/pipelineFile';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { adviseAs } from '../file/advise.ts';
import type { AnswerOf } from '../file/answerSchemas.ts';
import { gpuTable } from '../gpus.ts';

function design(training_context: Readonly<Record<string, unknown>>): AnswerOf<'design_pipeline'> {
  const outcome = adviseAs('design_pipeline', { training_context }, gpuTable);
  if (!outcome.ok) throw new Error(JSON.stringify(outcome.findings));
  return outcome.answer;
}

const frameworks = ['pytorch', 'tensorflow', 'sklearn', 'xgboost', 'lightgbm'];
const modelTypes = ['tabular', 'cv', 'nlp', 'timeseries', 'multimodal'];
const gpuCounts = [undefined, 1, 4, 16];
const cases = frameworks.flatMap((framework) =>
  modelTypes.map((model_type) => [framework, model_type] as const),
);

test.each(cases)('the pipeline file for %s and %s is one that the reader takes', (framework, model_type) => {
  for (const gpu_count of gpuCounts) {
    const { files, pipeline_config: config } = design({
      framework,
      model_type,
      data: { path: '/data/it\'s "all".csv', target: 'label: x' },
      compute_requirements: { gpu_type: 'a100', gpu_count },
    });
    const read = readPipeline(parse(files[0]?.text ?? ''));
    expect(read).toMatchObject({ ok: true, pipeline: { name: `${framework}-${model_type}` } });
    if (!read.ok) return;
    expect(read.pipeline.steps.map(({ name }) => name)).toEqual(config.steps.map(({ name }) => name));
    expect(config.steps.map(({ name, needs }) => [name, needs])).toEqual([
      ['check', []],
      ['preprocess', ['check']],
      ['train', ['preprocess']],
      ['evaluate', ['preprocess', 'train']],
      ['register', ['preprocess', 'train', 'evaluate']],
    ]);
    // Every program that a step runs is among the files.
    for (const { command } of config.steps) {
      const program = command
        .find((word) => word.endsWith('.py'))
        ?.split('/')
        .at(-1);
      expect(files.map(({ name }) => name)).toContain(program);
    }
  }
});

test.each([
  ['pytorch', 16, 'torchrun', { nodes: 2, gpus: 8 }],
  ['pytorch', 1, 'python3', { nodes: 1, gpus: 1 }],
  ['tensorflow', 16, 'python3', { nodes: 1, gpus: 8 }],
])('%s on %d GPUs: %s with %j', (framework, gpu_count, program, resources) => {
  const { pipeline_config: config, files } = design({
    framework,
    data: { path: '/d.csv' },
    compute_requirements: { gpu_count },
  });
  expect(config.steps[2]?.command[0]).toBe(program);
  expect(parse(files[0]?.text ?? '')).toMatchObject({ steps: { train: { job: { resources } } } });
});

test('lightgbm runs on as many CPUs as a parameter says, so that smaller nodes run it too', () => {
  const { files } = design({
    framework: 'lightgbm',
    data: { path: '/d.csv' },
    compute_requirements: { gpu_count: 4 },
  });
  const file = parse(files[0]?.text ?? '') as unknown;
  expect(file).toMatchObject({ params: { cpus: 8 } });
  expect(file).toMatchObject({ steps: { train: { job: { resources: { cpus: `\${params.cpus}` } } } } });
});

test('without data there is nothing to design', () => {
  expect(adviseAs('design_pipeline', { training_context: {} }, gpuTable)).toMatchObject({
    ok: false,
    findings: [{ path: ['training_context', 'data', 'path'], message: 'missing' }],
  });
});
