/** What the plan does for jobs of several nodes: ranges of sizes, switches, nodes that they failed on. */
import { describe, expect, it } from 'vitest';
import { aCluster, type NodeOptions } from './clusterFixture.ts';
import { reserveAfterMs } from './plan.ts';
import { noObstacles } from './reasons.ts';

const long = reserveAfterMs;

describe('a job that takes a range of nodes', () => {
  const oneTo = (max: number, min = 1) => ({ nodes: { min, max }, gpus: 8 });

  it('starts on all that it can use, when they are free', () => {
    const plan = aCluster().node({ gpus: 8 }).node({ gpus: 8 }).node({ gpus: 8 }).job(oneTo(2)).plan();

    expect(plan.nodesOf(1)).toEqual(['node-1', 'node-2']);
  });

  it('starts smaller, on as many as fit now', () => {
    const plan = aCluster()
      .node({ gpus: 8 })
      .node({ gpus: 8, freeGpus: 7 })
      .node({ gpus: 8 })
      .node({ gpus: 8, online: false })
      .job(oneTo(4))
      .plan();

    expect(plan.nodesOf(1)).toEqual(['node-1', 'node-3']);
  });

  it('waits for as few as will do, and says so', () => {
    const plan = aCluster()
      .node({ gpus: 8 })
      .node({ gpus: 8, freeGpus: 7 })
      .node({ gpus: 8, online: false })
      .job(oneTo(4, 2))
      .plan();

    expect(plan.reasonOf(1)).toEqual({
      kind: 'no_gpus_free',
      have: 1,
      want: 2,
      used: 1,
      total: 16,
      obstacles: { ...noObstacles, silent: ['node-3'] },
    });
  });

  it('waits for nodes that are away only where too few are left', () => {
    const plan = aCluster().node({ gpus: 8 }).node({ gpus: 8, online: false }).job(oneTo(3, 2)).plan();

    expect(plan.reasonOf(1)).toMatchObject({ kind: 'no_nodes', have: 1, obstacles: { silent: ['node-2'] } });
  });

  it('can start in a cluster that has fewer nodes than it could use', () => {
    expect(aCluster().node({ gpus: 8 }).job(oneTo(4)).plan().nodesOf(1)).toEqual(['node-1']);
    expect(aCluster().node({ gpus: 8 }).job(oneTo(4, 2)).plan().reasonOf(1)).toMatchObject({
      kind: 'never_fits',
      lack: 'nodes',
      have: 1,
      want: 2,
    });
  });

  it('waits with what fits on as many nodes as it needs', () => {
    const plan = aCluster().node({ gpus: 4 }).node({ gpus: 2 }).node({ gpus: 1 }).job(oneTo(3, 2)).plan();

    expect(plan.reasonOf(1)).toMatchObject({
      lack: 'resources',
      largest: { gpus: 4 },
      available: { gpus: 2 },
    });
  });

  it('has as many nodes reserved as it needs, not as it could use', () => {
    const plan = aCluster()
      .node({ gpus: 8, freeGpus: 4 })
      .node({ gpus: 8, freeGpus: 6 })
      .node({ gpus: 8, freeGpus: 2 })
      .job({ ...oneTo(3, 2), waitedMs: long })
      .job({ gpus: 2 })
      .plan();

    expect(plan.reserved).toEqual([{ job: 1, nodes: ['node-2', 'node-1'] }]);
    expect(plan.nodesOf(2)).toEqual(['node-3']);
  });

  it('does not answer for jobs that would do with less', () => {
    const plan = aCluster().node({ gpus: 8 }).job(oneTo(2, 2)).job(oneTo(2)).plan();

    expect(plan.started).toEqual([2]);
  });
});

describe('a gang that is bound to one switch', () => {
  const bound = (nodes: number | { min: number; max: number }, gpus = 8) => {
    return { nodes, gpus, topology: 'required' } as const;
  };
  /** rack1 with three nodes, one of them in use; rack2 with two. */
  const twoRacks = () =>
    aCluster()
      .node({ gpus: 8, topology: 'rack1/leaf1' })
      .node({ gpus: 8, topology: 'rack1/leaf1' })
      .node({ gpus: 8, freeGpus: 3, topology: 'rack1/leaf1' })
      .node({ gpus: 8, topology: 'rack2/leaf1' })
      .node({ gpus: 8, topology: 'rack2/leaf1' });

  it('starts under one, the smallest that will do', () => {
    const plan = aCluster()
      .node({ gpus: 8, topology: 'rack1' })
      .node({ gpus: 8, topology: 'rack1' })
      .node({ gpus: 8, topology: 'rack1' })
      .node({ gpus: 8, topology: 'rack2' })
      .node({ gpus: 8, topology: 'rack2' })
      .job(bound(2))
      .plan();

    expect(plan.nodesOf(1)).toEqual(['node-4', 'node-5']);
  });

  it('waits while no switch has enough nodes that are free, though all of them together would do', () => {
    const alone = twoRacks().job(bound(3)).plan();
    const plan = twoRacks().job(bound(3)).job({ nodes: 3, gpus: 8 }).plan();

    expect(alone.reasonOf(1)).toMatchObject({ kind: 'topology', have: 2, want: 3, switchName: 'rack1' });
    expect(plan.nodesOf(2)).toHaveLength(3);
    // The reason counts what the job behind it has taken.
    expect(plan.reasonOf(1)).toMatchObject({ kind: 'no_gpus_free', have: 1, want: 3 });
  });

  it('names what conditions keep away', () => {
    const cluster = aCluster()
      .node({ gpus: 8, topology: 'rack1' })
      .node({ gpus: 8, topology: 'rack1', drained: true })
      .node({ gpus: 8, topology: 'rack2' });

    expect(cluster.job(bound(2)).plan().reasonOf(1)).toMatchObject({
      kind: 'topology',
      have: 1,
      obstacles: { drained: [{ node: 'node-2', gpus: null, kinds: ['disk_read_only'] }] },
    });
  });

  it('has a reason of its own when it can never start', () => {
    expect(twoRacks().job(bound(4)).plan().reasonOf(1)).toMatchObject({
      kind: 'never_fits',
      lack: 'switch',
      apart: { have: 3, want: 4, switchName: 'rack1', isLabelled: true },
    });
    expect(aCluster().node().node().job(bound(2, 0)).plan().reasonOf(1)).toMatchObject({
      kind: 'never_fits',
      apart: { have: 1, of: 2, isLabelled: false },
    });
  });

  it('takes as many as one switch has, of a range', () => {
    const plan = twoRacks()
      .job(bound({ min: 1, max: 5 }))
      .plan();

    expect(plan.nodesOf(1)).toEqual(['node-1', 'node-2']);
  });

  it('has nodes of one switch reserved, so that it gets its turn', () => {
    const plan = twoRacks()
      .job({ ...bound(3), waitedMs: long })
      .job({ gpus: 8 })
      .plan();

    expect(plan.reserved).toEqual([{ job: 1, nodes: ['node-1', 'node-2', 'node-3'] }]);
    expect(plan.nodesOf(2)).toEqual(['node-4']);
  });

  it('chooses the switch to reserve by what lacks there', () => {
    const plan = aCluster()
      .node({ gpus: 8, freeGpus: 8, topology: 'rack1' })
      .node({ gpus: 8, freeGpus: 0, topology: 'rack1' })
      .node({ gpus: 8, freeGpus: 6, topology: 'rack2' })
      .node({ gpus: 8, freeGpus: 5, topology: 'rack2' })
      .job({ ...bound(2), waitedMs: long })
      .plan();

    expect(plan.reserved).toEqual([{ job: 1, nodes: ['node-3', 'node-4'] }]);
  });
});

describe('a gang that prefers to be near', () => {
  const nodes = (...paths: readonly string[]) =>
    paths.reduce((cluster, topology) => cluster.node({ gpus: 8, topology }), aCluster());

  it('is under one switch where it can be', () => {
    const plan = nodes('rack1/s1', 'rack2/s1', 'rack2/s1', 'rack3/s2').job({ nodes: 2, gpus: 8 }).plan();

    expect(plan.nodesOf(1)).toEqual(['node-2', 'node-3']);
  });

  it('never waits for it', () => {
    const plan = nodes('rack1/s1', 'rack2/s2', 'rack3/s3').job({ nodes: 3, gpus: 8 }).plan();

    expect(plan.nodesOf(1)).toHaveLength(3);
  });

  it('takes the size first, of a range', () => {
    const plan = nodes('rack1', 'rack1', 'rack2')
      .job({ nodes: { min: 1, max: 3 }, gpus: 8 })
      .plan();

    expect(plan.nodesOf(1)).toHaveLength(3);
  });

  it('has neighbours in rank that are neighbours in the network', () => {
    const plan = nodes('rack2/s1', 'rack1/s2', 'rack1/s1', 'rack2/s1').job({ nodes: 4, gpus: 8 }).plan();

    expect(plan.nodesOf(1)).toEqual(['node-3', 'node-1', 'node-4', 'node-2']);
  });

  it('leaves whole racks to others', () => {
    const plan = nodes('rack1', 'rack1', 'rack1', 'rack2', 'rack2')
      .job({ nodes: 2, gpus: 8 })
      .job({ nodes: 3, gpus: 8, topology: 'required' })
      .plan();

    expect(plan.started).toEqual([1, 2]);
  });
});

describe('a job that failed on nodes before it began', () => {
  it('does without them', () => {
    const plan = aCluster()
      .node()
      .node()
      .node()
      .job({ nodes: 2, excludedNodes: ['node-1'] })
      .plan();

    expect(plan.nodesOf(1)).toEqual(['node-2', 'node-3']);
  });

  it('waits for others that are away or in use, and names what it does without, and why', () => {
    const away = aCluster()
      .node()
      .node({ online: false })
      .job({ excludedNodes: ['node-1'] })
      .plan();

    expect(away.reasonOf(1)).toMatchObject({
      kind: 'no_nodes',
      obstacles: { silent: ['node-2'], excluded: [{ node: 'node-1', cause: 'image_pull' }] },
    });
    const busy = aCluster()
      .node({ gpus: 1, freeGpus: 0 })
      .node({ gpus: 1 })
      .node({ gpus: 1, online: false })
      .job({ gpus: 1, excludedNodes: ['node-2', 'node-3'] })
      .plan();
    expect(busy.reasonOf(1)).toMatchObject({
      kind: 'no_gpus_free',
      total: 1,
      obstacles: { silent: [], excluded: [{ node: 'node-2', cause: 'image_pull' }] },
    });
  });

  it('does not wait for those that stay away', () => {
    const cluster = (others: NodeOptions) =>
      aCluster()
        .node()
        .node(others)
        .job({ excludedNodes: ['node-1'], waitedMs: long });

    expect(cluster({ online: false }).plan().nodesOf(1)).toEqual(['node-1']);
    expect(cluster({ drained: true }).plan().nodesOf(1)).toEqual(['node-1']);
    expect(cluster({ freeCpus: 0 }).plan().nodesOf(1), 'and does for those in use').toBeNull();
  });

  it('tries them again where it could never run without them', () => {
    expect(
      aCluster()
        .node()
        .job({ excludedNodes: ['node-1'] })
        .plan()
        .nodesOf(1),
    ).toEqual(['node-1']);
    const gang = aCluster()
      .node({ gpus: 8 })
      .node({ gpus: 8 })
      .node({ gpus: 4 })
      .job({ nodes: 2, gpus: 8, excludedNodes: ['node-1'] });
    expect(gang.plan().nodesOf(1)).toEqual(['node-1', 'node-2']);
  });

  it('then prefers those that it did not fail on', () => {
    const plan = aCluster()
      .node()
      .node()
      .node()
      .job({ nodes: 2, excludedNodes: ['node-1', 'node-2'] })
      .plan();

    expect(plan.nodesOf(1)).toEqual(['node-1', 'node-3']);
  });

  it('starts smaller rather than on them', () => {
    const plan = aCluster()
      .node()
      .node()
      .job({ nodes: { min: 1, max: 2 }, excludedNodes: ['node-2'] })
      .plan();

    expect(plan.nodesOf(1)).toEqual(['node-1']);
  });

  it('uses them again where no other switch has enough nodes', () => {
    const cluster = () =>
      aCluster().node({ topology: 'rack1' }).node({ topology: 'rack1' }).node({ topology: 'rack2' });
    const job = { nodes: 2, excludedNodes: ['node-1'] };

    expect(cluster().job(job).plan().nodesOf(1)).toEqual(['node-2', 'node-3']);
    expect(
      cluster()
        .job({ ...job, topology: 'required' })
        .plan()
        .nodesOf(1),
    ).toEqual(['node-1', 'node-2']);
  });

  it('has others reserved', () => {
    const plan = aCluster()
      .node({ gpus: 8, freeGpus: 7 })
      .node({ gpus: 8, freeGpus: 1 })
      .job({ gpus: 8, waitedMs: long, excludedNodes: ['node-1'] })
      .plan();

    expect(plan.reserved).toEqual([{ job: 1, nodes: ['node-2'] }]);
  });

  it('does not blame them where they would not do either', () => {
    const plan = aCluster()
      .node({ gpus: 1, freeGpus: 0 })
      .node({ gpus: 1, freeGpus: 0 })
      .job({ gpus: 1, excludedNodes: ['node-1'] })
      .job({ gpus: 1 })
      .plan();

    expect(plan.reasonOf(1)).toMatchObject({ kind: 'no_gpus_free', obstacles: noObstacles });
    expect(plan.reasonOf(2)).toEqual(plan.reasonOf(1));
  });

  it('does not hold for equal jobs that did not fail there', () => {
    const plan = aCluster()
      .node()
      .node({ online: false })
      .job({ excludedNodes: ['node-1'] })
      .job()
      .plan();

    expect(plan.started).toEqual([2]);
  });
});
