import { metricNamed, namedMetrics } from '@muster/common/metricNames';
import { expect, test } from 'vitest';
import { type HistoryQuery, promQlOf, seriesOfHistory } from './promql.ts';

function ask(name: string, given: Partial<HistoryQuery> = {}): string {
  const metric = metricNamed(name) ?? expect.fail(name);
  return promQlOf({
    metric,
    jobIds: null,
    nodes: null,
    attempt: null,
    stepMs: 60_000,
    condensed: null,
    ...given,
  });
}

test.each<[string, Partial<HistoryQuery>, string]>([
  ['gpu_utilization', { jobIds: ['job_a'] }, 'DCGM_FI_DEV_GPU_UTIL{muster_job=~"job_a"}'],
  [
    'gpu_utilization',
    { jobIds: ['job_a', 'job_b'], nodes: ['n-1'], attempt: 2, condensed: 'p95' },
    'quantile_over_time(0.95, DCGM_FI_DEV_GPU_UTIL{muster_job=~"job_a|job_b",node=~"n-1",muster_attempt="2"}[60s])',
  ],
  [
    'gpu_energy_joules',
    { jobIds: ['job_a'], condensed: 'sum', stepMs: 600_000 },
    'increase(DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{muster_job=~"job_a"}[600s]) / 1000',
  ],
  [
    'network_receive_bytes_per_second',
    { nodes: ['a', 'b'], stepMs: 10_000 },
    'sum by (node) (rate(muster_host_network_receive_bytes_total{node=~"a|b"}[60s]))',
  ],
  ['jobs_queued', { condensed: 'max' }, 'max_over_time((sum(muster_jobs{state="queued"}))[60s:15s])'],
  ['queue_oldest_wait_seconds', {}, 'sum(muster_queue_oldest_wait_seconds)'],
])('%s %o', (name, given, expected) => {
  expect(ask(name, given)).toBe(expected);
});

test('every metric but those of the output can be asked for', () => {
  for (const { name, prometheus, subject } of namedMetrics.values()) {
    if (subject === 'training') expect(prometheus).toBeNull();
    else expect(ask(name, { condensed: 'mean' })).toContain((prometheus ?? '').split('{')[0]);
  }
});

test('what a change of a label has split is one series, and a value counts for as long as its step', () => {
  const metric = { muster_job: 'job_a', muster_attempt: '1', muster_rank: '0', node: 'n-1', UUID: 'GPU-1' };
  const found = seriesOfHistory(
    [
      { metric: { ...metric, DCGM_FI_DRIVER_VERSION: '2' }, values: [[120, '5']] },
      { metric: { ...metric, DCGM_FI_DRIVER_VERSION: '1' }, values: [[60, 'NaN']] },
    ],
    { stepMs: 60_000, withJobs: true },
  );
  expect(found).toEqual([
    {
      jobId: 'job_a',
      attempt: 1,
      nodeRank: 0,
      node: 'n-1',
      gpuUuid: 'GPU-1',
      points: [
        { atMs: 60_000, value: null },
        { atMs: 120_000, value: 5, bucket: { rows: 6, firstStep: null, min: 5, max: 5, last: 5 } },
      ],
    },
  ]);
  const one = seriesOfHistory([{ metric: { ...metric, muster_device: 'MIG-1' }, values: [[60, '5']] }], {
    stepMs: 10_000,
    withJobs: false,
  });
  expect(one).toMatchObject([{ gpuUuid: 'MIG-1', points: [{ atMs: 60_000, value: 5 }] }]);
  expect(Object.hasOwn(one[0] ?? {}, 'jobId')).toBe(false);
});
