/** Sentences about what is no mere shortage: a checkpoint on one node, what a job waits for besides nodes, preemption. */
import { describe, expect, it } from 'vitest';
import { jobIdOf, nodeNameOf } from '../modelFixture.ts';
import { aCluster, type Cluster, type JobOptions } from '../scheduler/clusterFixture.ts';
import { nowMs } from '../scheduler/planCheckFixture.ts';
import { type CheckpointAway, noObstacles, type WaitReason } from '../scheduler/reasons.ts';
import type { Holder } from '../scheduler/view.ts';
import { pendingReason, preemptionText } from './waiting.ts';

/** Of the first job of a situation. */
function explained(cluster: Cluster) {
  const reason = cluster.plan().reasonOf(1);
  return reason === null ? null : inWords(reason, cluster);
}

function inWords(reason: WaitReason, cluster: Cluster) {
  const spec = cluster.view.queue[0]?.spec;
  if (spec === undefined) throw new Error(`nobody waits`);
  return pendingReason(reason, spec, nowMs);
}

describe('a job whose newest checkpoint is on one node', () => {
  const remedy =
    'use a checkpoint.dir that all nodes share, or discard it with `muster requeue --from start`';
  const drained = { node: nodeNameOf('node-1'), gpus: null, of: 1, kinds: [], drainReason: 'kernel update' };
  const homes: readonly (readonly [home: CheckpointAway['home'], why: string, first: string])[] = [
    ['busy', 'which is busy', ''],
    ['silent', 'which is silent', ''],
    ['reserved', 'which is reserved for a job that has waited longer', ''],
    ['unsuitable', 'which no longer has the resources it needs', ''],
    ['lonely', 'and too few nodes under the same switch are free', ''],
    [
      drained,
      'which is drained (kernel update)',
      '`muster node undrain node-1` gives it new tasks again, or ',
    ],
    [
      { ...drained, gpus: 1, kinds: ['xid_79'], drainReason: null },
      'which has GPUs that are drained (xid_79)',
      '`muster node node-1` shows what is wrong there and what clears it, or ',
    ],
  ];

  it.each(homes)('says why it is not there: %s', (home, why, first) => {
    const reason: WaitReason = {
      kind: 'checkpoint',
      node: nodeNameOf('node-1'),
      checkpoint: 'step 500',
      home,
    };
    expect(inWords(reason, aCluster().node().job())).toEqual({
      kind: 'checkpoint',
      message: `its newest checkpoint (step 500) is on node-1 only, ${why}`,
      remedy: `${first}${remedy}`,
    });
  });
});

describe('a job that waits for something else than resources', () => {
  const on = jobIdOf(7);
  const away = { kind: 'failed', on, what: 'failed' } as const;
  const cases: readonly (readonly [string, JobOptions, object])[] = [
    [
      'for the end of another',
      { dependencies: { kind: 'waiting', on, when: 'ok' } },
      { kind: 'dependency', message: `waiting for ${on} to succeed`, remedy: null },
    ],
    [
      'for one that has failed',
      { dependencies: away },
      {
        kind: 'dependency_failed',
        message: `dependency ${on} failed`,
        remedy: `\`muster requeue ${on}\` and this job waits for that, or stop this job`,
      },
    ],
    [
      'for its backoff, in seconds that are rounded up',
      { backoffMs: 4_001 },
      { kind: 'backoff', message: 'next retry in 5 s', remedy: null, waitMs: 4_001 },
    ],
    [
      'for its breaker',
      { backoffMs: 120_000, breakerFailures: 3 },
      {
        kind: 'circuit_open',
        message: '3 failures without a newer checkpoint: next retry in 120 s',
        remedy: 'check the cause of the failures: `muster explain` of this job',
        waitMs: 120_000,
      },
    ],
  ];

  it.each(cases)('%s', (_, job, expected) => {
    expect(explained(aCluster().node().job(job))).toEqual(expected);
  });

  it('is explained with how long that is as of the moment of the question', () => {
    const { spec } = aCluster().node().job().view.queue[0] ?? {};
    if (spec === undefined) throw new Error('there is no job');
    const reason = { kind: 'backoff', untilMs: nowMs + 120_000 } as const;
    expect(pendingReason(reason, spec, nowMs + 100_000)).toMatchObject({ message: 'next retry in 20 s' });
    expect(pendingReason(reason, spec, nowMs + 120_001)).toMatchObject({ message: 'next retry in 1 s' });
  });

  it('is explained with the jobs for which places are reserved', () => {
    const obstacles = noObstacles;
    const cluster = aCluster().node().job();
    expect(inWords({ kind: 'reserved', by: 'ahead', obstacles }, cluster).message).toBe(
      'the free resources are reserved for a job ahead of it that waits for more',
    );
    expect(inWords({ kind: 'reserved', by: 'waitedLonger', obstacles }, cluster).message).toBe(
      'the free nodes are reserved for a job that has waited longer',
    );
  });
});

describe('both sides of a preemption are explained', () => {
  const saved = { step: 500 };
  const losses: readonly (readonly [string, number, Holder['lostSince'], number, string])[] = [
    ['nothing that has run', 0, null, 1, ' before it began'],
    ['seconds', 1, saved, 1, '; 1 GPU-second since its last checkpoint of step 500'],
    ['seconds', 119, { step: null }, 1, '; 119 GPU-seconds since its last checkpoint'],
    ['minutes', 120, saved, 1, '; 2 GPU-minutes since its last checkpoint of step 500'],
    ['hours', 7_200, 'start', 1, '; 2 GPU-hours since it began'],
    ['no GPUs at all', 0, saved, 0, ''],
  ];

  it.each(losses)('what it costs: %s (%d)', (_, lost, lostSince, gpus, text) => {
    const cluster = aCluster()
      .node({ gpus: 1, cpus: 4 })
      .holder({ on: { 'node-1': gpus }, cpus: 4, priority: 20, lost, lostSince })
      .job({ cpus: 4, priority: 21 });
    const [preemption] = cluster.plan().preemptions;
    if (preemption === undefined) throw new Error('nothing is preempted');
    expect(preemptionText(preemption)).toBe(`preempted by ${jobIdOf(1)} (priority 21 over 20)${text}`);
    expect(explained(cluster)?.message).toBe(
      `waiting for ${jobIdOf(901)} (priority 20) to save and release its GPUs`,
    );
  });

  it('and of many, the first few are named', () => {
    const victims = [1, 2, 3, 4].map((number) => ({ id: jobIdOf(number), priority: 10 }));
    const { message } = inWords({ kind: 'preempting', victims }, aCluster().node().job());
    expect(message).toMatch(/^waiting for (job_\S+ \(priority 10\)(, )?){3} and 1 more to save and release/);
  });
});
