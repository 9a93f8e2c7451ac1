import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { gpuTable } from '../gpus.ts';
import { problemsOfContext } from './contextFixture.ts';
import { readContext } from './readContext.ts';

const good = {
  model: { parameters: '7B' },
  compute_requirements: { gpu_type: 'a100', gpu_count: 4 },
};
const withGpus = (more: object) => ({
  training_context: { ...good, compute_requirements: { ...good.compute_requirements, ...more } },
});
const withTraining = (training_config: object) => ({ training_context: { ...good, training_config } });

test('the form that scripts use today is taken as it is', () => {
  const context = {
    model_type: 'nlp',
    framework: 'pytorch',
    data_size_gb: 1,
    compute_requirements: { gpu_type: 'a100', gpu_count: 4, memory_gb: 80, storage_gb: 500 },
    training_config: { epochs: 3, batch_size: 64, distributed_strategy: 'none' },
  };
  const value = {
    task_type: 'configure_distributed',
    training_context: { ...context, model: { parameters: '7B' } },
  };
  expect(problemsOfContext(value)).toEqual([]);
  expect(problemsOfContext({ task_type: 'configure_distributed', training_context: context })).toEqual([
    'training_context.model.parameters: missing; a number of parameters, such as 7B or 350M',
  ]);
});

test.each([
  [withGpus({ gpu_cuont: 4 }), 'training_context.compute_requirements.gpu_cuont: unknown key; gpu_count'],
  [
    { training_context: { ...good, epochs: 3 } },
    'training_context.epochs: unknown key; training_context.training_config.epochs',
  ],
  [
    withGpus({ gpu_count: 0 }),
    'training_context.compute_requirements.gpu_count: got 0; a whole number from 1 to 128',
  ],
  [
    withGpus({ gpu_type: 'a10' }),
    'training_context.compute_requirements.gpu_type: got "a10"; t4, v100, a100 or h100; a100',
  ],
  [
    withGpus({ memory_gb: 60 }),
    'training_context.compute_requirements.memory_gb: no a100 has 60 GB; 40 or 80 GB, which is the memory of one GPU',
  ],
  [
    withGpus({ gpu_type: 't4', interconnect: 'nvlink' }),
    'training_context.compute_requirements.interconnect: a T4 has no NVLink; no interconnect for one node',
  ],
  [
    withGpus({ gpu_count: 12 }),
    'training_context.compute_requirements.gpu_count: 12 GPUs do not fill nodes of 8; a multiple of gpus_per_node, such as 16',
  ],
  [
    withGpus({ gpu_count: 16, interconnect: 'nvlink' }),
    'training_context.compute_requirements.interconnect: 16 GPUs are on several nodes of 8, and nvlink connects those of one; infiniband or ethernet',
  ],
  [
    {
      training_context: {
        ...good,
        compute_requirements: { gpu_type: 'v100', gpu_count: 4 },
        training_config: { precision: 'bf16' },
      },
    },
    'training_context.training_config.precision: a V100-SXM2-32GB does not compute bf16; fp16 or fp32',
  ],
  [
    { training_context: { ...good, model: { parameters: '7B', hidden_size: 4096, attention_heads: 33 } } },
    'training_context.model.attention_heads: 33 heads do not divide a hidden size of 4096; a divisor of hidden_size',
  ],
  [
    { training_context: { ...good, framework: 'sklearn' } },
    'training_context.framework: sklearn trains no neural networks on several GPUs; pytorch or tensorflow',
  ],
  [
    { task_type: 'manage_compute', training_context: good },
    'task_type: got "manage_compute"; configure_distributed: the question of this call',
  ],
  [
    { task_type: 'setup_automl', training_context: good },
    'task_type: got "setup_automl"; design_pipeline, configure_distributed, tune_hyperparameters or manage_compute',
  ],
  [
    { training_context: { ...good, model: { parameters: '7 apples' } } },
    'training_context.model.parameters: got "7 apples"; a number of parameters from 100K to 100T, such as 7B or 350M',
  ],
  [
    withTraining({ optimizer: 'adam_w' }),
    'training_context.training_config.optimizer: got "adam_w"; adamw, adam, sgd or adam8bit; adamw',
  ],
])('%j has one problem, with place and remedy', (value, problem) => {
  expect(problemsOfContext(value)).toEqual([problem]);
});

test('a cost needs tokens, or text to count them in', () => {
  const place = 'training_context.training_config.target_tokens';
  expect(problemsOfContext({ training_context: good }, 'manage_compute')).toEqual([
    `${place}: missing; a number of tokens such as 250M, or data_size_gb of text`,
  ]);
  expect(
    problemsOfContext({ training_context: { ...good, model_type: 'cv', data_size_gb: 5 } }, 'manage_compute'),
  ).toEqual([`${place}: missing; a number of tokens; data of cv says none`]);
});

test('nothing that can be written makes it throw', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (whole, part) => {
      for (const value of [
        whole,
        { training_context: whole },
        { training_context: { ...good, model: part } },
      ])
        expect(typeof readContext(value, 'manage_compute', gpuTable).ok).toBe('boolean');
    }),
  );
});
