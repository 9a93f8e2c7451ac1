import { clusterMetricNames } from '@muster/common/metricNames';
import { expect, test } from 'vitest';
import { TestClock } from '../coordinatorFixture.ts';
import { clusterCounts } from '../metrics/counts.ts';
import { aJob, aNode } from '../modelFixture.ts';
import { ClusterHistory } from './clusterHistory.ts';
import { runningJob } from './telemetryFixture.ts';

test('twice a minute the queue and the cluster are counted', () => {
  const clock = new TestClock();
  const queued = aJob(2);
  const jobs = new Map([runningJob, queued].map((job) => [job.id, job]));
  const nodes = new Map(['node-1', 'node-2'].map((name) => [aNode(name).name, aNode(name)]));
  const now = { monotonicMs: () => clock.monotonicMs(), wallMs: () => clock.wallMs() };
  const agents = { isOnline: (node: string) => node === 'node-1', silentForMs: () => null };
  const waitTimes = { of: () => ({ sinceMs: -4_000, notBeforeMs: 0 }) };
  const sample = () => clusterCounts({ ...now, state: { jobs, nodes }, agents, waitTimes });
  const history = new ClusterHistory({ ...now, sample });
  history.run();
  clock.nowMs += 10_000;
  history.run();
  clock.nowMs += 20_000;
  jobs.delete(queued.id);
  history.run();
  const values = (name: string) =>
    history.points(name, 0, Number.POSITIVE_INFINITY).map(({ value }) => value);
  expect(values('jobs_queued')).toEqual([1, 0]);
  expect(values('jobs_running')).toEqual([1, 1]);
  expect(values('queue_oldest_wait_seconds')).toEqual([5, 0]);
  expect(values('nodes_online')).toEqual([1, 1]);
  expect(values('nodes_silent')).toEqual([1, 1]);
  expect(values('gpus_allocated')).toEqual([2, 2]);
  expect(history.points('jobs_queued', 0, Number.POSITIVE_INFINITY).at(-1)?.atMs).toBe(clock.wallMs());
  for (const name of clusterMetricNames) expect(values(name)).toHaveLength(2);
});
