import { checkJobSpec } from '@muster/common/spec/validate';
import { describe, expect, test } from 'vitest';
import { readAutoml } from '../file/readAutoml.ts';
import type { AutomlContext } from './automlFields.ts';
import { automlPipeline, automlPlan } from './automlPlan.ts';

const data = { path: '/data/train.csv', target: 'price' };

function contextOf(further: object = {}): AutomlContext {
  const result = readAutoml({ task_type: 'setup_automl', training_context: { data, ...further } });
  if (!result.ok) throw new Error(JSON.stringify(result.findings));
  return result.context;
}

const options = { id: '0123456789', program: 'cGsK', facts: null };

describe('the plan of a task', () => {
  test('has valid jobs whose directory is beside the data', () => {
    const plan = automlPlan(contextOf({ data: { ...data, ignore: ['a b'] } }), options);
    for (const job of [plan.profile, plan.sweep.job, plan.finish])
      expect(checkJobSpec(job)).toMatchObject({ ok: true });
    expect(plan.profile.command.slice(3)).toEqual([
      '/data/train.csv.automl',
      'profile',
      '--run',
      '/data/train.csv.automl',
      '--data=/data/train.csv',
      '--target=price',
      '--seed=0',
      '--encoding=utf-8',
      '--ignore=a b',
    ]);
    expect(plan.profile.command[2]).not.toMatch(/[{}]/);
    expect(plan.sweep.job.command).toContain('/data/train.csv.automl/trials/{trial}');
    expect(plan.sweep).toMatchObject({ trials: 40, objective: { metric: 'eval_loss', goal: 'min' } });
    expect(plan.reports[0]).toBe('/data/train.csv.automl/report.html');
    expect(automlPipeline(plan)).toMatchObject({ steps: { finish: { after: ['trials'] } } });
  });

  test('tries what the Python of the nodes has, unless models are asked for', () => {
    const facts = { libraries: ['lightgbm'] };
    expect(automlPlan(contextOf(), options).models).toEqual([
      'linear',
      'forest',
      'extra_trees',
      'boosting',
      'mlp',
    ]);
    expect(automlPlan(contextOf(), { ...options, facts }).models).toContain('lightgbm');
    const asked = contextOf({ constraints: { models: ['mlp'] } });
    const { sweep } = automlPlan(asked, { ...options, facts });
    expect(Object.keys(sweep.parameters)).toEqual([
      'model',
      'mlp_width',
      'mlp_layers',
      'mlp_alpha',
      'mlp_rate',
    ]);
  });

  test('has only what people can follow where that is asked for', () => {
    const plan = automlPlan(contextOf({ constraints: { interpretable: true } }), options);
    expect(plan.models).toEqual(['linear', 'tree']);
    expect(plan.sweep.parameters).toMatchObject({ tree_depth: { max: 4, when: { model: ['tree'] } } });
    expect(plan.finish.command).toContain('--single');
  });

  test('names what it is told and has no use for', () => {
    const { notes } = automlPlan(
      contextOf({
        compute_requirements: { gpu_type: 'a100', gpu_count: 4, memory_gb: 8 },
        training_config: { epochs: 3 },
        constraints: { gpu_hours: 2, time: '30m' },
      }),
      options,
    );
    expect(notes).toEqual([
      'No effect on AutoML: gpu_type, gpu_count, epochs.',
      'Trials use no GPU, so gpu_hours is always kept.',
    ]);
  });
});

describe('a task that cannot be', () => {
  const placesOf = (training: unknown) => {
    const result = readAutoml({ training_context: training });
    return result.ok ? [] : result.findings.map(({ path, expected }) => `${path.join('.')}: ${expected}`);
  };

  test.each([
    [{}, 'training_context.data: a mapping such as {path: /data/train.csv, target: price}'],
    [{ data: { ...data, path: 'train.csv' } }, 'training_context.data.path: an absolute path'],
    [
      { data, task: 'regression', constraints: { metric: 'accuracy' } },
      'constraints.metric: one for regression: rmse, mae, r2',
    ],
    [{ data, model_type: 'timeseries' }, 'data.time_column: the column that orders the rows'],
    [{ data, constraints: { interpretable: true, models: ['mlp'] } }, 'constraints.models: linear and tree'],
    [{ data: { ...data, ignore: ['price'] } }, 'data.ignore: columns that are not the target'],
    [{ data, budget: 3 }, 'training_context.budget: null'],
  ])('%j is refused with its place', (training, place) => {
    expect(placesOf(training)).toEqual([expect.stringContaining(place)]);
  });
});
