import { jobSpecToFile } from '@muster/common/spec/serialize';
import { validateJobSpec } from '@muster/common/spec/validate';
import { expect, test } from 'vitest';
import { aJob, aSpec, jobIdOf } from '../modelFixture.ts';
import { evaluationSpec } from './evaluationSpec.ts';

const evaluate = {
  command: ['eval', '{checkpoint}', '--lr={lr}'],
  every: 1,
  env: { B: '2' },
  resources: { gpus: 1 },
};
const checkpoint = { name: 'step_10.pt', step: 10 };

test('an evaluation has what its job has, less priority, and no evaluation of its own', () => {
  const spec = aSpec({
    name: 'train',
    command: ['train'],
    project: 'lab',
    priority: 5,
    env: { A: '1', B: '1' },
    params: { lr: 0.1 },
    labels: { team: 'vision' },
    checkpoint: { dir: '/ckpt' },
    evaluate,
  });
  const made = evaluationSpec(aJob(1, { spec }), checkpoint, 0);
  expect(made).toMatchObject({
    name: 'train-eval-10',
    project: 'lab',
    command: ['eval', '{resume}', '--lr={lr}'],
    env: { A: '1', B: '2' },
    params: { lr: 0.1 },
    resources: { gpus: 1 },
    priority: 0,
    preemptible: true,
    maxRuntimeMs: 3_600_000,
    checkpoint: { dir: null },
    evaluate: null,
    labels: { team: 'vision', 'muster.evaluates': jobIdOf(1), 'muster.checkpoint': 'step_10.pt' },
  });
  expect(made && validateJobSpec(jobSpecToFile(made)).ok).toBe(true);
});

test('that of an array has the index of its job', () => {
  const spec = aSpec({
    name: 'train-{array_index}',
    command: ['train'],
    array: 3,
    evaluate: { ...evaluate, command: ['eval', '--shard={array_index}'] },
  });
  const array = { id: 'arr_0123456789ab', index: 2, size: 3 } as never;
  expect(evaluationSpec(aJob(1, { spec, array }), checkpoint, 0)).toMatchObject({
    name: 'train-2-eval-10',
    command: ['eval', '--shard=2'],
    array: null,
  });
  expect(evaluationSpec(aJob(1), checkpoint, 0)).toBeNull();
});
