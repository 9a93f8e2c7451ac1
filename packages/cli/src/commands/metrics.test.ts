import { MusterError } from '@muster/common/errors';
import type { GpuUsage } from '@muster/common/telemetry';
import type { TrainingSummary } from '@muster/common/training';
import { expect, test } from 'vitest';
import { exitCodes } from '../exitCodes.ts';
import { aJob, anAttempt, aTask, submittedAtMs, wire } from '../testing/fakeCoordinator.ts';
import { run } from '../testing/testContext.ts';

const job = aJob({
  state: 'running',
  spec: { name: 'train', command: ['true'], resources: { nodes: 1, gpus: 1 } },
  attempts: [anAttempt()],
});
const series = {
  attempt: 1,
  nodeRank: 0,
  node: 'node-1',
  gpuUuid: 'GPU-0',
  points: [
    { atMs: submittedAtMs, value: 0 },
    { atMs: submittedAtMs + 10_000, value: null },
    { atMs: submittedAtMs + 20_000, value: 100 },
  ],
};
const utilization = { unit: 'percent', series: [series] };
const noSeries = { unit: 'percent', series: [] };
const answers = {
  GetJob: () => wire.job(job),
  QueryMetrics: ({ name }: { readonly name: string }) =>
    wire.metrics(name === 'gpu_utilization' ? utilization : noSeries),
  SummarizeTraining: () => ({ metrics: [], thinned: false, unreadBytes: 0 }),
};
const summaryOf = (change: Partial<TrainingSummary> = {}): TrainingSummary => ({
  name: 'train_loss',
  unit: 'loss',
  last: 0.5,
  best: 0.25,
  firstStep: 0,
  lastStep: 40,
  bestStep: 30,
  rows: 41,
  notFinite: 0,
  notFiniteStep: null,
  first: 4,
  least: 0.25,
  leastStep: 30,
  greatest: 4,
  greatestStep: 0,
  omitted: 0,
  mergedPoints: 0,
  ...change,
});
const training = (...summaries: readonly TrainingSummary[]) => ({
  metrics: summaries.map(wire.summary),
  thinned: false,
  unreadBytes: 0,
});
const utf8 = { environment: { unicode: true } };
const uncoloured = { environment: { unicode: true, colour: 'never' } } as const;

test('a metric is shown per GPU, in numbers and as a chart', async () => {
  const { stdout, requests } = await run(
    ['metrics', job.id, 'gpu_utilization', '--since', '30m', '--attempt', '1'],
    answers,
    utf8,
  );
  expect(stdout).toBe(
    [
      'train  job_0123456789ab  gpu_utilization',
      '',
      'RANK  NODE    GPU     LAST  MIN  MEAN    MAX  30 s, 0 to 100 %',
      '   0  node-1  GPU-0  100 %  0 %  50 %  100 %  ▁ █',
      '',
    ].join('\n'),
  );
  expect(requests.at(-1)).toMatchObject({
    request: { jobId: job.id, name: 'gpu_utilization', sinceMs: 1_800_000, attempt: 1 },
  });
});

test('without a name there is a line of each, and what was not read is no 0', async () => {
  const { stdout } = await run(['metrics', job.id], answers);
  expect(stdout).toBe(
    [
      'train  job_0123456789ab',
      '',
      'METRIC              MEAN   PEAK   LAST',
      'gpu_utilization     50 %  100 %  100 %',
      ...[
        'gpu_memory_used_mb',
        'gpu_power_watts',
        'gpu_energy_joules',
        'gpu_temperature',
        'sm_active',
        'tensor_active',
        'dram_active',
      ].map((name) => `${name.padEnd(18)}     -      -      -`),
      '',
    ].join('\n'),
  );
});

test('a metric of the output is shown per rank, with digits enough for a learning rate', async () => {
  const points = [3e-5, 2.9e-5].map((value, index) => ({ atMs: submittedAtMs + index * 10_000, value }));
  const ofRank = { attempt: 1, nodeRank: 0, node: 'node-1', gpuUuid: '', points };
  const QueryMetrics = () => wire.metrics({ unit: 'rate', series: [ofRank] });
  const { stdout } = await run(['metrics', job.id, 'learning_rate'], { ...answers, QueryMetrics });
  expect(stdout).toMatch(/RANK +NODE +LAST +MIN +MEAN +MAX/);
  expect(stdout).not.toContain('GPU');
  expect(stdout).toContain('0.000029  0.000029  0.0000295  0.00003');
});

test('-o json prints what the API gave, under its name where there are several', async () => {
  const one = await run(['metrics', job.id, 'gpu_utilization', '-o', 'json'], answers);
  expect(JSON.parse(one.stdout)).toEqual(utilization);
  const all = await run(['metrics', job.id, '-o', 'json'], answers);
  expect(JSON.parse(all.stdout)).toMatchObject({ gpu_utilization: utilization, sm_active: noSeries });
});

test('an unknown metric is refused with what was meant and the list', async () => {
  const { exitCode, stderr, requests } = await run(['metrics', job.id, 'gpu-utilisation'], answers);
  expect({ exitCode, requests }).toEqual({ exitCode: exitCodes.usage, requests: [] });
  expect(stderr).toMatch(
    /^muster: there is no metric "gpu-utilisation"\nDid you mean gpu_utilization\?\nMetrics: train_loss, .*gpu_utilization, .*_per_second\n$/,
  );
});

test.each([
  [
    [],
    aJob({ ...job, spec: { command: ['true'], resources: { nodes: 1, gpus: 0 } } }),
    'it has no GPUs, and its output has no metrics.',
  ],
  [[], aJob({ ...job, state: 'queued', attempts: [] }), 'it has not run yet.'],
  [['--attempt', '2'], job, 'it has no attempt 2.'],
  [['--since', '5m'], job, 'in the last 5 min.'],
  [[], job, 'yet.'],
  [[], aJob({ ...job, state: 'succeeded' }), 'retained for train; `muster job job_0123456789ab` shows'],
])('no readings with %j are explained', async (flags, shown, why) => {
  const { exitCode, stdout, stderr } = await run(['metrics', job.id, ...flags], {
    GetJob: () => wire.job(shown),
    QueryMetrics: () => wire.metrics(noSeries),
    SummarizeTraining: () => training(),
  });
  expect({ exitCode, stdout }).toEqual({ exitCode: exitCodes.ok, stdout: '' });
  expect(stderr).toMatch(/No metrics (?:of|retained for) train/);
  expect(stderr).toContain(why);
});

// ---- Curves

const trainingJob = aJob({
  ...job,
  spec: { command: ['true'], resources: { nodes: 1, gpus: 0 } },
  name: 'train',
});
const otherJob = aJob({ ...trainingJob, id: 'job_aaaaaaaaaaaa', name: 'other', state: 'succeeded' });
const lossSeries = (slope: number) => ({
  attempt: 1,
  nodeRank: 0,
  node: 'node-1',
  gpuUuid: '',
  points: Array.from({ length: 41 }, (_, step) =>
    step === 20
      ? { atMs: submittedAtMs, value: null, step, notFinite: 1 }
      : { atMs: submittedAtMs, value: 4 - slope * step, step },
  ),
});
const curveAnswers = {
  ResolveJob: ({ reference }: { readonly reference: string }) => ({
    jobId: reference === 'other' ? otherJob.id : trainingJob.id,
  }),
  GetJob: ({ jobId }: { readonly jobId: string }) => wire.job(jobId === otherJob.id ? otherJob : trainingJob),
  QueryMetrics: ({ jobId, name }: { readonly jobId: string; readonly name: string }) =>
    name === 'train_loss'
      ? wire.metrics({ unit: 'loss', series: [lossSeries(jobId === otherJob.id ? 0.05 : 0.1)] })
      : wire.metrics(noSeries),
  SummarizeTraining: () => training(summaryOf({ notFinite: 1, notFiniteStep: 20 })),
};

test('the metrics of the output are shown in short, with what is wrong with them', async () => {
  const { stdout, stderr } = await run(['metrics', 'train'], curveAnswers);
  expect(stdout).toBe(
    [
      'train  job_0123456789ab',
      '',
      'METRIC      LAST  BEST  AT STEP    STEPS  ROWS',
      'train_loss   0.5  0.25       30  0 to 40    41',
      '',
    ].join('\n'),
  );
  expect(stderr).toBe('train: the loss is not a finite number in 1 row, first at step 20.\n');
});

test('--plot draws the curve between axes, with its numbers below', async () => {
  const { stdout, requests } = await run(['metrics', 'train', 'train_loss', '--plot'], curveAnswers, {
    ...uncoloured,
    columns: 40,
    rows: 16,
  });
  expect(stdout).toBe(
    [
      'train  job_0123456789ab  train_loss',
      '',
      '  loss',
      '4 ┤⠉⠒⠢⠤⢄⣀⡀',
      '  │      ⠈⠑⠒⠤⠤⣀⣀',
      '2 ┤             ⠑⠒⠢⠤⢄',
      '  │                   ⠉⠒⠒⠤⢄⡀',
      '  │                        ⠈⠉⠑⠒⠢⠤⣀',
      '0 ┤                               ⠉⠉⠒⠢⠤⢄',
      '  └──────────────────✗──────────────────',
      '   0                20           step 40',
      '',
      'METRIC      LAST  BEST  AT STEP    STEPS',
      'train_loss   0.5  0.25       30  0 to 40',
      '',
    ].join('\n'),
  );
  expect(requests.find(({ method }) => method === 'QueryMetrics')?.request).toMatchObject({ pointsMax: 160 });
});

test.each([
  ['two jobs, and the metric behind --plot', ['train', 'other', '--plot', 'train_loss', '--ascii']],
  ['a job behind --plot', ['train', '--ascii', '--plot', 'other']],
])('curves of several jobs are told apart by letters where there are no colours: %s', async (_, words) => {
  const { stdout } = await run(['metrics', ...words], curveAnswers, { ...uncoloured, columns: 60 });
  const lines = stdout.split('\n');
  expect(lines[0]).toBe('train_loss');
  expect(lines.filter((line) => /\|.*A/.test(line)).length).toBeGreaterThan(5);
  expect(lines.filter((line) => /\|.*B/.test(line)).length).toBeGreaterThan(3);
  expect(lines.slice(-3)).toEqual([
    expect.stringMatching(/^A {2}train +job_0123456789ab /),
    expect.stringMatching(/^B {2}other +job_aaaaaaaaaaaa /),
    '',
  ]);
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(60);
  expect(stdout).toMatch(/^[\n -~]*$/);
});

test('without --plot several jobs are compared in a table', async () => {
  const { stdout } = await run(['metrics', 'train', 'other'], curveAnswers);
  expect(stdout).toBe(
    [
      'train_loss',
      '',
      'NAME   JOB               STATE      LAST  BEST  AT STEP    STEPS  ROWS',
      'train  job_0123456789ab  running     0.5  0.25       30  0 to 40    41',
      'other  job_aaaaaaaaaaaa  succeeded   0.5  0.25       30  0 to 40    41',
      '',
    ].join('\n'),
  );
});

test('-o csv has a line per point, and -o json says which points are buckets', async () => {
  const bucket = { rows: 2, firstStep: 3, min: 1, max: 2, last: 2 };
  const pages = [
    { unit: 'loss', series: [{ ...lossSeries(1), points: lossSeries(1).points.slice(0, 1) }], nextSkip: 1 },
    {
      ...({ unit: 'loss', thinned: true } as const),
      series: [{ ...lossSeries(1), points: [{ atMs: submittedAtMs, value: 1.5, step: 4, bucket }] }],
    },
  ];
  const QueryMetrics = ({ skip }: { readonly skip: number }) =>
    wire.metrics(pages[skip === 0 ? 0 : 1] as never);
  const csv = await run(['metrics', 'train', 'train_loss', '-o', 'csv'], { ...curveAnswers, QueryMetrics });
  const at = new Date(submittedAtMs).toISOString();
  expect(csv.stdout.split('\n')).toEqual([
    'job,metric,unit,attempt,rank,node,gpu,step,time,value,not_finite,rows,first_step,min,max,last',
    `job_0123456789ab,train_loss,loss,1,0,node-1,,0,${at},4,0,1,,,,`,
    `job_0123456789ab,train_loss,loss,1,0,node-1,,4,${at},1.5,0,2,3,1,2,2`,
    '',
  ]);
  const json = await run(['metrics', 'train', 'train_loss', '-o', 'json'], { ...curveAnswers, QueryMetrics });
  expect(JSON.parse(json.stdout)).toMatchObject({
    unit: 'loss',
    thinned: true,
    series: [
      {
        points: [
          { step: 0, value: 4 },
          { step: 4, value: 1.5, bucket },
        ],
      },
    ],
  });
  const both = await run(['metrics', 'train', 'other', 'train_loss', '-o', 'json'], curveAnswers);
  expect(Object.keys(JSON.parse(both.stdout))).toEqual([trainingJob.id, otherJob.id]);
});

test('values that are not kept are counted below the table, and so is output that was never read', async () => {
  const summary = summaryOf({ rows: 241_175, omitted: 958_825, mergedPoints: 12 });
  const { stderr } = await run(['metrics', job.id], {
    ...answers,
    SummarizeTraining: () => ({ ...training(summary), thinned: true, unreadBytes: 3 * 1024 ** 2 }),
  });
  expect(stderr).toContain('958825 of 1200000 (train_loss)');
  expect(stderr).toContain('some points stand for several rows: 12 (train_loss)');
  expect(stderr).toContain('3 MiB of its output');
});

test('a word that is neither a metric nor a job is refused with the metrics there are', async () => {
  const ResolveJob = ({ reference }: { readonly reference: string }) => {
    if (reference === 'xyz') throw new MusterError('not_found', 'no job named "xyz"');
    return { jobId: trainingJob.id };
  };
  const { exitCode, stderr } = await run(['metrics', 'train', 'xyz'], { ...curveAnswers, ResolveJob });
  expect(exitCode).toBe(exitCodes.usage);
  expect(stderr).toMatch(/^muster: there is no metric "xyz"\nMetrics: train_loss, /);
});

test('two metrics at once are refused', async () => {
  const { exitCode, stderr } = await run(['metrics', 'train', 'train_loss', 'grad_norm'], curveAnswers);
  expect(exitCode).toBe(exitCodes.usage);
  expect(stderr).toContain('one metric at a time: got train_loss and grad_norm');
});

// ---- What is noted with an attempt when it ends

const usage: GpuUsage = {
  gpus: 8,
  observedGpuSeconds: 28_800,
  utilizationMean: 92.4,
  utilizationPeak: 100,
  memoryPeakMb: 72_704,
  energyKwh: 3.2114,
  idleGpuSeconds: 300,
  smActiveMean: 0.61,
  tensorActiveMean: 0.44,
};
const nothingRead: GpuUsage = {
  gpus: 1,
  observedGpuSeconds: 0,
  utilizationMean: null,
  utilizationPeak: null,
  memoryPeakMb: null,
  energyKwh: null,
  idleGpuSeconds: null,
  smActiveMean: null,
  tensorActiveMean: null,
};

test.each([
  [
    usage,
    'GPUs  avg 92 %, peak 100 %; SM 61 %, tensor 44 %; peak memory 71 GiB; 3.21 kWh; idle 5 min of 8 h GPU time\n',
  ],
  [{ ...nothingRead, energyKwh: 0.00125 }, 'GPUs  1.25 Wh\n'],
])('job shows what its GPUs did', async (gpuUsage, line) => {
  const ended = aJob({ ...job, state: 'succeeded', attempts: [anAttempt({ state: 'ended', gpuUsage })] });
  const { stdout } = await run(['job', job.id], { GetJob: () => wire.job(ended) });
  expect(stdout).toContain(line);
});

test('job says nothing of GPUs of which nothing was read', async () => {
  const ended = aJob({ ...job, attempts: [anAttempt({ state: 'ended', gpuUsage: nothingRead })] });
  const { stdout } = await run(['job', job.id], { GetJob: () => wire.job(ended) });
  expect(stdout).not.toContain('GPUs  ');
});

test('what simulated GPUs did is not shown as if it were real', async () => {
  const gpuUuid = 'GPU-SIMULATED-node-1-0';
  const task = aTask({ gpuUuids: [gpuUuid], state: 'ended' });
  const simulated = aJob({
    ...job,
    state: 'succeeded',
    attempts: [anAttempt({ state: 'ended', gpuUsage: usage, tasks: [task] })],
  });
  const detail = await run(['job', job.id], { GetJob: () => wire.job(simulated) });
  expect(detail.stdout).toContain('GPUs (simulated)  avg 92 %');
  const points = [{ atMs: 1_000, value: 50 }];
  const ofSimulated = [{ attempt: 1, nodeRank: 0, node: 'node-1', gpuUuid, points }];
  const { stdout } = await run(['metrics', job.id, 'gpu_utilization'], {
    GetJob: () => wire.job(simulated),
    QueryMetrics: () => wire.metrics({ unit: 'percent', series: ofSimulated }),
  });
  expect(stdout.split('\n')[0]).toContain('simulated GPUs');
});
