import { readSweep } from '@muster/experiments/file/sweepFile';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { adviseAs } from './file/advise.ts';
import type { AnswerOf } from './file/answerSchemas.ts';
import { gpuTable } from './gpus.ts';

function tune(training_context: Readonly<Record<string, unknown>>): AnswerOf<'tune_hyperparameters'> {
  const outcome = adviseAs('tune_hyperparameters', { training_context }, gpuTable);
  if (!outcome.ok) throw new Error(JSON.stringify(outcome.findings));
  return outcome.answer;
}

const network = {
  model: { parameters: '350M' },
  data_size_gb: 4,
  compute_requirements: { gpu_type: 'a100', gpu_count: 8 },
  training_config: { batch_size: 256 },
};

test.each([
  ['pytorch', 'nlp', ['lr', 'batch_size', 'weight_decay', 'warmup_ratio', 'dropout']],
  ['tensorflow', 'cv', ['lr', 'batch_size', 'weight_decay', 'warmup_ratio', 'dropout']],
  ['xgboost', 'tabular', ['eta', 'max_depth', 'n_estimators', 'min_child_weight', 'subsample']],
  ['lightgbm', 'tabular', ['learning_rate', 'num_leaves', 'n_estimators', 'min_child_samples']],
  ['sklearn', 'timeseries', ['learning_rate', 'max_leaf_nodes', 'max_iter', 'min_samples_leaf']],
])(
  '%s for %s: parameters with reasons, in a file that the reader of sweeps takes',
  (framework, model_type, names) => {
    const { parameters, files, trials, sampler } = tune({ framework, model_type, data_size_gb: 2 });
    expect(parameters.map(({ name }) => name)).toEqual(expect.arrayContaining(names));
    for (const { why } of parameters) expect(why).toMatch(/\w{3}/);
    const read = readSweep(parse(files[0]?.text ?? ''));
    expect(read).toMatchObject({ ok: true, sweep: { trials, sampler } });
    if (!read.ok) return;
    expect(read.sweep.parameters.map(({ name }) => name)).toEqual(parameters.map(({ name }) => name));
    for (const { name } of parameters) expect(read.sweep.job.command).toContain(`--${name}={${name}}`);
  },
);

test('a trial costs what the training costs; stopped early, all of them a third', () => {
  const { trials, trialHours, cost_estimate: cost, earlyStopping, costRangeUsd } = tune(network);
  // A model of this size is given GPUs of 40 GB. 10⁹ tokens in steps of 256 · 2048 are 1,907 steps; the first comparison comes at a 27th.
  expect([trials, earlyStopping?.min_steps]).toEqual([50, 71]);
  const total = 50 * 0.3 * (trialHours ?? 0) * 8 * 3.5;
  expect(cost?.total_cost_usd).toBeCloseTo(total);
  expect(costRangeUsd?.[0]).toBeLessThan(total);
  expect(costRangeUsd?.[1]).toBeGreaterThan(total);
});

test('a budget says how many trials, and a deadline how many at the same time', () => {
  const { trials, sampler, parallel, reasons } = tune({ ...network, budget: { usd: 60, hours: 1 } });
  expect(trials).toBeLessThan(20);
  expect(sampler).toBe('halton');
  expect(parallel).toBeGreaterThan(1);
  expect(reasons.join('\n')).toContain('60 USD are enough for');
  const poor = tune({ ...network, budget: { usd: 0.01 } });
  expect([poor.trials, poor.reasons.join('\n')]).toEqual([
    1,
    expect.stringContaining('more than the budget'),
  ]);
});

test('the length of a trial that was measured counts, and one that is not known costs nothing', () => {
  const measured = tune({ framework: 'xgboost', tuning: { trial_minutes: 30, trials: 40 } });
  expect(measured.cost_estimate?.total_cost_usd).toBeCloseTo(40 * 0.5 * 0.4);
  const unknown = tune({ model_type: 'cv' });
  expect([unknown.cost_estimate, unknown.assumptions[0]]).toEqual([
    null,
    expect.stringContaining('trial_minutes'),
  ]);
});

test('a search space that is given is used as it is, and its problems have their place in the context', () => {
  const search_space = {
    lr: { type: 'float', min: 1e-5, max: 1e-2, log: true },
    batch_size: [16, 32, 64],
    hidden_size: { type: 'int', min: 64, max: 512, step: 64 },
    dropout: { type: 'float', min: 0, max: 0.5 },
  };
  const { parameters, trials } = tune({ tuning: { search_space, direction: 'minimize' } });
  expect([parameters.map(({ name }) => name), trials]).toEqual([Object.keys(search_space), 40]);
  const wrong = { training_context: { tuning: { search_space: { lr: { type: 'float', min: 2, max: 1 } } } } };
  expect(adviseAs('tune_hyperparameters', wrong, gpuTable)).toMatchObject({
    ok: false,
    findings: [
      {
        path: ['training_context', 'tuning', 'search_space', 'lr', 'max'],
        message: '1 is below min, which is 2',
      },
    ],
  });
});

test('whatever is asked, the file is one that the reader takes, or the problem has a place', () => {
  const input = fc.record(
    {
      framework: fc.constantFrom('pytorch', 'tensorflow', 'sklearn', 'xgboost', 'lightgbm'),
      model_type: fc.constantFrom('tabular', 'cv', 'nlp'),
      data_size_gb: fc.double({ min: 1e-6, max: 1e6, noNaN: true }),
      model: fc.record({ parameters: fc.integer({ min: 1e5, max: 1e13 }) }),
      compute_requirements: fc.record({
        gpu_type: fc.constantFrom('t4', 'a100'),
        gpu_count: fc.constantFrom(1, 3, 8, 12, 64, 128),
      }),
      training_config: fc.record(
        { batch_size: fc.integer({ min: 1, max: 5_000 }), optimizer: fc.constantFrom('adamw', 'sgd') },
        { requiredKeys: [] },
      ),
      budget: fc.record(
        {
          usd: fc.double({ min: 0.01, max: 1e6, noNaN: true }),
          hours: fc.double({ min: 0.01, max: 1e4, noNaN: true }),
        },
        { requiredKeys: [] },
      ),
      tuning: fc.record({ trials: fc.integer({ min: 1, max: 10_000 }) }, { requiredKeys: [] }),
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(input, (training_context) => {
      const outcome = adviseAs('tune_hyperparameters', { training_context }, gpuTable);
      if (outcome.ok) expect(readSweep(parse(outcome.answer.files[0]?.text ?? '')).ok).toBe(true);
      else expect(outcome.findings[0]?.path.length).toBeGreaterThan(1);
    }),
    { numRuns: 60 },
  );
});
