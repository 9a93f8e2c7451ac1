import { expect, test } from 'vitest';
import { exitCodes } from '../exitCodes.ts';
import { aMember, arrayAnswers, memberId } from '../testing/arrayFixture.ts';
import { anAttempt, submittedAtMs, wire } from '../testing/fakeCoordinator.ts';
import { run } from '../testing/testContext.ts';

const indexOf = (jobId: string) => Number(jobId.slice(4));

function answersFor(size: number) {
  const members = Array.from({ length: size }, (_, index) =>
    aMember(index, {
      state: 'succeeded',
      attempts: [anAttempt({ state: 'ended' })],
      // The last one is the best.
      training: {
        framework: null,
        atMs: submittedAtMs,
        totalSteps: null,
        etaMs: null,
        rows: 2,
        latest: { step: 10, train_loss: size - index },
      },
    }),
  );
  const points = (jobId: string) =>
    [0, 1].map((step) => ({ atMs: submittedAtMs + step, value: indexOf(jobId) + step, step }));
  return {
    ...arrayAnswers(() => members, size, 1_000),
    QueryMetrics: ({ jobId, name }: { jobId: string; name: string }) =>
      wire.metrics({
        unit: 'loss',
        series:
          name === 'train_loss'
            ? [{ attempt: 1, nodeRank: 0, node: 'node-1', gpuUuid: '', points: points(jobId) }]
            : [],
      }),
    SummarizeTraining: ({ jobId }: { jobId: string }) => ({
      metrics: [
        wire.summary({
          name: 'train_loss',
          unit: 'loss',
          last: indexOf(jobId),
          best: indexOf(jobId) / 2,
          rows: 2,
          firstStep: 0,
          lastStep: 1,
          bestStep: 1,
          notFinite: 0,
          notFiniteStep: null,
          first: indexOf(jobId),
          least: indexOf(jobId) / 2,
          leastStep: 1,
          greatest: indexOf(jobId),
          greatestStep: 0,
          omitted: 0,
          mergedPoints: 0,
        }),
      ],
      thinned: false,
      unreadBytes: 0,
    }),
  };
}

test('metrics of an array is a table of its jobs, without reading their points', async () => {
  const { exitCode, stdout, stderr, requests } = await run(['metrics', 'sweep', 'train_loss'], answersFor(3));
  expect({ exitCode, stderr }).toEqual({ exitCode: exitCodes.ok, stderr: '' });
  expect(stdout.split('\n').map((line) => line.trimEnd())).toEqual([
    'train_loss',
    '',
    'NAME      JOB               STATE      LAST  BEST  AT STEP   STEPS  ROWS',
    `sweep[0]  ${memberId(0)}  succeeded     0     0        1  0 to 1     2`,
    `sweep[1]  ${memberId(1)}  succeeded     1   0.5        1  0 to 1     2`,
    `sweep[2]  ${memberId(2)}  succeeded     2     1        1  0 to 1     2`,
    '',
  ]);
  expect(requests.some(({ method }) => method === 'QueryMetrics')).toBe(false);
  expect(requests.find(({ method }) => method === 'ListJobs')).toMatchObject({ request: { brief: true } });
});

test('metrics of an array as CSV and JSON holds every job, in the order of their indexes', async () => {
  const csv = await run(['metrics', 'sweep', 'train_loss', '-o', 'csv'], answersFor(30));
  const lines = csv.stdout.trim().split('\n');
  expect(lines[0]).toMatch(/^job,metric,/);
  expect(lines.filter((line) => line.startsWith('job,'))).toHaveLength(1);
  expect(lines.slice(1).map((line) => line.split(',')[0])).toEqual(
    Array.from({ length: 60 }, (_, row) => memberId(Math.floor(row / 2))),
  );
  const json = await run(['metrics', 'sweep', 'train_loss', '-o', 'json'], answersFor(3));
  const byJob = JSON.parse(json.stdout) as Record<string, object>;
  expect(Object.keys(byJob)).toEqual([0, 1, 2].map(memberId));
  expect(byJob[memberId(2)]).toMatchObject({
    train_loss: { series: [{ points: [{ value: 2 }, { value: 3 }] }] },
  });
});

test('--plot draws as many curves as can be distinguished: the best, and says so', async () => {
  const { stdout, stderr } = await run(['metrics', 'sweep', '--plot'], answersFor(30));
  expect(stderr).toBe(
    '26 of 30 jobs are drawn: those with the smallest newest train_loss. -o csv has all.\n',
  );
  expect(stdout).toContain(memberId(29));
  expect(stdout).toContain(memberId(4));
  expect(stdout).not.toContain(memberId(3));
});

test('of an array of several pages the table has the best jobs, in the order of their values', async () => {
  const { stdout, stderr } = await run(['metrics', 'sweep', 'train_loss'], answersFor(1_100));
  expect(stderr).toBe(
    '1000 of 1100 jobs are shown: those with the smallest newest train_loss. -o csv has all.\n',
  );
  const shown = stdout.split('\n').flatMap((line) => /^sweep\[(\d+)\]/.exec(line)?.[1] ?? []);
  expect(shown.map(Number)).toEqual(Array.from({ length: 1_000 }, (_, rank) => 1_099 - rank));
});
