/** What a job waits for besides free resources: the node of its checkpoint, a moment, a node that is drained. */
import { describe, expect, it } from 'vitest';
import { nodeNameOf } from '../modelFixture.ts';
import { aCluster, type Cluster } from './clusterFixture.ts';
import { reserveAfterMs } from './plan.ts';
import { nowMs } from './planCheckFixture.ts';
import { noObstacles } from './reasons.ts';
import type { ResumeOption } from './view.ts';

describe('a job whose newest checkpoint is on one node', () => {
  const awayBecause = (home: unknown) => ({
    kind: 'checkpoint',
    checkpoint: 'step 500',
    node: 'node-1',
    home,
  });
  const pinned = { gpus: 1, pinnedTo: ['node-1'] };

  const cases: readonly (readonly [string, Cluster, object])[] = [
    [
      'which is busy',
      aCluster()
        .node({ gpus: 1 })
        .node({ gpus: 1 })
        .holder({ on: { 'node-1': 1 }, isPreemptible: false }),
      awayBecause('busy'),
    ],
    ['which is silent', aCluster().node({ gpus: 1, online: false }).node({ gpus: 1 }), awayBecause('silent')],
    [
      'which was drained',
      aCluster().node({ gpus: 1, drainReason: 'kernel update' }).node({ gpus: 1 }),
      awayBecause({ node: 'node-1', gpus: null, of: 1, kinds: [], drainReason: 'kernel update' }),
    ],
    [
      'whose GPU is drained',
      aCluster().node({ gpus: 1, drainedGpus: 1 }).node({ gpus: 1 }),
      awayBecause({ node: 'node-1', gpus: 1, of: 1, kinds: ['xid_79'], drainReason: null }),
    ],
    ['which has lost its GPUs', aCluster().node().node({ gpus: 1 }), awayBecause('unsuitable')],
  ];

  it.each(cases)('waits for it: %s', (_, cluster, reason) => {
    expect(cluster.job(pinned).plan().reasonOf(1)).toEqual(reason);
  });

  it('begins there, though it failed there, and though another would be a better fit', () => {
    const result = aCluster()
      .node({ gpus: 8 })
      .node({ gpus: 1 })
      .job({ ...pinned, excludedNodes: ['node-1'] })
      .plan();

    expect(result.nodesOf(1)).toEqual(['node-1']);
  });

  it('has that node as its first, and the nearest beside it', () => {
    const result = aCluster()
      .node({ gpus: 1, topology: 'rack1/leaf1' })
      .node({ gpus: 1, topology: 'rack1/leaf1' })
      .node({ gpus: 1, topology: 'rack2/leaf1' })
      .node({ gpus: 1, topology: 'rack3/leaf2' })
      .job({ gpus: 1, nodes: 3, pinnedTo: ['node-3'] })
      .plan();

    expect(result.nodesOf(1)).toEqual(['node-3', 'node-1', 'node-2']);
  });

  it('may begin on another node of the same machine', () => {
    const result = aCluster()
      .node({ gpus: 1, freeGpus: 0 })
      .node({ gpus: 1 })
      .node({ gpus: 1 })
      .job({ gpus: 1, pinnedTo: ['node-1', 'node-3'] })
      .plan();

    expect(result.nodesOf(1)).toEqual(['node-3']);
  });

  it('waits for nodes under the switch of that one, if it is bound to one', () => {
    const result = aCluster()
      .node({ gpus: 1, topology: 'rack1' })
      .node({ gpus: 1, topology: 'rack2' })
      .node({ gpus: 1, topology: 'rack2' })
      .job({ ...pinned, nodes: 2, topology: 'required' })
      .plan();

    expect(result.reasonOf(1)).toEqual(awayBecause('lonely'));
  });

  it('has that node reserved for it when it has waited long', () => {
    const result = aCluster()
      .node({ gpus: 2, freeGpus: 1 })
      .node({ gpus: 2, freeGpus: 1 })
      .job({ gpus: 2, pinnedTo: ['node-2'], waitedMs: reserveAfterMs })
      .job({ gpus: 1 })
      .job({ gpus: 1 })
      .plan();

    expect(result.reserved).toEqual([{ job: 1, nodes: ['node-2'] }]);
    expect(result.nodesOf(2)).toEqual(['node-1']);
    expect(result.reasonOf(3)?.kind).toBe('reserved');
  });
});

describe('what an attempt resumes from', () => {
  const option = (step: number, ...readers: readonly string[]) => ({
    name: `checkpoint-${step}`,
    step,
    home: nodeNameOf(readers[0] ?? 'node-1'),
    readers: readers.length === 0 ? null : new Set(readers.map(nodeNameOf)),
  });
  const startOn = (node: string, resumes: readonly ResumeOption[]) => {
    const cluster = aCluster();
    for (const name of ['node-1', 'node-2', 'node-3']) cluster.node({ gpus: name === node ? 1 : 0 });
    return cluster.job({ gpus: 1, resumes }).plan().startOf(1)?.resume ?? null;
  };

  it('is the best that one of its nodes can read', () => {
    const resumes = [option(300, 'node-1', 'node-2'), option(200, 'node-3'), option(100)];
    expect(startOn('node-1', resumes)).toEqual({ name: 'checkpoint-300', step: 300 });
    expect(startOn('node-2', resumes)?.step).toBe(300);
    expect(startOn('node-3', resumes)?.step).toBe(200);
    expect(startOn('node-3', [option(300, 'node-1'), option(100)])?.step).toBe(100);
  });

  it('is nothing where it can read nothing', () => {
    expect(startOn('node-3', [option(300, 'node-1')])).toBeNull();
    expect(startOn('node-3', [])).toBeNull();
  });
});

it('the paths of a gang are measured before it starts, where those of one of its nodes are not known', () => {
  const start = (needsPreflight: boolean) =>
    aCluster()
      .node({ gpus: 1 })
      .node({ gpus: 1, needsPreflight })
      .job({ nodes: 2, gpus: 1 })
      .plan()
      .startOf(1);
  expect(start(true)?.preflight).toBe(true);
  expect(start(false)?.preflight).toBe(false);
});

describe('a job that waits for a moment', () => {
  it('waits with how long its backoff is', () => {
    expect(aCluster().node().job({ backoffMs: 4_001 }).plan().reasonOf(1)).toEqual({
      kind: 'backoff',
      untilMs: nowMs + 4_001,
    });
  });

  it('waits with the reason that its breaker is open', () => {
    const result = aCluster().node().job({ backoffMs: 120_000, breakerFailures: 3 }).plan();

    expect(result.reasonOf(1)).toEqual({ kind: 'circuit_open', failures: 3, untilMs: nowMs + 120_000 });
  });

  it('starts for its trial when the pause is over', () => {
    expect(
      aCluster().node().job({ waitedMs: 120_000, backoffMs: 120_000, breakerFailures: 3 }).plan().started,
    ).toEqual([1]);
  });
});

it('a node that a person drained gets no work', () => {
  const result = aCluster().node({ gpus: 2, drainReason: 'kernel update' }).job({ gpus: 1 }).plan();

  expect(result.reasonOf(1)).toEqual({
    kind: 'drained',
    have: 0,
    want: 1,
    obstacles: {
      ...noObstacles,
      drained: [{ node: 'node-1', gpus: null, of: 2, kinds: [], drainReason: 'kernel update' }],
    },
  });
});
