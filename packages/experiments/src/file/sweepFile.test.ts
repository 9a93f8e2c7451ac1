import { formatPath } from '@muster/common/spec/path';
import { expect, test } from 'vitest';
import { readSweep, sweepToFile } from './sweepFile.ts';

const least = {
  trials: 10,
  objective: { metric: 'eval_loss' },
  parameters: { lr: { type: 'float', min: 1e-5, max: 0.1, log: true } },
  job: { command: ['python', 'train.py', '--lr={lr}'] },
};

function problems(change: object): readonly string[] {
  const read = readSweep({ ...least, ...change });
  if (read.ok) return [];
  return read.findings.map(
    ({ path, message, expected, suggestion }) =>
      `${formatPath(path)}: ${message}${expected === null ? '' : `; expected ${expected}`}` +
      (suggestion === null ? '' : `; meant ${suggestion}`),
  );
}

test('what is not said has its default, and a sweep that is written again is the same', () => {
  const read = readSweep(least);
  if (!read.ok) throw new Error('refused');
  expect(read.sweep).toMatchObject({
    name: 'python',
    sampler: 'tpe',
    seed: 0,
    trials: 10,
    parallel: null,
    maxFailures: 5,
    objective: { metric: 'eval_loss', goal: 'min', of: 'last' },
    parameters: [{ name: 'lr', type: 'float', min: 1e-5, max: 0.1, log: true, step: null, when: {} }],
    constraints: [],
    earlyStopping: null,
  });
  const full = {
    ...least,
    name: 'tune',
    sampler: 'halton',
    seed: 7,
    seeds: 1,
    parallel: 4,
    max_failures: 2,
    on_oom: 'infeasible',
    early_stopping: { rule: 'hyperband', min_steps: 10, max_steps: 810 },
    objective: { metric: 'tokens_per_second', at_step: 100 },
    parameters: {
      momentum: { type: 'float', min: 0, max: 0.9, step: 0.1, when: { optimizer: 'sgd' } },
      optimizer: ['adam', 'sgd'],
      width: { type: 'int', min: 16, max: 4096, log: true },
      fused: { values: [true, false] },
    },
    constraints: ['width <= 1024'],
  };
  const again = readSweep(full);
  if (!again.ok) throw new Error(JSON.stringify(again.findings));
  expect(again.sweep.parameters.map(({ name }) => name)).toEqual(['optimizer', 'width', 'fused', 'momentum']);
  expect(again.sweep.objective).toEqual({ metric: 'tokens_per_second', goal: 'max', of: { atStep: 100 } });
  expect(readSweep(JSON.parse(JSON.stringify(sweepToFile(again.sweep))))).toEqual(again);
});

test('several objectives are written with the first one as the objective', () => {
  const objectives = [{ metric: 'eval_loss' }, { metric: 'tokens_per_second', of: 'best' }];
  const read = readSweep({ ...least, objective: undefined, objectives });
  if (!read.ok) throw new Error(JSON.stringify(read.findings));
  const [first, second] = [
    { metric: 'eval_loss', goal: 'min', of: 'last' },
    { metric: 'tokens_per_second', goal: 'max', of: 'best' },
  ];
  expect(read.sweep).toMatchObject({ objective: first, furtherObjectives: [second] });
  const file = sweepToFile(read.sweep);
  expect([file['objective'], file['objectives']]).toEqual([first, [first, second]]);
  expect(readSweep(file)).toEqual(read);
});

test('a warm start names sweeps and trials, which are written again as they were', () => {
  const warm = {
    ...least,
    warm_start: ['tune', { params: { lr: 0.01 }, value: 0.3 }, { params: { lr: 0.1 } }],
  };
  const read = readSweep(warm);
  if (!read.ok) throw new Error(JSON.stringify(read.findings));
  expect(read.sweep.warmStart).toEqual({
    sweeps: ['tune'],
    trials: [
      { params: { lr: 0.01 }, value: 0.3 },
      { params: { lr: 0.1 }, value: null },
    ],
  });
  expect(sweepToFile(read.sweep)['warm_start']).toEqual(warm.warm_start);
});

test.each<readonly [object, readonly string[]]>([
  [
    { objectives: [{ metric: 'train_loss' }] },
    ['objective: is not the first of objectives; expected one of the two'],
  ],
  [
    { objectives: [] },
    [
      'objectives: got an empty list; expected a list of 1 to 4, such as [{metric: eval_loss}, {metric: tokens_per_second}]',
    ],
  ],
  [
    {
      objectives: [{ metric: 'eval_loss' }, { metric: 'eval_los' }],
      early_stopping: { rule: 'asha', min_steps: 5 },
    },
    [
      expect.stringMatching(/^objectives\[1\].metric: got "eval_los".*meant eval_loss$/),
      'early_stopping: looks at one value of a trial, and not at several objectives; expected one objective',
    ],
  ],
  [
    { sampler: 'random', warm_start: ['tune'] },
    ['warm_start: means nothing to the sampler random; expected sampler: tpe'],
  ],
  [
    { warm_start: [{ params: { lr: 5 }, value: 1 }] },
    [
      'warm_start[0].params: got a mapping; expected a value of each parameter that applies, as the sweep may choose it',
    ],
  ],
  [
    { warm_start: [{ params: { lr: 0.01 }, value: 'low' }] },
    ['warm_start[0].value: got "low"; expected a number; or none, for parameters that do not work'],
  ],
  [{ paralel: 2 }, ['paralel: unknown key; meant parallel']],
  [{ sampler: 'TPE' }, ['sampler: got "TPE"; expected tpe, random, halton, grid; meant tpe']],
  [{ trials: undefined }, ['trials: missing; expected how many trials there will be, such as trials: 50']],
  [{ budget: { gpu_hours: 0 } }, ['budget.gpu_hours: got 0; expected a number above 0']],
  [
    { budget: { wall_clock: '3 weeks' } },
    ['budget.wall_clock: got "3 weeks"; expected a duration such as 90m or 12h'],
  ],
  [{ budget: { trials: 5 } }, ['budget.trials: is the same as trials: give one of them']],
  [{ trials: 0 }, ['trials: got 0; expected a whole number from 1 to 10000']],
  [{ seeds: 0 }, ['seeds: got 0; expected a whole number from 1 to 100']],
  [
    {
      seeds: 2,
      early_stopping: { rule: 'asha', min_steps: 10 },
      parameters: { seed: [1, 2] },
      job: { command: ['x'], params: { seed: 1 }, checkpoint: { dir: '/c/{trial}' } },
    },
    [
      'job.params.seed: is a parameter of the sweep, which sets it',
      'early_stopping: compares one curve of each trial, and with seeds a trial has several; ' +
        'expected a sweep without seeds first, and seeds for its best parameters',
      'parameters.seed: is set by seeds; expected another name',
      'job.params.seed: is set by seeds; expected another name',
      'job.checkpoint.dir: all seeds of a trial would save to one directory; ' +
        'expected a directory for each, with {seed} in its path',
    ],
  ],
  [
    {
      on_oom: 'infeasible',
      parameters: { batch_size: { type: 'int', min: 4, max: 64 }, bs: [8, 2], eval_batch: [1] },
      job: { command: ['x', '{batch_size}', '{bs}'], retry: { batch_min: 8 } },
    },
    [
      'job.retry.batch_min: has no effect with on_oom: infeasible; expected on_oom: shrink',
      'parameters.batch_size: has 4, and job.retry.batch_min is 8; expected values from 8 on',
      'parameters.bs: has 2, and job.retry.batch_min is 8; expected values from 8 on',
    ],
  ],
  [{ seed: 1.5 }, ['seed: got 1.5; expected a whole number from 0 to 4294967295']],
  [
    { name: 'Tune It' },
    [expect.stringContaining('name: got "Tune It"; expected 1 to 63 lower-case letters')],
  ],
  [{ objective: {} }, [expect.stringContaining('objective.metric: missing; expected train_loss, eval_loss')]],
  [{ objective: { metric: 'eval_los' } }, [expect.stringContaining('meant eval_loss')]],
  [
    { objective: { metric: 'eval_loss', of: 'best', at_step: 3 } },
    ['objective.of: of and at_step exclude each other'],
  ],
  [{ early_stopping: { rule: 'asha' } }, [expect.stringContaining('early_stopping.min_steps: missing')]],
  [{ early_stopping: { min_steps: 3 } }, ['early_stopping.rule: missing; expected median, asha, hyperband']],
  [
    { early_stopping: { rule: 'median', min_steps: 3, reduction: 2 } },
    ['early_stopping.reduction: means nothing to the rule median'],
  ],
  [
    { early_stopping: { rule: 'hyperband', min_epochs: 2, max_steps: 9 } },
    [
      'early_stopping.max_steps: steps and epochs exclude each other',
      'early_stopping.max_epochs: missing; expected the epoch at which trials end',
    ],
  ],
  [
    { early_stopping: { rule: 'hyperband', min_epochs: 2, max_epochs: 0.5 } },
    ['early_stopping.max_epochs: got 0.5; expected epochs, at least 2'],
  ],
  [
    { objective: { metric: 'eval_loss', goal: 'min', direction: 'minimize' } },
    ['objective.direction: goal and direction exclude each other'],
  ],
  [
    { objective: { metric: 'eval_loss', direction: 'max' } },
    ['objective.direction: got "max"; expected minimize, maximize; meant maximize'],
  ],
  [
    { early_stopping: { rule: 'hyperband', min_steps: 30, max_steps: 3 } },
    [expect.stringContaining('early_stopping.max_steps: got 3; expected a whole number from 30')],
  ],
  [
    { parameters: {} },
    [expect.stringContaining('parameters: got a mapping; expected a mapping of parameters')],
  ],
  [
    { parameters: { lr: { min: 0, max: 1 } } },
    ['parameters.lr: has no type; expected type: float, or type: int'],
  ],
  [
    { parameters: { lr: { type: 'float', min: 0, max: 1, log: true } } },
    ['parameters.lr.min: got 0; expected a number above 0, because of log: true'],
  ],
  [
    { parameters: { lr: { type: 'float', min: 2, max: 1 } } },
    ['parameters.lr.max: 1 is below min, which is 2'],
  ],
  [
    { parameters: { n: { type: 'int', min: 1, max: 1.5 } } },
    ['parameters.n.max: got 1.5; expected a whole number of at most 1099511627776'],
  ],
  [{ parameters: { a: [] } }, ['parameters.a: got an empty list; expected a list of 1 to 1000 values']],
  [{ parameters: { a: [1, 2, 1] } }, ['parameters.a[2]: 1 is in the list twice']],
  [{ parameters: { trial: [1] } }, [expect.stringContaining('parameters.trial: is not a valid name')]],
  [
    { parameters: { a: { values: [1], when: { b: 2 } } } },
    ['parameters.a.when.b: there is no parameter "b"'],
  ],
  [
    { parameters: { a: { values: [1], when: { b: 2 } }, b: [1, 3] } },
    ['parameters.a.when.b: b never is 2; expected 1, 3'],
  ],
  [
    { parameters: { a: { values: [1], when: { b: 1 } }, b: { values: [1], when: { a: 1 } } } },
    ['parameters.a.when: conditions in a circle: a, b'],
  ],
  [{ constraints: 'lr < 1' }, [expect.stringContaining('constraints: got "lr < 1"; expected a list')]],
  [{ job: undefined }, ['job: missing; expected the job of each trial, as a job file has it']],
  [{ job: { ...least.job, gpus: 4 } }, [expect.stringContaining('job.gpus: unknown key')]],
  [{ job: { ...least.job, array: 3 } }, ['job.array: a trial is one job, not an array']],
  [{ job: { ...least.job, after: ['prepare'] } }, ['job.after: trials cannot wait for other jobs']],
  [
    { job: { ...least.job, params: { lr: 1 } } },
    ['job.params.lr: is a parameter of the sweep, which sets it'],
  ],
  [
    { job: { ...least.job, checkpoint: { dir: '/ckpt' } } },
    [expect.stringContaining('job.checkpoint.dir: all trials would save to one directory')],
  ],
  [
    { sampler: 'grid', trials: undefined },
    ['parameters.lr: a grid cannot have every value of it; expected a step, or a list of values'],
  ],
  [
    { sampler: 'grid', parameters: { n: { type: 'int', min: 1, max: 100_000 } } },
    [expect.stringContaining('parameters: the grid has too many points')],
  ],
])('%j is refused', (change, expected) => {
  expect(problems(change)).toEqual(expected);
});

test('rungs may be by epoch, and the direction may be written as Optuna writes it', () => {
  const read = (change: object) => {
    const result = readSweep({ ...least, ...change });
    if (!result.ok) throw new Error(JSON.stringify(result.findings));
    expect(readSweep(sweepToFile(result.sweep))).toEqual(result);
    return result.sweep;
  };
  const hyperband = { rule: 'hyperband', min_epochs: 0.5, max_epochs: 27 };
  expect(read({ early_stopping: hyperband }).earlyStopping).toEqual({
    kind: 'hyperband',
    unit: 'epochs',
    min: 0.5,
    max: 27,
    reduction: 3,
  });
  const goalOf = (direction: string) =>
    read({ objective: { metric: 'eval_loss', direction } }).objective.goal;
  expect([goalOf('minimize'), goalOf('maximize')]).toEqual(['min', 'max']);
});

test('a budget limits the trials, or stands for their number', () => {
  const read = (change: object) => {
    const result = readSweep({ ...least, trials: undefined, ...change });
    if (!result.ok) throw new Error(JSON.stringify(result.findings));
    expect(readSweep(sweepToFile(result.sweep))).toEqual(result);
    return result.sweep;
  };
  expect(read({ budget: { gpu_hours: 100, usd: 250.5, wall_clock: '90m' } })).toMatchObject({
    trials: 10_000,
    budget: { gpuHours: 100, usd: 250.5, wallClockMs: 5_400_000 },
  });
  expect(read({ budget: { trials: 7 } })).toMatchObject({ trials: 7, budget: null });
});

test('everything that is wrong is found at once', () => {
  expect(problems({ sampler: 'x', seed: -1, job: {} })).toHaveLength(3);
  const read = readSweep([]);
  expect(read.ok).toBe(false);
});

test('trials have no phases', () => {
  const job = { ...least.job, phases: [{ name: 'a', steps: 10 }] };
  expect(problems({ job })).toEqual([
    'job.phases: is not for trials of a sweep: a trial is one attempt at one set of parameters',
  ]);
});
