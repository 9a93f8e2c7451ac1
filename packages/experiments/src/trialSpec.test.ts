import { retriedCauses } from '@muster/common/spec/causes';
import type { JobSpecFile } from '@muster/common/spec/types';
import { validateJobSpec } from '@muster/common/spec/validate';
import { expect, test } from 'vitest';
import { bestTrial, lossOf } from './objective.ts';
import { aChoice, aFloat } from './testing/spaces.ts';
import { type OnOom, trialSpec, unusedParameters } from './trialSpec.ts';

function jobOf(file: JobSpecFile) {
  const read = validateJobSpec(file);
  if (!read.ok) throw new Error(JSON.stringify(read.problems));
  return read.spec;
}

const parameters = [
  aFloat('lr'),
  aChoice('optimizer', ['adam', 'sgd']),
  aFloat('momentum', { when: { optimizer: ['sgd'] } }),
];

test('parameters are those of the job, and are filled in where the node does not', () => {
  const job = jobOf({
    name: 'train',
    command: ['python', 'train.py', '--lr={lr}', '--momentum={momentum}'],
    args: ['--out=/out/{trial}', '{momentum}', '{resume:--resume=}'],
    env: { OPTIMIZER: '{optimizer}', MOMENTUM: '{momentum}', OTHER: '{other}' },
    workdir: '/work/{trial}',
    checkpoint: { dir: '/ckpt/{trial}-{optimizer}' },
    params: { epochs: 3 },
    labels: { team: 'vision' },
  });
  const point = { lr: 0.01, optimizer: 'adam' };
  const spec = trialSpec({ job, parameters, number: 7, point, seed: null, onOom: 'shrink' }, 'swp_1');
  expect(spec).toMatchObject({
    name: 'train-7',
    command: ['python', 'train.py', '--lr={lr}'],
    args: ['--out=/out/7', '{resume:--resume=}'],
    workdir: '/work/7',
    checkpoint: { dir: '/ckpt/7-adam' },
    params: { epochs: 3, lr: 0.01, optimizer: 'adam' },
    labels: { team: 'vision', 'muster.sweep': 'swp_1', 'muster.trial': '7' },
  });
  expect(spec.env).toEqual({
    OPTIMIZER: 'adam',
    OTHER: '{other}',
    MUSTER_TRIAL: '7',
    MUSTER_TRIAL_PARAMS: '{"lr":0.01,"optimizer":"adam"}',
  });
  expect(trialSpec({ job, parameters, number: 7, point, seed: null, onOom: 'shrink' }, null).labels).toEqual({
    team: 'vision',
  });
  expect(unusedParameters(jobOf({ command: ['x', '{lr}'] }), parameters)).toEqual(['optimizer', 'momentum']);
});

test('a seed is a parameter of the job, in its name, its label and its directory', () => {
  const job = jobOf({
    name: 'train',
    command: ['train', '--seed={seed}'],
    env: { RUN: '{trial}-{seed}' },
    checkpoint: { dir: '/ckpt/{trial}/{seed}' },
  });
  const point = { lr: 0.01, optimizer: 'adam' };
  const spec = trialSpec({ job, parameters, number: 7, point, seed: 2, onOom: 'shrink' }, 'swp_1');
  expect(spec).toMatchObject({
    name: 'train-7-s2',
    command: ['train', '--seed={seed}'],
    params: { ...point, seed: 2 },
    env: { RUN: '7-2', MUSTER_PARAM_SEED: '2', MUSTER_TRIAL_PARAMS: JSON.stringify(point) },
    checkpoint: { dir: '/ckpt/7/2' },
    labels: { 'muster.trial': '7', 'muster.seed': '2' },
  });
});

test('in the text of a shell, a parameter that does not apply becomes nothing', () => {
  const job = jobOf({ name: 'a'.repeat(60), command: 'train --lr={lr} {momentum} > {trial}.log' });
  const { command, name } = trialSpec(
    { job, parameters, number: 3, point: { lr: 1, optimizer: 'adam' }, seed: null, onOom: 'shrink' },
    null,
  );
  expect(command[2]).toBe('train --lr={lr}  > 3.log');
  expect(name).toBe(`${'a'.repeat(50)}-3`);
});

test('the trial of a sweep is a valid job', () => {
  const job = jobOf({ command: ['true', '{lr}'] });
  const spec = trialSpec(
    {
      job,
      parameters,
      number: 9_999,
      point: { lr: 0.5, optimizer: 'sgd', momentum: 0 },
      seed: null,
      onOom: 'shrink',
    },
    'swp_1',
  );
  expect(spec.params).toEqual({ lr: 0.5, optimizer: 'sgd', momentum: 0 });
});

test('the best trial is the first with the best value', () => {
  const trials = [null, 3, 1, 2, 1, 3].map((value, number) => ({ state: 'complete', value, number }));
  expect(bestTrial({ goal: 'min' }, trials)?.number).toBe(2);
  expect(bestTrial({ goal: 'max' }, trials)?.number).toBe(1);
  expect(bestTrial({ goal: 'max' }, trials.slice(0, 1))).toBeNull();
  const early = { state: 'pruned', value: 0, number: 9 };
  expect(bestTrial({ goal: 'min' }, [early, ...trials])?.number).toBe(2);
  expect(lossOf({ goal: 'max' }, 3)).toBe(-3);
});

test('a configuration file can be the text of a variable, whose other braces stay', () => {
  const job = jobOf({
    command:
      'printf %s "$CONFIG" > "/tmp/config-$MUSTER_TRIAL.json" && exec train "/tmp/config-$MUSTER_TRIAL.json"',
    env: { CONFIG: '{"lr": {lr}, "nested": {"optimizer": "{optimizer}"},\n "out": "/results/{trial}"}' },
  });
  const point = { lr: 0.01, optimizer: 'adam' };
  const { env, command } = trialSpec(
    { job, parameters, number: 7, point, seed: null, onOom: 'shrink' },
    null,
  );
  expect(JSON.parse(env['CONFIG'] ?? '')).toEqual({
    lr: 0.01,
    nested: { optimizer: 'adam' },
    out: '/results/7',
  });
  expect(command).toEqual(job.command);
});

test('a trial that must not shrink its batch is not retried when memory is too small', () => {
  const job = jobOf({ command: ['true', '{lr}'] });
  const point = { lr: 1, optimizer: 'adam' };
  const causesOf = (onOom: OnOom) =>
    retriedCauses(trialSpec({ job, parameters, number: 0, point, seed: null, onOom }, null).retry.on);
  expect(causesOf('shrink')).toContain('cuda_oom');
  expect(causesOf('infeasible')).toEqual(causesOf('shrink').filter((cause) => cause !== 'cuda_oom'));
});
