import { describe, expect, test } from 'vitest';
import { storedOutputs } from '../storeArtifacts.ts';
import { readPipeline } from './pipelineFile.ts';
import { cacheText, outputsOf, type StepRun, stepJob, stepPlaceOf, stepSweep } from './stepJob.ts';

const file = {
  name: 'vision',
  artifacts: '/shared',
  workdir: '/work',
  env: { A: 'x', B: 'y' },
  params: { lr: 0.1, tags: ['a', 'b'] },
  steps: {
    prepare: { run: ['make', `\${outputs.data}`], outputs: { data: { type: 'directory' } }, cache: true },
    train: {
      for_each: `\${params.tags}`,
      inputs: { data: 'prepare.data', lr: `\${params.lr}` },
      outputs: { model: { type: 'file', path: `/models/\${params.lr}.pt` } },
      job: {
        command: ['train', `--lr=\${params.lr}`, `\${inputs.data}`, `\${item}`],
        env: { A: `\${item}` },
        resources: { gpus: 1 },
      },
    },
    tune: {
      sweep: {
        trials: 2,
        objective: { metric: 'eval_loss' },
        parameters: { x: [1, 2] },
        job: { command: `run {x} \${params.lr}`, labels: { team: 'v' } },
      },
    },
  },
};

function aRun(name: string, change: Partial<StepRun> = {}): StepRun {
  const read = readPipeline(file);
  if (!read.ok) throw new Error(JSON.stringify(read.findings));
  const { pipeline } = read;
  const step = pipeline.steps.find((each) => each.name === name);
  if (step === undefined) throw new Error('no such step');
  const params = { lr: 0.1, tags: ['a', 'b'] };
  return {
    pipeline,
    run: 'pln_1',
    project: 'lab',
    step,
    index: 0,
    try: 1,
    item: null,
    params,
    inputs: {},
    ...change,
  };
}

const data = {
  name: 'data',
  type: 'directory',
  path: '/shared/d',
  bytes: 3,
  digest: `sha256:${'a'.repeat(64)}`,
};
const ofTrain = { item: 'b', index: 1, inputs: { data: [data], lr: '0.1' } };

test('a step finds its parameters, inputs and outputs in its command and its environment', () => {
  const made = stepJob(aRun('train', ofTrain));
  if (!made.ok) throw new Error(JSON.stringify(made.findings));
  const { job } = made;
  expect(job).toMatchObject({
    name: 'vision-train-1',
    project: 'lab',
    resources: { gpus: 1 },
    labels: { 'muster.pipeline': 'pln_1', 'muster.step': 'train' },
    workdir: '/work',
    env: {
      A: 'b',
      B: 'y',
      MUSTER_ITEM: 'b',
      MUSTER_STEP: 'train',
      MUSTER_PARAM_lr: '0.1',
      MUSTER_PARAM_tags: 'a\nb',
      MUSTER_INPUT_data: '/shared/d',
      MUSTER_INPUT_lr: '0.1',
      MUSTER_OUTPUT_model: '/models/0.1.pt',
    },
  });
  expect(job.command.slice(-4)).toEqual(['train', '--lr=0.1', '/shared/d', 'b']);
  expect(job.command).toContain(data.digest);
});

test('a step says how long its jobs may take until they are ready, where they do not', () => {
  const jobSettings = { prepare_timeout: `\${params.wait}` };
  const timed = (name: string) => {
    const run = aRun(name, ofTrain);
    return { ...run, params: { ...run.params, wait: '2h' }, step: { ...run.step, jobSettings } };
  };
  const timeOf = (run: StepRun) => {
    const made = stepJob(run);
    return made.ok ? made.job.prepareTimeoutMs : made.findings;
  };
  expect(timeOf(aRun('prepare'))).toBe(600_000);
  expect(timeOf(timed('prepare'))).toBe(7_200_000);
  expect(stepSweep(timed('tune'))).toMatchObject({ job: { prepare_timeout: '2h' } });
  const train = timed('train');
  const timedFile = { ...('file' in train.step.work ? train.step.work.file : {}), prepare_timeout: '20m' };
  expect(timeOf({ ...train, step: { ...train.step, work: { kind: 'job', file: timedFile } } })).toBe(
    1_200_000,
  );
  expect(timeOf({ ...train, params: { ...train.params, wait: 'soon' } })).toMatchObject([
    { path: ['prepare_timeout'], message: 'got "soon"' },
  ]);
  // It changes nothing of the result.
  const cache = { ttlMs: null };
  const texts = [{}, jobSettings].map((each) =>
    cacheText(aRun('prepare', { step: { ...aRun('prepare').step, cache, jobSettings: each } }), null),
  );
  expect(texts[0]).toBe(texts[1]);
});

test('each try writes to a directory of its own', () => {
  const paths = [1, 2].map((each) => outputsOf(aRun('prepare', { try: each }))[0]?.path);
  expect(paths).toEqual(['/shared/pln_1/prepare-1/data', '/shared/pln_1/prepare-2/data']);
});

test('a sweep gets the project, the name and the labels of the step', () => {
  expect(stepSweep(aRun('tune'))).toMatchObject({
    name: 'vision-tune',
    job: {
      project: 'lab',
      command: 'run {x} 0.1',
      labels: { team: 'v', 'muster.pipeline': 'pln_1', 'muster.step': 'tune' },
    },
  });
});

test('the cache tells apart what may differ in its result, and nothing else', () => {
  const cached = (change: Partial<StepRun>) => {
    const { step } = aRun('train');
    return aRun('train', { ...ofTrain, step: { ...step, cache: { ttlMs: null } }, ...change });
  };
  const text = (change: Partial<StepRun>, code: string | null = null) => cacheText(cached(change), code);
  const same = text({});
  expect(same).not.toBeNull();
  expect(text({ run: 'pln_2', try: 3, inputs: { lr: '0.1', data: [{ ...data, path: '/elsewhere' }] } })).toBe(
    same,
  );
  const others = [
    text({ item: 'a' }),
    text({ params: { lr: 0.2, tags: ['a', 'b'] } }),
    text({ project: 'other' }),
    text({ inputs: { data: [{ ...data, digest: `sha256:${'b'.repeat(64)}` }], lr: '0.1' } }),
    text({}, 'git:1234'),
  ];
  expect(new Set([same, ...others]).size).toBe(6);
  expect(cacheText(aRun('train', ofTrain), null)).toBeNull();
});

describe('with a store', () => {
  const artifacts = {
    kind: 'store',
    url: `s3://models/\${params.lr}`,
    endpoint: null,
    region: 'eu-central-1',
    pathStyle: false,
    secret: 's3',
  } as const;
  const stored = { ...data, path: 's3://models/0.1/pln_0/prepare-1/job_1-1/data' };
  const inStore = (name: string, change: Partial<StepRun> = {}) => {
    const run = aRun(name, change);
    return { ...run, pipeline: { ...run.pipeline, artifacts } };
  };

  test('the agent gets what to move, and the program where it is', () => {
    const run = inStore('train', { ...ofTrain, inputs: { data: [stored, stored], lr: '0.1' }, try: 2 });
    const step = { ...run.step, outputs: [{ name: 'model', type: 'file' as const, path: 'model.pt' }] };
    const made = stepJob({ ...run, step });
    if (!made.ok) throw new Error(JSON.stringify(made.findings));
    const of = { name: 'data', type: 'directory', url: stored.path, digest: data.digest };
    expect(made.job.artifacts).toEqual({
      url: 's3://models/0.1/pln_1/train.1-2',
      endpoint: null,
      region: 'eu-central-1',
      pathStyle: false,
      secret: 's3',
      inputs: [
        { ...of, path: 'data/0/data' },
        { ...of, path: 'data/1/data' },
      ],
      outputs: [{ name: 'model', type: 'file', path: 'model.pt' }],
    });
    expect(made.job.command).toEqual([
      'train',
      '--lr=0.1',
      '{muster_artifacts}/inputs/data/0/data',
      '{muster_artifacts}/inputs/data/1/data',
      'b',
    ]);
    expect(made.job.env['MUSTER_OUTPUT_model']).toBe('{muster_artifacts}/outputs/model.pt');
  });

  test('a step without artifacts is a plain job, and the trials of a sweep get its inputs', () => {
    const plain = { ...inStore('prepare'), inputs: {} };
    const made = stepJob({ ...plain, step: { ...plain.step, outputs: [] } });
    expect(made).toMatchObject({ ok: true, job: { artifacts: null, command: ['make', `\${outputs.data}`] } });
    expect(stepSweep(inStore('tune', { inputs: { data: [stored] } }))).toMatchObject({
      job: { artifacts: { inputs: [{ url: stored.path }], outputs: [] } },
    });
  });

  test('the cache takes nothing of another bucket', () => {
    const cached = (run: StepRun) =>
      cacheText({ ...run, step: { ...run.step, cache: { ttlMs: null } } }, null);
    const own = inStore('train', ofTrain);
    const elsewhere = {
      ...own,
      pipeline: { ...own.pipeline, artifacts: { ...artifacts, url: 's3://other' } },
    };
    const inDirectory = aRun('train', ofTrain);
    const moved = {
      ...own,
      pipeline: { ...own.pipeline, artifacts: { ...artifacts, url: 's3://models/b' } },
    };
    expect(new Set([own, elsewhere, inDirectory].map(cached)).size).toBe(3);
    expect(cached(moved)).toBe(cached(own));
  });

  test('its outputs are what its agent has kept, all of them', () => {
    const wanted = outputsOf(inStore('prepare'));
    const kept = [{ name: 'data', bytes: 3, digest: data.digest }];
    const of = { id: 'job_1', attempt: 2 };
    const url = stepPlaceOf(inStore('prepare'));
    expect(storedOutputs(url, of, wanted, kept)).toEqual([
      { ...data, path: 's3://models/0.1/pln_1/prepare-1/job_1-2/data' },
    ]);
    expect(storedOutputs(url, of, wanted, [])).toEqual([]);
  });
});

test('the job of a step has no phases', () => {
  const run = aRun('train', ofTrain);
  const { work } = run.step;
  if (work.kind !== 'job') throw new Error('no job');
  const job = { command: ['train'], phases: [{ name: 'a', steps: 10 }] };
  const made = stepJob({ ...run, step: { ...run.step, work: { ...work, file: job } } });
  expect(made).toMatchObject({
    ok: false,
    findings: [{ path: ['phases'], message: 'given in a step of a pipeline' }],
  });
});

test('a job that is stopped by SIGINT has no artifacts that a script checks', () => {
  const run = aRun('train', ofTrain);
  const { work } = run.step;
  if (work.kind !== 'job') throw new Error('no job');
  const changed = { command: ['train'], stop_signal: 'SIGINT' };
  const step = { ...run.step, work: { ...work, file: changed } };
  const refused = {
    ok: false,
    findings: [
      { path: ['stop_signal'], message: 'got SIGINT in a step with artifacts', suggestion: 'SIGTERM' },
    ],
  };
  expect(stepJob({ ...run, step })).toMatchObject(refused);
  // Before the run starts, when what is read is not known yet.
  expect(stepJob({ ...run, step: { ...step, outputs: [] }, inputs: { data: '/inputs/data' } })).toMatchObject(
    refused,
  );
  expect(stepJob({ ...run, step: { ...step, outputs: [], inputs: [] }, inputs: {} }).ok).toBe(true);
});
