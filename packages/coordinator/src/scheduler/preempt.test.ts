/** Which jobs are preempted by which, and what is held meanwhile. */
import { describe, expect, it } from 'vitest';
import { jobIdOf } from '../modelFixture.ts';
import { aCluster, type Cluster } from './clusterFixture.ts';
import { plan, reserveAfterMs } from './plan.ts';
import { nowMs } from './planCheckFixture.ts';
import { notDrained } from './view.ts';

const saved = { step: 500 };

describe('a job that does not fit', () => {
  it('takes the place of the one that loses least', () => {
    const result = aCluster()
      .node({ gpus: 4 })
      .node({ gpus: 4 })
      .holder({ on: { 'node-1': 4 }, priority: 20, lost: 4_000 })
      .holder({ on: { 'node-2': 4 }, priority: 30, lost: 180, lostSince: saved })
      .job({ gpus: 4, priority: 80 })
      .plan();

    expect(result.preemptions).toEqual([
      {
        kind: 'preempt',
        victim: expect.objectContaining({ id: jobIdOf(902), priority: 30, lostGpuSeconds: 180 }),
        by: { id: jobIdOf(1), priority: 80 },
      },
    ]);
    expect(result.reasonOf(1)).toEqual({
      kind: 'preempting',
      victims: [{ id: jobIdOf(902), priority: 30 }],
    });
    expect(result.keptFor(1)).toEqual(['node-2']);
  });

  const chosen: readonly (readonly [string, Cluster, readonly number[]])[] = [
    [
      'the lower priority, where as much would be lost',
      aCluster()
        .node({ gpus: 2 })
        .holder({ on: { 'node-1': 1 }, priority: 20 })
        .holder({ on: { 'node-1': 1 }, priority: 10 })
        .job({ gpus: 1, priority: 80 }),
      [902],
    ],
    [
      'what was submitted later, of equals',
      aCluster()
        .node({ gpus: 2 })
        .holder({ on: { 'node-1': 1 } })
        .holder({ on: { 'node-1': 1 } })
        .job({ gpus: 1, priority: 80 }),
      [902],
    ],
    [
      'two that lose little rather than one that loses much',
      aCluster()
        .node({ gpus: 4 })
        .holder({ on: { 'node-1': 2 }, lost: 100 })
        .holder({ on: { 'node-1': 1 }, lost: 20 })
        .holder({ on: { 'node-1': 1 }, lost: 30 })
        .job({ gpus: 2, priority: 80 }),
      [902, 903],
    ],
    [
      'a gang once, though it is in the way on both nodes',
      aCluster()
        .node({ gpus: 2 })
        .node({ gpus: 2 })
        .holder({ on: { 'node-1': 1, 'node-2': 1 }, lost: 50 })
        .holder({ on: { 'node-1': 1 }, lost: 30 })
        .holder({ on: { 'node-2': 1 }, lost: 30 })
        .job({ gpus: 1, nodes: 2, priority: 80 }),
      [901],
    ],
    [
      'as few as will do for a range of sizes',
      aCluster()
        .node({ gpus: 1 })
        .node({ gpus: 1 })
        .holder({ on: { 'node-1': 1 }, lost: 5 })
        .holder({ on: { 'node-2': 1 }, lost: 9 })
        .job({ gpus: 1, nodes: { min: 1, max: 2 }, priority: 80 }),
      [901],
    ],
    [
      'what is under one switch for a job that is bound to one',
      aCluster()
        .node({ gpus: 1, topology: 'rack1' })
        .node({ gpus: 1, topology: 'rack2' })
        .node({ gpus: 1, topology: 'rack2' })
        .holder({ on: { 'node-1': 1 }, lost: 1 })
        .holder({ on: { 'node-2': 1 }, lost: 8 })
        .holder({ on: { 'node-3': 1 }, lost: 8 })
        .job({ gpus: 1, nodes: 2, topology: 'required', priority: 80 }),
      [902, 903],
    ],
    [
      'what is on the node of its checkpoint',
      aCluster()
        .node({ gpus: 1 })
        .node({ gpus: 1 })
        .holder({ on: { 'node-1': 1 }, lost: 1 })
        .holder({ on: { 'node-2': 1 }, lost: 8 })
        .job({ gpus: 1, pinnedTo: ['node-2'], priority: 80 }),
      [902],
    ],
    [
      'nobody on a node that it failed on',
      aCluster()
        .node({ gpus: 1 })
        .node({ gpus: 1 })
        .holder({ on: { 'node-1': 1 }, lost: 1 })
        .holder({ on: { 'node-2': 1 }, lost: 8 })
        .job({ gpus: 1, excludedNodes: ['node-1'], priority: 80 }),
      [902],
    ],
    [
      'who has the kind of GPU',
      aCluster()
        .node({ gpus: 1, gpu: { model: 'NVIDIA A100' } })
        .node({ gpus: 1 })
        .holder({ on: { 'node-1': 1 }, lost: 9 })
        .holder({ on: { 'node-2': 1 }, lost: 1 })
        .job({ gpus: 1, gpu_type: ['A100'], priority: 80 }),
      [901],
    ],
    [
      'nobody whose owner does not allow it',
      aCluster()
        .node({ gpus: 2 })
        .holder({ on: { 'node-1': 2 }, isPreemptible: false })
        .job({ gpus: 1, priority: 80 }),
      [],
    ],
    [
      'nobody when it would not fit even then',
      aCluster()
        .node({ gpus: 2 })
        .holder({ on: { 'node-1': 1 } })
        .holder({ on: { 'node-1': 1 }, isPreemptible: false })
        .job({ gpus: 2, priority: 80 }),
      [],
    ],
    [
      'nobody for a job that waits for another',
      aCluster()
        .node({ gpus: 1 })
        .holder({ on: { 'node-1': 1 } })
        .job({ gpus: 1, priority: 80, dependencies: { kind: 'waiting', on: jobIdOf(7), when: 'ok' } }),
      [],
    ],
    [
      'nobody for a job in its backoff',
      aCluster()
        .node({ gpus: 1 })
        .holder({ on: { 'node-1': 1 } })
        .job({ gpus: 1, priority: 80, backoffMs: 5_000 }),
      [],
    ],
    [
      'nobody on nodes that are reserved for a job that comes first',
      aCluster()
        .node({ gpus: 2 })
        .holder({ on: { 'node-1': 1 }, isPreemptible: false, priority: 90 })
        .holder({ on: { 'node-1': 1 } })
        .job({ gpus: 2, priority: 90, waitedMs: reserveAfterMs })
        .job({ gpus: 1, priority: 80 }),
      [],
    ],
  ];

  it.each(chosen)('chooses %s', (_, cluster, victims) => {
    const result = cluster.plan();

    expect(result.preemptions.map(({ victim }) => Number(victim.id.slice(4)))).toEqual(victims);
  });
});

it('a GPU that was drained under its task does not come free with it', () => {
  const { nodes, queue, holders, arraysAtWork } = aCluster()
    .node({ gpus: 2 })
    .holder({ on: { 'node-1': 1 }, lost: 1 })
    .holder({ on: { 'node-1': 1 }, lost: 9 })
    .job({ gpus: 1, priority: 80 }).view;
  const drained = { ...notDrained, gpuUuids: new Set(['GPU-node-1-0']), kinds: ['xid_79'] };
  const view = { nodes: nodes.map((node) => ({ ...node, drained })), queue, holders, arraysAtWork };

  expect(plan(view, nowMs)).toMatchObject([{ kind: 'preempt', victim: { id: jobIdOf(902) } }, {}, {}]);
});

describe('while an attempt is preempted', () => {
  /** Two GPUs: one free, one of a job that saves. */
  const halfFree = (state: 'preempted' | 'ending', preemptor?: number) =>
    aCluster()
      .node({ gpus: 2 })
      .holder({ on: { 'node-1': 1 }, state, ...(preemptor === undefined ? {} : { preemptor }) });

  it('nobody else is asked, and what is free is kept from those behind', () => {
    const result = halfFree('preempted', 1)
      .job({ gpus: 2, priority: 80 })
      .job({ gpus: 1, priority: 10 })
      .plan();

    expect(result.preemptions).toEqual([]);
    expect(result.reasonOf(1)?.kind).toBe('preempting');
    expect(result.keptFor(1)).toEqual(['node-1']);
    expect(result.reasonOf(2)).toMatchObject({ kind: 'reserved', by: 'ahead' });
  });

  it('the rest of the node is for the others', () => {
    const result = aCluster()
      .node({ gpus: 4 })
      .holder({ on: { 'node-1': 1 }, state: 'preempted', preemptor: 1 })
      .holder({ on: { 'node-1': 1 }, isPreemptible: false })
      .job({ gpus: 3, priority: 80 })
      .job({ cpus: 1, priority: 10 })
      .job({ gpus: 1, priority: 10 })
      .plan();

    expect(result.keptFor(1)).toEqual(['node-1']);
    expect(result.started).toEqual([2]);
  });

  it('a job that ends anyway is waited for in the same way, but is not preempted', () => {
    const result = halfFree('ending').job({ gpus: 2, priority: 80 }).job({ gpus: 1, priority: 10 }).plan();

    expect(result.reasonOf(1)).toMatchObject({ kind: 'no_gpus_free', have: 0, want: 1, used: 1, total: 2 });
    expect(result.started).toEqual([]);
  });

  it('its place is not given to another job of the same turn', () => {
    // Were what 901 releases promised to no job, job 1 would be placed there, and job 2 would have to preempt again.
    const result = aCluster()
      .node({ gpus: 2 })
      .node({ gpus: 1 })
      .holder({ on: { 'node-1': 2 }, state: 'preempted', preemptor: 2 })
      .holder({ on: { 'node-2': 1 }, state: 'preempted', preemptor: 1 })
      .job({ gpus: 1, cpus: 2, priority: 80 })
      .job({ gpus: 2, priority: 70 })
      .plan();

    expect(result.preemptions).toEqual([]);
    expect([result.keptFor(1), result.keptFor(2)]).toEqual([['node-2'], ['node-1']]);
  });

  it('a more urgent job that has no other way takes the place over', () => {
    const result = aCluster()
      .node({ gpus: 1 })
      .holder({ on: { 'node-1': 1 }, state: 'preempted', preemptor: 1 })
      .job({ gpus: 1, priority: 50 })
      .job({ gpus: 1, priority: 90 })
      .plan();

    expect(result.keptFor(2)).toEqual(['node-1']);
    expect(result.reasonOf(1)?.kind).toBe('no_gpus_free');
  });

  it('what it releases is promised to no job once the preemptor is gone', () => {
    const result = aCluster()
      .node({ gpus: 1 })
      .holder({ on: { 'node-1': 1 }, state: 'preempted', preemptor: 77 })
      .job({ gpus: 1, priority: 10 })
      .plan();

    expect(result.keptFor(1)).toEqual(['node-1']);
  });

  it('a silent node is not counted on', () => {
    const result = aCluster()
      .node({ gpus: 1, online: false })
      .node({ gpus: 1 })
      .holder({ on: { 'node-1': 1 }, state: 'preempted', preemptor: 1 })
      .holder({ on: { 'node-2': 1 } })
      .job({ gpus: 1, priority: 80 })
      .plan();

    expect(result.victimsOf(1)).toEqual([902]);
  });
});

describe('a node that is awaited', () => {
  const away = { online: false, awaitedUntilMs: nowMs + 1 };

  /** A job on node-2 was preempted for a gang on node-1 and node-2, and then the coordinator was restarted. */
  const restarted = (second: typeof away | { online: false }) =>
    aCluster()
      .node({ gpus: 2 })
      .node({ gpus: 2, ...second })
      .node({ gpus: 2 })
      .holder({ on: { 'node-2': 2 }, state: 'preempted' })
      .holder({ on: { 'node-3': 2 }, priority: 30 })
      .job({ gpus: 2, nodes: 2, priority: 90 })
      .job({ gpus: 2, priority: 10 });

  it('spares others: what is on its way out there is not asked of them, nor the place beside it given away', () => {
    const result = restarted(away).plan();
    expect(result.preemptions).toEqual([]);
    expect(result.keptFor(1)).toEqual(['node-1', 'node-2']);
    expect(result.started).toEqual([]);
  });

  it('does not, once it is waited for no more', () => {
    const result = restarted({ online: false }).plan();
    expect(result.victimsOf(1)).toEqual([902]);
    expect(result.keptFor(1)).toEqual(['node-1', 'node-3']);
  });

  it('holds up nothing that fits elsewhere, and gets no work before it is back', () => {
    const result = aCluster()
      .node({ gpus: 2 })
      .node({ gpus: 4, ...away })
      .job({ gpus: 2 })
      .job({ gpus: 2 })
      .plan();
    expect(result.nodesOf(1)).toEqual(['node-1']);
    expect(result.nodesOf(2)).toBeNull();
    expect(result.keptFor(2)).toEqual(['node-2']);
  });
});
