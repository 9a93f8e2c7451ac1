import { describe, expect, it } from 'vitest';
import { aCluster } from './clusterFixture.ts';

it('what no node could ever run is distinguished from what waits for nodes that are away', () => {
  const reason = aCluster()
    .node({ gpus: 8, online: false })
    .node({ gpus: 4 })
    .job({ gpus: 8 })
    .plan()
    .reasonOf(1);
  expect(reason).toMatchObject({
    kind: 'no_nodes',
    have: 0,
    want: 1,
    of: 2,
    obstacles: { silent: ['node-1'] },
  });
});

describe('jobs that ask for next to nothing', () => {
  it('do not become more on one node than its heartbeats can name', () => {
    const cluster = aCluster().node({ cpus: 64, freeTasks: 3 }).node({ cpus: 64, freeTasks: 2 });
    for (let count = 0; count < 7; count += 1) cluster.job({ cpus: 0.01 });
    const plan = cluster.plan();
    expect(plan.started).toEqual([1, 2, 3, 4, 5]);
    expect(plan.started.filter((job) => plan.nodesOf(job)?.[0] === 'node-1')).toHaveLength(3);
    expect(plan.reasonOf(6)?.kind).toBe('node_full');
    expect(plan.reasonOf(7)).toEqual(plan.reasonOf(6));
  });

  it('are preempted by one that outranks them, one for one', () => {
    const cluster = aCluster()
      .node({ cpus: 64, freeTasks: 2 })
      .holder({ on: { 'node-1': 0 }, cpus: 0.01, lost: 9 })
      .holder({ on: { 'node-1': 0 }, cpus: 0.01, lost: 5 })
      .job({ cpus: 0.01, priority: 90 });
    expect(cluster.plan().victimsOf(1)).toEqual([902]);
  });
});
