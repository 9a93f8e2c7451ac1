import { metricUpdateToWire } from '@muster/common/wire/codec';
import { expect, test } from 'vitest';
import { waitFor } from '../../../../test/support/services.ts';
import { exitCodes } from '../exitCodes.ts';
import { runCli } from '../program.ts';
import { aJob, silentStream, submittedAtMs, wire } from '../testing/fakeCoordinator.ts';
import { fakeCoordinator, newCall, run } from '../testing/testContext.ts';

const job = aJob({});
const ofRank = { attempt: 1, nodeRank: 0, node: 'node-1', gpuUuid: '' };
const answers = { GetJob: () => wire.job(job), ResolveJob: () => ({ jobId: job.id }) };

test('a question goes to the API as it was asked, and the answer has its unit and source', async () => {
  const origin = {
    name: 'gpu_utilization',
    sources: [{ source: 'memory', fromMs: submittedAtMs, toMs: submittedAtMs + 60_000 }],
    notes: ['values before then are not in memory'],
  } as const;
  const of = { attempt: 1, nodeRank: null, node: '', gpuUuid: '' };
  const points = [{ atMs: submittedAtMs, value: 42 }];
  const view = { unit: 'percent', series: [{ ...of, jobId: 'job_a', points }], origin };
  const { stdout, stderr, requests } = await run(
    (
      'metrics gpu_util --user ann --project vision --node node-1 --start -1h --end now --step 1m ' +
      '--aggregation p95 --by job'
    ).split(' '),
    { QueryMetrics: () => wire.metrics(view) },
  );
  expect(requests).toEqual([
    {
      method: 'QueryMetrics',
      request: expect.objectContaining({
        jobId: '',
        name: 'gpu_util',
        user: 'ann',
        project: 'vision',
        node: 'node-1',
        startTime: '-1h',
        endTime: 'now',
        stepMs: 60_000,
        aggregation: 'p95',
        by: 'job',
      }),
    },
  ]);
  expect(stdout).toMatch(
    /^gpu_utilization {2}percent {2}memory \d{4}-.* to .*\n\nJOB {4}VALUE\njob_a {3}42 %\n$/,
  );
  expect(stderr).toBe('values before then are not in memory\n');
});

test('nodes and the cluster can be asked about, and an answer for programs is whole', async () => {
  const cluster = { attempt: null, nodeRank: null, node: '', gpuUuid: '' };
  const points = [1, 3].map((value, index) => ({ atMs: submittedAtMs + index * 30_000, value }));
  const view = { unit: 'jobs', series: [{ ...cluster, points }] };
  const answer = { QueryMetrics: () => wire.metrics(view) };
  expect((await run(['metrics', 'jobs_queued'], answer)).stdout).toMatch(/\nLAST +MIN +MEAN +MAX .*\n +3/);
  expect(JSON.parse((await run(['metrics', 'queue_length', '-o', 'json'], answer)).stdout)).toEqual(view);
  const csv = await run(['metrics', 'jobs_queued', '-o', 'csv'], answer);
  expect(csv.stdout.split('\n')[1]).toMatch(/^,jobs_queued,jobs,/);
});

test.each([
  [[], /name a job, or a metric/],
  [['train', '--by', 'job'], /these flags are for one metric; name it/],
  [['train', 'gpu_utilization', '--start', '-1h', '--since', '1h'], /--since and --start both/],
  [['train', 'train_loss', '--follow', '-o', 'csv'], /--follow prints text or JSON/],
  [['train', 'train_loss', '--follow', '--end', 'now'], /omit --end and --superseded/],
  [['train', 'train_loss', '--follow', '--aggregation', 'max'], /give --step too/],
  [['train', 'other', 'train_loss', '--follow'], /one metric, of one job at most/],
])('%j is refused with what is wrong', async (words, message) => {
  const { exitCode, stderr } = await run(['metrics', ...words], {
    ...answers,
  });
  expect({ exitCode, stderr }).toEqual({ exitCode: exitCodes.usage, stderr: expect.stringMatching(message) });
});

test('--follow prints values as they come, and continues after them when the coordinator was away', async () => {
  const update = (step: number) =>
    metricUpdateToWire({
      unit: 'loss',
      series: [{ ...ofRank, points: [{ atMs: submittedAtMs, value: 1 / step, step }] }],
      position: `1,1.0=${step}`,
    });
  async function* upTo(last: number, request: { position?: string }, aborted: AbortSignal) {
    const from = Number(request.position?.split('=')[1] ?? 0);
    for (let step = from + 1; step <= last; step += 1) yield update(step);
    yield* silentStream(null, aborted);
  }
  const first = await fakeCoordinator({
    ...answers,
    GetCluster: () => ({}),
    WatchMetrics: (request, aborted) => upTo(2, request, aborted),
  });
  const call = newCall(first.address);
  const running = runCli(
    ['metrics', job.id, 'train_loss', '-f', '--since', '30m', '--step', '1m', '--by', 'all'],
    call.context,
  );
  await waitFor('two values', () => call.stdout().split('\n').length === 3);
  expect(first.requests.at(-1)?.request).toMatchObject({
    jobId: job.id,
    name: 'train_loss',
    startTime: '-1800',
    stepMs: 60_000,
    by: 'all',
  });
  first.kill();
  const WatchMetrics = (request: object, aborted: AbortSignal) => upTo(4, request, aborted);
  await fakeCoordinator({ WatchMetrics }, first.address);
  await waitFor('four values', () => call.stdout().split('\n').length === 5);
  call.pressCtrlC();
  expect(await running).toBe(exitCodes.interrupted);
  expect(call.stdout()).toMatch(
    /rank 0 {2}node-1 {2}step 1 {2}1\n.*step 2 {2}0.5\n.*step 3 .*\n.*step 4 {2}0.25\n$/,
  );
});
