/** Sentences about what is too little, and about who has it. */
import { describe, expect, it } from 'vitest';
import { nodeNameOf } from '../modelFixture.ts';
import { aCluster, type Cluster, type JobOptions } from '../scheduler/clusterFixture.ts';
import { nowMs } from '../scheduler/planCheckFixture.ts';
import type { WaitReason } from '../scheduler/reasons.ts';
import { type GpuHolder, pendingReason } from './waiting.ts';

/** Of the first job of a situation. */
function explained(cluster: Cluster, holders: readonly GpuHolder[] = []) {
  const reason = cluster.plan().reasonOf(1);
  return reason === null ? null : inWords(reason, cluster, holders);
}

function inWords(reason: WaitReason, cluster: Cluster, holders: readonly GpuHolder[] = []) {
  const spec = cluster.view.queue[0]?.spec;
  if (spec === undefined) throw new Error(`nobody waits`);
  return pendingReason(reason, spec, nowMs, holders);
}

describe('a job that can never start says what would help', () => {
  const cases: readonly (readonly [situation: string, cluster: Cluster, message: string, remedy: string])[] =
    [
      [
        'no nodes at all',
        aCluster().job(),
        'the cluster has no nodes yet',
        'add one: `muster token create NAME` here, `muster agent` there',
      ],
      [
        'too few nodes',
        aCluster().node().job({ nodes: 2 }),
        'the cluster has 1 node, and it needs 2 at the same time',
        'ask for fewer nodes (resources.nodes), or add nodes',
      ],
      [
        'too many GPUs per node',
        aCluster().node({ gpus: 8 }).node({ gpus: 4 }).job({ gpus: 16 }),
        'no node has 16 GPUs (largest has 8)',
        'ask for at most 8 GPUs per node (resources.gpus), or add nodes',
      ],
      [
        'too many GPUs on as many nodes',
        aCluster().node({ gpus: 8 }).node({ gpus: 1 }).job({ nodes: 2, gpus: 8 }),
        'only 1 of the 2 nodes in the cluster has 8 GPUs, and it needs 2',
        'ask for at most 1 GPU per node (resources.gpus), or add nodes',
      ],
      [
        'GPUs where there are none',
        aCluster().node().job({ gpus: 1 }),
        'no node has 1 GPU',
        'add nodes with GPUs, or ask for none (resources.gpus)',
      ],
      [
        'GPUs of a kind that is not there',
        aCluster()
          .node({ gpus: 8 })
          .job({ gpus: 2, gpu_type: ['B200', 'B300'], gpu_memory_mb: 100_000 }),
        'no node has 2 B200/B300 GPUs of 100000 MiB',
        'ask for GPUs that the nodes have (resources.gpu_type, resources.gpu_memory_mb), or add nodes',
      ],
      [
        'too many GPUs of a kind',
        aCluster()
          .node({ gpus: 2 })
          .job({ gpus: 4, gpu_type: ['H100'] }),
        'no node has 4 H100 GPUs (largest has 2)',
        'ask for at most 2 GPUs of that kind per node (resources.gpus), or add nodes',
      ],
      [
        'too many CPUs',
        aCluster().node({ cpus: 8 }).job({ cpus: 8.5 }),
        'no node has 8.5 CPUs (largest has 8 CPUs)',
        'ask for at most 8 CPUs per node (resources.cpus), or add nodes',
      ],
      [
        'too much memory',
        aCluster().node({ memoryMb: 1_000 }).job({ memory_mb: 2_000 }),
        'no node has 1 CPU and 2000 MiB of memory (largest has 1000 MiB of memory)',
        'ask for at most 1000 MiB of memory per node (resources.memory_mb), or add nodes',
      ],
      [
        'each of it on another node',
        aCluster().node({ gpus: 8, cpus: 4 }).node({ cpus: 64 }).job({ gpus: 8, cpus: 32 }),
        'no node has 8 GPUs and 32 CPUs',
        'no node has all of these resources: ask for less per node or fewer nodes, or add nodes',
      ],
      [
        'containers where only processes run',
        aCluster()
          .node({ drivers: ['process'] })
          .job({ image: 'train:1' }),
        '0 of 1 nodes can run containers, and it needs 1',
        'install Docker on the nodes, or remove `image`',
      ],
      [
        'processes where only containers run',
        aCluster()
          .node({ drivers: ['docker'] })
          .job(),
        '0 of 1 nodes can run processes, and it needs 1',
        'name an `image` to run in containers',
      ],
    ];

  it.each(cases)('%s', (_situation, cluster, message, remedy) => {
    expect(explained(cluster)).toMatchObject({ message, remedy });
  });
});

describe('a job that waits for what conditions keep away', () => {
  const cases: readonly (readonly [string, Cluster, kind: string, message: string, node: string])[] = [
    [
      'its GPUs',
      aCluster().node({ gpus: 8, drainedGpus: 2 }).job({ gpus: 7 }),
      'drained',
      'no node can take it; 2 of 8 GPUs of node-1 are drained (xid_79)',
      'node-1',
    ],
    [
      'the one GPU there is',
      aCluster().node({ gpus: 1, drainedGpus: 1 }).job({ gpus: 1 }),
      'drained',
      'no node can take it; 1 of 1 GPU of node-1 is drained (xid_79)',
      'node-1',
    ],
    [
      'whole nodes, of which the first few are named',
      aCluster()
        .node()
        .node({ drained: true })
        .node({ drained: true })
        .node({ drained: true })
        .node({ drained: true })
        .job({ nodes: 2 }),
      'drained',
      '1 of the 2 nodes it needs can take it; node-2 is drained (disk_read_only); node-3 is drained (disk_read_only); ' +
        'node-4 is drained (disk_read_only); and 1 node more',
      'node-2',
    ],
    [
      'GPUs, while others are in use',
      aCluster()
        .node({ gpus: 4, freeGpus: 1 })
        .node({ gpus: 8, drainedGpus: 2, freeGpus: 3 })
        .job({ gpus: 4 }),
      'no_gpus_free',
      'waiting for 4 free GPUs on one node (6 of 10 GPUs in use); 2 of 8 GPUs of node-2 are drained (xid_79)',
      'node-2',
    ],
    [
      'a node, while another has no room',
      aCluster().node({ cpus: 4, freeCpus: 1 }).node({ cpus: 4, drained: true }).job({ cpus: 4 }),
      'no_cpus_free',
      'waiting for 4 free CPUs on one node (3 of 4 CPUs in use); node-2 is drained (disk_read_only)',
      'node-2',
    ],
  ];

  it.each(cases)('%s', (_situation, cluster, kind, message, node) => {
    const remedy = `\`muster node ${node}\` shows what is wrong there and what clears it`;
    expect(explained(cluster)).toEqual({ kind, message, remedy });
  });

  it('is not explained by conditions that do not concern it', () => {
    const cluster = aCluster()
      .node({ gpus: 8, drainedGpus: 2, cpus: 4, freeCpus: 1 })
      .job({ gpus: 6, cpus: 4 });
    expect(explained(cluster)?.message).toBe(
      'waiting for 6 free GPUs and 4 CPUs on one node (3 of 4 CPUs in use)',
    );
  });
});

describe('a job that could start later says what is missing', () => {
  it.each([
    [
      'no_gpus_free',
      { gpus: 2, freeGpus: 1 },
      { gpus: 2 },
      'waiting for 2 free GPUs on one node (1 of 2 GPUs in use)',
    ],
    [
      'no_cpus_free',
      { cpus: 4, freeCpus: 3.5 },
      { cpus: 4 },
      'waiting for 4 free CPUs on one node (0.5 of 4 CPUs in use)',
    ],
    [
      'no_memory_free',
      { memoryMb: 8, freeMemoryMb: 7 },
      { memory_mb: 8 },
      'waiting for 1 free CPU and 8 MiB of memory on one node (1 of 8 MiB of memory in use)',
    ],
    [
      'node_full',
      { freeTasks: 0 },
      { cpus: 0.01 },
      'waiting for a node with fewer than 1000 tasks, the most it may have',
    ],
  ] as const)('%s', (kind, node, job, message) => {
    expect(explained(aCluster().node(node).job(job))).toEqual({ kind, message, remedy: null });
  });

  it('and which nodes are silent that might have done', () => {
    const cluster = () =>
      aCluster().node({ gpus: 2 }).node({ gpus: 2, freeGpus: 1 }).node({ gpus: 2, online: false });

    expect(explained(cluster().job({ nodes: 2, gpus: 2 }))).toEqual({
      kind: 'no_gpus_free',
      message:
        'waiting for 2 nodes with 2 free GPUs each (1 has them now; 1 of 4 GPUs in use); node-3 is silent',
      remedy: 'bring silent nodes back; `muster nodes` shows which are',
    });
  });
});

describe('a job that takes a range of nodes, or is bound to one switch, says what is missing of them', () => {
  const remedy = 'ask for topology: preferred to start across switches, or for fewer nodes';
  const bound = (nodes: number): JobOptions => ({ nodes, gpus: 8, topology: 'required' });
  const twoRacks = () =>
    aCluster()
      .node({ gpus: 8, topology: 'rack1' })
      .node({ gpus: 8, topology: 'rack1', freeGpus: 7 })
      .node({ gpus: 8, topology: 'rack2' });
  const range: JobOptions = { nodes: { min: 2, max: 4 }, gpus: 8 };
  const cases: readonly (readonly [string, Cluster, message: string, remedy: string | null])[] = [
    [
      'GPUs on the fewest that will do',
      aCluster().node({ gpus: 8 }).node({ gpus: 8, freeGpus: 7 }).node({ gpus: 8, online: false }).job(range),
      'waiting for at least 2 nodes with 8 free GPUs each (1 has them now; 1 of 16 GPUs in use); node-3 is silent',
      'bring silent nodes back; `muster nodes` shows which are',
    ],
    [
      'nodes that are online',
      aCluster().node({ gpus: 8 }).node({ gpus: 8, online: false }).job(range),
      '1 of the 2 nodes it needs at least are online; node-2 is silent',
      'bring silent nodes back; `muster nodes` shows which are',
    ],
    [
      'nodes at all',
      aCluster().node({ gpus: 8 }).job(range),
      'the cluster has 1 node, and it needs at least 2 at the same time',
      'ask for fewer nodes (resources.nodes), or add nodes',
    ],
    [
      'free ones under one switch',
      twoRacks().job(bound(2)),
      'at most 1 of the 2 nodes it needs are free under one switch (rack1)',
      remedy,
    ],
    [
      'any under one switch',
      twoRacks().job(bound(3)),
      'at most 2 of the 3 nodes it needs are under one switch (rack1)',
      remedy,
    ],
    [
      'labels',
      aCluster()
        .node()
        .node()
        .job({ ...bound(2), gpus: 0 }),
      'topology: required needs nodes under one switch, and none of the 2 nodes has a topology label',
      'start agents with --label topology=RACK/LEAF/SPINE, or ask for topology: preferred',
    ],
    [
      'nodes it is not excluded from',
      aCluster()
        .node({ gpus: 1, freeGpus: 0 })
        .node({ gpus: 1 })
        .node({ gpus: 1, online: false })
        .job({ gpus: 1, excludedNodes: ['node-2', 'node-3'] }),
      'waiting for 1 free GPU on one node (1 of 1 GPUs in use); node-2 is excluded (image_pull)',
      null,
    ],
  ];

  it.each(cases)('%s', (_, cluster, message, help) => {
    expect(explained(cluster)).toMatchObject({ message, remedy: help });
  });
});

it('who has the GPUs that a job waits for is named, with what is left of each where that is known', () => {
  const cluster = aCluster().node({ gpus: 4, freeGpus: 0 }).job({ gpus: 2 });
  const holders = ['llama-8b', 'mixtral', 'other'].map((name) => ({ name, etaMs: null }));
  const timed = { name: 'llama-8b', etaMs: 12 * 60_000 };
  expect(explained(cluster, [timed])?.message).toBe(
    'waiting for 2 free GPUs on one node (4 of 4 GPUs in use: llama-8b, ~12 min left)',
  );
  expect(explained(cluster, holders)?.message).toContain('in use: llama-8b; mixtral; and 1 more)');
});

it('tasks that the store does not know are named with what ends them', () => {
  const cluster = aCluster().node({ gpus: 2 }).job({ gpus: 2 });
  const obstacles = {
    silent: [],
    drained: [],
    excluded: [],
    orphaned: [{ node: nodeNameOf('node-1'), gpus: 1 }],
  };
  const reason = { kind: 'no_gpus_free', have: 0, want: 1, used: 1, total: 2, obstacles } as const;
  expect(inWords(reason, cluster)).toEqual({
    kind: 'no_gpus_free',
    message:
      'waiting for 2 free GPUs on one node (1 of 2 GPUs in use); 1 GPU of node-1 held by tasks unknown to the store',
    remedy: '`muster node end-orphans node-1` kills the tasks there that the store does not know',
  });
});
