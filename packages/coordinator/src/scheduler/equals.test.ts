import type { ArrayId } from '@muster/common/ids';
import { expect, test } from 'vitest';
import { jobIdOf } from '../modelFixture.ts';
import { aCluster } from './clusterFixture.ts';
import { plan } from './plan.ts';
import { nowMs } from './planCheckFixture.ts';

const behind = { count: 1_000 };

test('nobody passes jobs that were not looked at: the pass ends there, and another follows', () => {
  const cluster = aCluster()
    .node({ gpus: 8 })
    .job({ gpus: 1 })
    .job({ gpus: 1, equals: behind })
    .job({ gpus: 1 });

  expect(cluster.plan().started).toEqual([1, 2]);
  expect(plan(cluster.view, nowMs).at(-1)).toEqual({ kind: 'again' });
});

test('what the last of its equals is refused, all behind it are refused: the pass goes on', () => {
  const cluster = aCluster()
    .node({ gpus: 1, cpus: 8 })
    .job({ gpus: 1 })
    .job({ gpus: 1, equals: behind })
    .job({ gpus: 0, cpus: 1 });
  const decisions = plan(cluster.view, nowMs);

  expect(cluster.plan().started).toEqual([1, 3]);
  expect(cluster.plan().reasonOf(2)?.kind).toBe('no_gpus_free');
  expect(decisions).not.toContainEqual({ kind: 'again' });
});

test('those of higher priority come before them', () => {
  const cluster = aCluster()
    .node({ gpus: 2 })
    .job({ gpus: 1, equals: behind })
    .job({ gpus: 1, priority: 90 });

  expect(plan(cluster.view, nowMs)).toMatchObject([
    { kind: 'start', jobId: jobIdOf(2) },
    { kind: 'start', jobId: jobIdOf(1) },
    { kind: 'again' },
  ]);
});

const limited = (atOnce: number, atWork: number) => ({ id: 'arr_000000000001' as ArrayId, atOnce, atWork });

test('of an array that says so only so many start as may run at the same time, and others pass them', () => {
  const cluster = aCluster()
    .node({ gpus: 8 })
    .job({ gpus: 1, array: limited(3, 1) })
    .job({ gpus: 1, array: limited(3, 1) })
    .job({ gpus: 1, array: limited(3, 1), equals: behind })
    .job({ gpus: 1 });

  expect(cluster.plan().started).toEqual([1, 2, 4]);
  expect(cluster.plan().reasonOf(3)).toEqual({ kind: 'array_limit', atOnce: 3 });
});

test('an array preempts for no more of its jobs than may run at the same time', () => {
  const cluster = aCluster()
    .node({ gpus: 2 })
    .holder({ on: { 'node-1': 1 } })
    .holder({ on: { 'node-1': 1 } })
    .job({ gpus: 1, priority: 80, array: limited(1, 0) })
    .job({ gpus: 1, priority: 80, array: limited(1, 0) });

  const preempted = plan(cluster.view, nowMs).filter(({ kind }) => kind === 'preempt');
  expect(preempted).toHaveLength(1);
  expect(cluster.plan().reasonOf(2)?.kind).toBe('array_limit');
});
