import { formatPath } from '@muster/common/spec/path';
import { expect, test } from 'vitest';
import { readPipeline } from './pipelineFile.ts';

const least = { name: 'vision', steps: { train: { run: ['python', 'train.py'] } } };

const full = {
  name: 'vision',
  artifacts: '/shared/artifacts',
  code: './src',
  parallel: 4,
  params: { data: '/data/raw', epochs: 3, lr: { type: 'float' }, seeds: [1, 2] },
  steps: {
    report: { run: 'cat $MUSTER_INPUT_models', inputs: { models: 'train.model' }, when: 'epochs > 1' },
    train: {
      for_each: `\${params.seeds}`,
      inputs: { data: 'prepare.data', hp: 'tune.best' },
      outputs: { model: { type: 'file', path: 'model.pt' } },
      job: {
        command: ['python', 'train.py', `--lr=\${params.lr}`, `--seed=\${item}`, `--data=\${inputs.data}`],
        resources: { gpus: 1 },
      },
      retries: { max: 2 },
      timeout: '24h',
      cache: { ttl: '7d' },
    },
    prepare: {
      run: ['python', 'prepare.py', '--out', `\${outputs.data}`],
      inputs: { raw: `\${params.data}` },
      outputs: { data: { type: 'directory' } },
      cache: true,
    },
    tune: {
      after: ['prepare'],
      sweep: {
        sampler: 'random',
        trials: 5,
        objective: { metric: 'eval_loss' },
        parameters: { wd: { type: 'float', min: 0, max: 1 } },
        job: { command: 'python train.py --wd={wd}', resources: { gpus: 1 } },
      },
    },
  },
  on_failure: { alarm: { run: 'echo failed' } },
  finally: { tidy: { run: 'echo bye' } },
};

function problems(change: object): readonly string[] {
  const read = readPipeline({ ...least, ...change });
  if (read.ok) return [];
  return read.findings.map(
    ({ path, message, expected, suggestion }) =>
      `${formatPath(path)}: ${message}${expected === null ? '' : `; expected ${expected}`}` +
      (suggestion === null ? '' : `; meant ${suggestion}`),
  );
}

const step = (change: object) => ({ steps: { train: { run: 'true', ...change } } });

test('a file is read with what is not said, and its steps are in the order of their needs', () => {
  const read = readPipeline(full);
  if (!read.ok) throw new Error(JSON.stringify(read.findings));
  const { steps, params, ...rest } = read.pipeline;
  expect(rest).toEqual({
    name: 'vision',
    project: 'default',
    workdir: null,
    env: {},
    artifacts: { kind: 'directory', path: '/shared/artifacts' },
    code: { directory: './src' },
    parallel: 4,
  });
  expect(params).toEqual([
    { name: 'data', type: 'string', default: '/data/raw' },
    { name: 'epochs', type: 'int', default: 3 },
    { name: 'lr', type: 'float', default: null },
    { name: 'seeds', type: 'list', default: [1, 2] },
  ]);
  expect(steps.map(({ name, group }) => `${group} ${name}`)).toEqual([
    'steps prepare',
    'steps tune',
    'steps train',
    'steps report',
    'on_failure alarm',
    'finally tidy',
  ]);
  expect(steps[2]).toMatchObject({
    forEach: { parameter: 'seeds' },
    inputs: [
      { name: 'data', kind: 'output', step: 'prepare', output: 'data' },
      { name: 'hp', kind: 'output', step: 'tune', output: 'best' },
    ],
    outputs: [{ name: 'model', type: 'file', path: 'model.pt' }],
    retries: 2,
    timeoutMs: 86_400_000,
    cache: { ttlMs: 604_800_000 },
  });
  expect(steps[0]).toMatchObject({
    inputs: [{ name: 'raw', kind: 'text' }],
    outputs: [{ name: 'data', type: 'directory', path: 'data' }],
    retries: 0,
    timeoutMs: null,
    cache: { ttlMs: null },
    when: null,
    forEach: null,
  });
});

test.each<readonly [object, readonly unknown[]]>([
  [{ name: undefined }, [expect.stringContaining('name: missing; expected 1 to 63 lower-case')]],
  [{ stepz: {} }, ['stepz: unknown key; meant steps']],
  [{ steps: {} }, [expect.stringContaining('steps: got a mapping; expected a mapping of 1 to 1000 steps')]],
  [{ steps: { Train: { run: 'true' } } }, [expect.stringContaining('steps.Train: is not a valid name')]],
  [{ steps: { a: {} } }, ['steps.a: has nothing to run; expected one of job, sweep and run']],
  [
    { steps: { a: { run: 'true', job: { command: 'true' } } } },
    ['steps.a: has job and run; expected one of job, sweep and run'],
  ],
  [step({ after: 'prepar' }), ['steps.train.after: there is no step "prepar"; expected one of train']],
  [step({ after: ['train'] }), ['steps.train.after: it waits for itself']],
  [step({ afer: [] }), ['steps.train.afer: unknown key; meant after']],
  [
    {
      steps: {
        a: { run: 'true', after: 'c' },
        b: { run: 'true', after: 'a' },
        c: { run: 'true', after: ['b'] },
      },
    },
    ['steps.b.after: a cycle, each waits for the next: a → c → b → a'],
  ],
  [
    {
      steps: {
        a: { run: 'true', outputs: { x: { type: 'file', path: '/x' } } },
        b: { run: 'true', inputs: { i: 'a.y' } },
      },
    },
    ['steps.b.inputs.i: the step "a" has no output "y"; expected one of x'],
  ],
  [
    step({ inputs: { x: 'plain' } }),
    [expect.stringContaining('steps.train.inputs.x: got "plain"; expected STEP.OUTPUT')],
  ],
  [step({ inputs: { x: `\${params.lr}` } }), ['steps.train.inputs.x: the pipeline has no params "lr"']],
  [step({ run: `echo \${params.lr}` }), ['steps.train.run: the pipeline has no params "lr"']],
  [step({ run: ['echo', `\${inputs.x}`] }), ['steps.train.run[1]: the step has no inputs "x"']],
  [step({ run: `echo \${item}` }), [`steps.train.run: \${item} is for steps with for_each`]],
  [
    step({ outputs: { x: { path: '/x' } } }),
    ['steps.train.outputs.x.type: missing; expected directory, file'],
  ],
  [
    step({ outputs: { x: { type: 'file' } } }),
    [
      expect.stringContaining(
        'artifacts: missing; expected a directory that all nodes share, or an S3-compatible store, for the outputs of train',
      ),
    ],
  ],
  [
    step({ outputs: { x: { type: 'file', path: '/a/../b' } } }),
    [expect.stringContaining('steps.train.outputs.x.path: got "/a/../b"')],
  ],
  [step({ for_each: [] }), [expect.stringContaining('steps.train.for_each: got an empty list')]],
  [step({ for_each: [1, 1] }), ['steps.train.for_each[1]: 1 is in the list twice']],
  [
    { params: { n: 3 }, ...step({ for_each: `\${params.n}` }) },
    ['steps.train.for_each: the parameter "n" is of type int; expected one of type list'],
  ],
  [step({ retries: 3 }), ['steps.train.retries: got 3; expected a mapping such as {max: 2}']],
  [step({ timeout: 'soon' }), [expect.stringContaining('steps.train.timeout: got "soon"')]],
  [
    step({ prepare_timeout: '2d' }),
    [expect.stringContaining('steps.train.prepare_timeout: got "2d"; expected a duration from 1s to 1d')],
  ],
  [
    step({ prepare_timeout: `\${params.wait}` }),
    [
      'steps.train.prepare_timeout: the pipeline has no params "wait"',
      expect.stringContaining('steps.train.prepare_timeout: got'),
    ],
  ],
  [
    { params: { wait: 'long' }, ...step({ prepare_timeout: `\${params.wait}` }) },
    [expect.stringContaining('steps.train.prepare_timeout: got "long"; expected a duration from 1s to 1d')],
  ],
  [step({ cache: 'yes' }), [expect.stringContaining('steps.train.cache: got "yes"')]],
  [step({ when: '' }), [expect.stringContaining('steps.train.when: got ""')]],
  [{ finally: { train: { run: 'true' } } }, ['finally.train: steps has a step "train" too']],
  [
    { finally: { tidy: { run: 'true', after: 'train' } } },
    ['finally.tidy.after: "train" is one of steps; expected a step of finally'],
  ],
  [{ params: { 'a b': 1 } }, [expect.stringContaining('params["a b"]: is not a valid name')]],
  [{ params: { steps: 1 } }, [expect.stringContaining('params.steps: is not a valid name')]],
  [{ params: { a: { default: 1 } } }, ['params.a.type: missing; expected string, int, float, bool, list']],
  [{ params: { a: { type: 'int', default: 1.5 } } }, ['params.a.default: got 1.5; expected a whole number']],
  [{ params: { a: null } }, [expect.stringContaining('params.a: has no value; expected a default value')]],
  [{ artifacts: 'relative' }, [expect.stringContaining('artifacts: got "relative"')]],
  [{ project: 'a b' }, [expect.stringContaining('project: got "a b"')]],
  [
    { steps: { a: { job: { command: 'true', project: 'lab' } } } },
    ['steps.a.job.project: all jobs of a pipeline are of one project; expected project of the pipeline'],
  ],
  [
    { steps: { a: { sweep: { ...full.steps.tune.sweep, warm_start: { sweeps: ['b'] } } } } },
    expect.arrayContaining(['steps.a.sweep.warm_start: a sweep of a pipeline takes over no trials']),
  ],
  [{ code: 3 }, [expect.stringContaining('code: got 3; expected a directory')]],
  [
    { steps: { a: { job: { command: 'true', gpus: 1 } } } },
    [expect.stringContaining('steps.a.job.gpus: unknown key')],
  ],
  [
    { steps: { a: { job: { command: 'true', array: 3 } } } },
    [expect.stringContaining('steps.a.job.array: the job of a step')],
  ],
  [
    { steps: { a: { sweep: { job: { command: 'true' } }, cache: true } } },
    expect.arrayContaining([
      'steps.a.cache: sweeps are not cached',
      expect.stringContaining('steps.a.sweep.trials: missing'),
    ]),
  ],
  [
    {
      params: { gpus: 'two' },
      steps: { a: { job: { command: 'true', resources: { gpus: `\${params.gpus}` } } } },
    },
    [expect.stringContaining('steps.a.job.resources.gpus: got "two"')],
  ],
])('%j is refused', (change, expected) => {
  expect(problems(change)).toEqual(expected);
});

test('artifacts may be in a store, whose settings are those of a job', () => {
  const store = { url: `s3://models/\${params.team}/`, endpoint: 'https://s3.example.com', secret: 's3' };
  const read = readPipeline({ ...least, params: { team: 'vision' }, artifacts: store });
  if (!read.ok) throw new Error(JSON.stringify(read.findings));
  expect(read.pipeline.artifacts).toEqual({
    kind: 'store',
    url: `s3://models/\${params.team}`,
    endpoint: 'https://s3.example.com',
    region: 'us-east-1',
    pathStyle: true,
    secret: 's3',
  });
});

test.each<readonly [object, readonly unknown[]]>([
  [
    { artifacts: 's3://models' },
    [
      expect.stringMatching(
        /^artifacts: got "s3:\/\/models"; .*; meant \{url: s3:\/\/models, secret: NAME\}/,
      ),
    ],
  ],
  [{ artifacts: { url: 's3://models' } }, [expect.stringContaining('artifacts.secret: missing')]],
  [
    { artifacts: { url: 's3://A/b', secret: 's3' } },
    [expect.stringContaining('artifacts.url: got "s3://A/b"; expected s3://BUCKET/PREFIX')],
  ],
  [
    { artifacts: { url: 's3://models/../x', secret: 's3' } },
    [expect.stringContaining('artifacts.url: got "s3://models/../x"')],
  ],
  [
    { artifacts: { url: 's3://models', secret: 's3', endpoint: 'https://x/path', regoin: 'a' } },
    [
      expect.stringMatching(/artifacts\.regoin: unknown key.*region/),
      expect.stringContaining('artifacts.endpoint: got "https://x/path"'),
    ],
  ],
  [
    {
      artifacts: { url: 's3://models', secret: 's3' },
      ...step({
        outputs: {
          a: { type: 'file', path: '/a' },
          b: { type: 'directory' },
          c: { type: 'file', path: 'b/c' },
          d: { type: 'file', path: 'b.sha256' },
        },
      }),
    },
    [
      expect.stringContaining('steps.train.outputs.a.path: got "/a"; expected a path below'),
      "steps.train.outputs.c.path: b/c and b of b would be in each other's place in the store",
      "steps.train.outputs.d.path: b.sha256 and b of b would be in each other's place in the store",
    ],
  ],
])('%j is refused', (change, expected) => {
  expect(problems(change)).toEqual(expected);
});

test('a value that only a run says is not judged before', () => {
  const resources = { gpus: `\${params.gpus}` };
  const steps = { a: { job: { command: 'true', resources } } };
  expect(problems({ params: { gpus: { type: 'string' } }, steps })).toEqual([]);
});
