import { describe, expect, it } from 'vitest';
import { jobIdOf, seededRandom } from '../modelFixture.ts';
import { aCluster, type JobOptions, type NodeOptions } from './clusterFixture.ts';
import { reserveAfterMs } from './plan.ts';
import { nowMs } from './planCheckFixture.ts';
import { noObstacles } from './reasons.ts';

describe('placement', () => {
  it('starts a job on a node that has what it asks for', () => {
    const plan = aCluster().node().node({ gpus: 8 }).job({ gpus: 4, cpus: 16, memory_mb: 1_024 }).plan();

    expect(plan.tasksOf(1)).toEqual([
      {
        node: 'node-2',
        gpuUuids: ['GPU-node-2-0', 'GPU-node-2-1', 'GPU-node-2-2', 'GPU-node-2-3'],
        cpus: 16,
        memoryMb: 1_024,
      },
    ]);
  });

  it('takes the node with the fewest free GPUs that are enough, to keep whole nodes for gangs', () => {
    const plan = aCluster()
      .node({ gpus: 8 })
      .node({ gpus: 8, freeGpus: 2 })
      .node({ gpus: 8, freeGpus: 1 })
      .job({ gpus: 2 });

    expect(plan.plan().nodesOf(1)).toEqual(['node-2']);
  });

  it('takes the least loaded of equal nodes', () => {
    expect(aCluster().node({ freeCpus: 10 }).node({ freeCpus: 11 }).job().plan().nodesOf(1)).toEqual([
      'node-2',
    ]);
    expect(aCluster().node().node().job().plan().nodesOf(1)).toEqual(['node-1']);
  });

  it('gives each GPU to one job', () => {
    const plan = aCluster().node({ gpus: 4 }).job({ gpus: 2 }).job({ gpus: 2 }).job({ gpus: 1 }).plan();

    expect(plan.started).toEqual([1, 2]);
    expect(plan.tasksOf(2)?.[0]?.gpuUuids).toEqual(['GPU-node-1-2', 'GPU-node-1-3']);
    expect(plan.reasonOf(3)).toEqual({
      kind: 'no_gpus_free',
      have: 0,
      want: 1,
      used: 4,
      total: 4,
      obstacles: noObstacles,
    });
  });

  it('gives a job without GPUs that names no CPUs one, and one with GPUs none', () => {
    expect(aCluster().node({ cpus: 2 }).job().job().job().plan().started).toEqual([1, 2]);
    expect(
      aCluster().node({ cpus: 2, gpus: 3 }).job({ gpus: 1 }).job({ gpus: 1 }).job({ gpus: 1 }).plan().started,
    ).toHaveLength(3);
  });

  it('fills a node with fractions of CPUs to the last one', () => {
    const cluster = aCluster().node({ cpus: 7 });
    for (let job = 0; job < 11; job += 1) cluster.job({ cpus: 0.7 });

    expect(cluster.plan().started).toHaveLength(10);
  });

  it('minds the kind and memory of GPUs', () => {
    const cluster = () =>
      aCluster()
        .node({ gpus: 2, gpu: { model: 'NVIDIA A100-SXM4-40GB', memoryMb: 40_960 } })
        .node({ gpus: 2, gpu: { model: 'NVIDIA H100 80GB HBM3', memoryMb: 81_559 } })
        .node({ gpus: 2, gpu: { model: 'NVIDIA H100 80GB HBM3', memoryMb: null } });

    expect(
      cluster()
        .job({ gpus: 1, gpu_type: ['h100'] })
        .plan()
        .nodesOf(1),
    ).toEqual(['node-2']);
    expect(
      cluster()
        .job({ gpus: 1, gpu_type: ['B200', 'A100'] })
        .plan()
        .nodesOf(1),
    ).toEqual(['node-1']);
    expect(cluster().job({ gpus: 1, gpu_memory_mb: 50_000 }).plan().nodesOf(1)).toEqual(['node-2']);
    // What is not known is not promised.
    expect(cluster().job({ gpus: 2, nodes: 2, gpu_memory_mb: 50_000 }).plan().reasonOf(1)?.kind).toBe(
      'never_fits',
    );
  });

  it('runs containers only where they can run', () => {
    const plan = aCluster()
      .node({ drivers: ['process'] })
      .node()
      .job({ image: 'train:1' })
      .plan();

    expect(plan.nodesOf(1)).toEqual(['node-2']);
  });

  it('gives nothing to a node that is drained', () => {
    expect(aCluster().node({ drained: true }).node().job().plan().nodesOf(1)).toEqual(['node-2']);
  });

  it('gives out what is left of a node of which GPUs are drained', () => {
    const plan = aCluster().node({ gpus: 4, drainedGpus: 2 }).job({ gpus: 2 }).job({ gpus: 1 }).job().plan();

    expect(plan.tasksOf(1)?.[0]?.gpuUuids).toEqual(['GPU-node-1-2', 'GPU-node-1-3']);
    expect(plan.started).toEqual([1, 3]);
  });

  it('gives nothing to a node that does not answer', () => {
    const plan = aCluster().node({ online: false }).job().plan();

    expect(plan.reasonOf(1)).toEqual({
      kind: 'no_nodes',
      have: 0,
      want: 1,
      of: 1,
      obstacles: { ...noObstacles, silent: ['node-1'] },
    });
  });
});

describe('a gang', () => {
  it('starts on all its nodes at once, its ranks in the order of their names', () => {
    const plan = aCluster()
      .node({ gpus: 2 })
      .node({ gpus: 8 })
      .node({ gpus: 4 })
      .job({ nodes: 2, gpus: 2 })
      .plan();

    expect(plan.nodesOf(1)).toEqual(['node-1', 'node-3']);
  });

  it('takes nothing when it cannot have everything', () => {
    const plan = aCluster()
      .node({ gpus: 8 })
      .node({ gpus: 8, freeGpus: 4 })
      .job({ nodes: 2, gpus: 8 })
      .job({ gpus: 8 })
      .plan();

    expect(plan.reasonOf(1)).toMatchObject({ kind: 'no_gpus_free', have: 0, want: 2, used: 12, total: 16 });
    expect(plan.nodesOf(2)).toEqual(['node-1']);
  });
});

describe('the queue', () => {
  it('goes by priority, then by submission', () => {
    const plan = aCluster()
      .node({ cpus: 2 })
      .job({ priority: 10 })
      .job({ priority: 90 })
      .job()
      .job({ priority: 90 })
      .plan();

    expect(plan.started).toEqual([2, 4]);
  });

  it('lets small jobs use what a large one cannot', () => {
    const plan = aCluster()
      .node({ gpus: 4 })
      .job({ gpus: 8, priority: 90 })
      .job({ gpus: 2 })
      .job({ gpus: 2 })
      .plan();

    expect(plan.started).toEqual([2, 3]);
  });

  it('waits for what a job comes after', () => {
    const on = jobIdOf(7);
    const plan = aCluster()
      .node()
      .job({ dependencies: { kind: 'waiting', on, when: 'ok' } })
      .job({ dependencies: { kind: 'failed', on, what: 'failed' } });

    expect(plan.plan().reasonOf(1)).toEqual({ kind: 'dependency', on, when: 'ok' });
    expect(plan.plan().reasonOf(2)).toEqual({ kind: 'dependency_failed', on, what: 'failed' });
  });

  it('waits out a backoff, and not a millisecond more', () => {
    const plan = aCluster()
      .node()
      .job({ backoffMs: 1, priority: 90 })
      .job({ waitedMs: 500, backoffMs: 500 })
      .plan();

    expect(plan.started).toEqual([2]);
    expect(plan.reasonOf(1)).toEqual({ kind: 'backoff', untilMs: nowMs + 1 });
  });
});

describe('a reservation', () => {
  const long = reserveAfterMs;
  /** Two nodes of 8 GPUs in part in use, a third that is all in use. */
  const busyCluster = () =>
    aCluster().node({ gpus: 8, freeGpus: 2 }).node({ gpus: 8, freeGpus: 0 }).node({ gpus: 8, freeGpus: 6 });

  it('keeps the nodes nearest to being free for a job that has waited a minute', () => {
    const plan = busyCluster().job({ nodes: 2, gpus: 8, waitedMs: long }).job({ gpus: 2 }).plan();

    expect(plan.reserved).toEqual([{ job: 1, nodes: ['node-3', 'node-1'] }]);
    expect(plan.reasonOf(2)).toEqual({ kind: 'reserved', by: 'waitedLonger', obstacles: noObstacles });
  });

  it('is made behind a newer one of the same size', () => {
    const plan = aCluster()
      .node({ gpus: 8, freeGpus: 4 })
      .job({ gpus: 8, priority: 90 })
      .job({ gpus: 8, waitedMs: reserveAfterMs })
      .job({ gpus: 4 })
      .plan();

    expect(plan.reserved).toEqual([{ job: 2, nodes: ['node-1'] }]);
    expect(plan.started).toEqual([]);
  });

  it('is not made before', () => {
    const plan = busyCluster()
      .job({ nodes: 2, gpus: 8, waitedMs: long - 1 })
      .job({ gpus: 2 })
      .plan();

    expect(plan.reserved).toEqual([]);
    expect(plan.nodesOf(2)).toEqual(['node-1']);
  });

  it('leaves the other nodes to the others', () => {
    const plan = busyCluster()
      .node({ gpus: 2 })
      .job({ nodes: 2, gpus: 8, waitedMs: long })
      .job({ gpus: 2 })
      .plan();

    expect(plan.nodesOf(2)).toEqual(['node-4']);
  });

  it('does not bind jobs of higher priority', () => {
    const plan = busyCluster()
      .job({ nodes: 2, gpus: 8, waitedMs: long })
      .job({ gpus: 2, priority: 90 })
      .plan();

    expect(plan.nodesOf(2)).toEqual(['node-1']);
    expect(plan.reserved).toHaveLength(1);
  });

  it('is made for one job at a time', () => {
    const plan = busyCluster()
      .job({ nodes: 2, gpus: 8, waitedMs: long })
      .job({ gpus: 7, waitedMs: long })
      .plan();

    expect(plan.reserved.map(({ job }) => job)).toEqual([1]);
  });

  it('goes by CPUs and memory when GPUs are not what is lacking', () => {
    const plan = aCluster()
      .node({ gpus: 8, cpus: 32, freeCpus: 2 })
      .node({ cpus: 32, freeCpus: 16 })
      .job({ cpus: 24, waitedMs: long })
      .plan();

    expect(plan.reserved).toEqual([{ job: 1, nodes: ['node-2'] }]);
  });

  it('is not made for a job that would not fit into the empty cluster', () => {
    const plan = busyCluster().job({ nodes: 4, gpus: 8, waitedMs: long }).job({ gpus: 2 }).plan();

    expect(plan.reserved).toEqual([]);
    expect(plan.started).toEqual([2]);
  });

  it('is not made while too few nodes are online: idle ones would not bring the others back', () => {
    const plan = aCluster()
      .node({ gpus: 8 })
      .node({ gpus: 8, online: false })
      .job({ nodes: 2, gpus: 8, waitedMs: long })
      .job({ gpus: 8 })
      .plan();

    expect(plan.reasonOf(1)?.kind).toBe('no_nodes');
    expect(plan.started).toEqual([2]);
  });
});

describe('a drained node', () => {
  const long = reserveAfterMs;

  it('is not reserved: kept idle, it would not become whole', () => {
    const plan = aCluster()
      .node({ gpus: 8, drainedGpus: 1 })
      .node({ gpus: 8 })
      .job({ nodes: 2, gpus: 8, waitedMs: long })
      .job({ gpus: 7 })
      .plan();

    expect(plan.reasonOf(1)?.kind).toBe('drained');
    expect(plan.reserved).toEqual([]);
    expect(plan.nodesOf(2)).toEqual(['node-1']);
  });

  it('is passed over for one that is further from being free', () => {
    const plan = aCluster()
      .node({ gpus: 8, drained: true })
      .node({ gpus: 8, freeGpus: 0 })
      .job({ gpus: 8, waitedMs: long })
      .plan();

    expect(plan.reserved).toEqual([{ job: 1, nodes: ['node-2'] }]);
  });
});

describe('any plan', () => {
  it('gives out only what is free, and nothing twice', () => {
    const random = seededRandom(20_240_304);
    const upTo = (maximum: number) => Math.floor(random() * (maximum + 1));
    const sometimes = <T>(value: T, otherwise: T): T => (random() < 0.2 ? value : otherwise);
    let started = 0;
    for (let situation = 0; situation < 600; situation += 1) {
      const cluster = aCluster();
      for (let node = upTo(6); node > 0; node -= 1) cluster.node(anyNode(upTo, sometimes));
      for (let job = upTo(12); job > 0; job -= 1) cluster.job(anyJob(upTo, sometimes));
      // `plan` checks.
      started += cluster.plan().started.length;
    }
    expect(started).toBeGreaterThan(500);
  });
});

type UpTo = (maximum: number) => number;
type Sometimes = <T>(value: T, otherwise: T) => T;

function anyNode(upTo: UpTo, sometimes: Sometimes): NodeOptions {
  const gpus = upTo(8);
  const cpus = 1 + upTo(31);
  const memoryMb = 1_024 * (1 + upTo(15));
  return {
    gpus,
    freeGpus: upTo(gpus),
    drainedGpus: sometimes(upTo(gpus), 0),
    drained: sometimes(true, false),
    ...sometimes<NodeOptions>({ drainReason: 'kernel update' }, {}),
    gpu: { model: sometimes('NVIDIA A100', 'NVIDIA H100'), memoryMb: sometimes<number | null>(null, 81_559) },
    cpus,
    freeCpus: cpus * (1 - upTo(10) / 10),
    memoryMb,
    freeMemoryMb: upTo(memoryMb),
    ...sometimes<NodeOptions>({ freeTasks: 1 + upTo(3) }, {}),
    ...sometimes<NodeOptions>({ online: false, ...sometimes({ awaitedUntilMs: nowMs + 1 }, {}) }, {}),
    ...sometimes<NodeOptions>({}, { topology: `rack${upTo(1)}/leaf${upTo(1)}` }),
    drivers: sometimes(['process'], ['process', 'docker']),
  };
}

function anyJob(upTo: UpTo, sometimes: Sometimes): JobOptions {
  const min = 1 + sometimes(upTo(2), 0);
  const max = min + sometimes(upTo(3), 0);
  return {
    nodes: max === min ? max : { min, max },
    ...sometimes<JobOptions>(max > 1 ? { topology: 'required' } : {}, {}),
    excludedNodes: sometimes([`node-${1 + upTo(2)}`, `node-${1 + upTo(5)}`], []),
    gpus: upTo(4),
    ...sometimes<JobOptions>({ cpus: (1 + upTo(40)) / 10 }, {}),
    ...sometimes<JobOptions>({ memory_mb: 1 + upTo(4_096) }, {}),
    ...sometimes<JobOptions>({ gpu_type: ['A100'] }, {}),
    ...sometimes<JobOptions>({ gpu_memory_mb: 50_000 }, {}),
    ...sometimes<JobOptions>({ image: 'train:1' }, {}),
    priority: upTo(3),
    waitedMs: upTo(2 * reserveAfterMs),
    backoffMs: sometimes(upTo(2 * reserveAfterMs), 0),
    dependencies: sometimes<JobOptions['dependencies'] & object>(
      { kind: 'waiting', on: jobIdOf(99), when: 'ok' },
      { kind: 'met' },
    ),
  };
}
