import { stripVTControlCharacters } from 'node:util';
import { MusterError } from '@muster/common/errors';
import type { DeviceLink, Gpu } from '@muster/common/hardware';
import type { NodeView } from '@muster/common/views';
import { expect, test } from 'vitest';
import { exitCodes } from '../exitCodes.ts';
import { aCluster, aCondition, aGpu, aNode, submittedAtMs, wire } from '../testing/fakeCoordinator.ts';
import { run } from '../testing/testContext.ts';

function withGpus(gpus: readonly Gpu[], given: Partial<NodeView> = {}): NodeView {
  return aNode({ ...given, inventory: { ...aNode().inventory, gpus, ...given.inventory } });
}

const diskFull = aCondition({
  kind: 'disk_full',
  gpuUuid: null,
  severity: 'warning',
  action: 'note',
  message: 'The disk of /data is 97 % full.',
  evidence: '/data: 1.0 GiB of 32 GiB free',
  clears: 'when_gone',
});
const busy = withGpus([aGpu(0), aGpu(1), aGpu(2)], {
  gpuUses: [{ uuid: 'GPU-1', jobId: 'job_aaaaaaaaaaaa', attempt: 1 }],
  cpusUsed: 4,
  memoryUsedMb: 1_024,
  conditions: [diskFull, aCondition()],
  drainedGpuUuids: ['GPU-0'],
});
const simulated = withGpus([aGpu(0, { model: '', memoryMb: null, simulated: true })], {
  name: 'node-2',
  state: 'silent',
  silentForMs: 90_000,
});
const drained = aNode({
  name: 'node-3',
  drained: true,
  conditions: [aCondition({ kind: 'clock_skew', gpuUuid: null, action: 'drain_node' })],
});
const GetCluster = () => aCluster();
const list = { GetCluster, ListNodes: () => ({ nodes: [busy, simulated, drained].map(wire.node) }) };
const clock = /\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/g;

function widest(text: string): number {
  return Math.max(
    ...stripVTControlCharacters(text)
      .split('\n')
      .map((line) => line.length),
  );
}

// ---- The list

test('nodes shows what is used of what there is, what is drained, and simulated GPUs as such', async () => {
  const { stdout } = await run(['nodes'], list);
  expect(stdout).toBe(
    [
      'NAME    STATE                  GPUS                 CPUS        MEMORY  JOBS              CONDITIONS',
      'node-1  online                 1/3 H100, 1 drained   4/8  1 GiB/64 GiB  job_aaaaaaaaaaaa  xid_79 (drained), disk_full',
      'node-2  silent for 1 min 30 s  0/1 simulated         0/8      0/64 GiB',
      'node-3  online, drained        -                     0/8      0/64 GiB                    clock_skew (drained)',
      '',
    ].join('\n'),
  );
});

test('a terminal of 80 columns holds the list, the worst in red', async () => {
  const { stdout } = await run(['nodes'], list, { columns: 80 });
  expect(widest(stdout)).toBeLessThanOrEqual(80);
  expect(stdout).toContain('\x1b[31mxid_79 ');
});

test('one kind on many GPUs is one word, and more than two kinds are counted', async () => {
  const same = [0, 1, 2].map((index) => aCondition({ gpuUuid: `GPU-${index}` }));
  const others = ['b', 'c'].map((kind) => aCondition({ kind, severity: 'info', action: 'note' }));
  const node = aNode({ conditions: [...others, diskFull, ...same] });
  const { stdout } = await run(['nodes'], { GetCluster, ListNodes: () => ({ nodes: [wire.node(node)] }) });
  expect(stdout).toContain('xid_79 ×3 (drained), disk_full, 2 more');
});

test('no nodes is no error', async () => {
  const { exitCode, stderr } = await run(['nodes'], { GetCluster, ListNodes: () => ({ nodes: [] }) });
  expect(exitCode).toBe(exitCodes.ok);
  expect(stderr).toContain('token create');
});

test('a silent node shows when its tasks are fenced', async () => {
  const silent = { state: 'silent', silentForMs: 20_000 } as const;
  const nodes = [
    aNode({ ...silent, fencedInMs: 50_000 }),
    aNode({ ...silent, name: 'node-2', fencedInMs: 0 }),
    aNode({ ...silent, name: 'node-3' }),
  ];
  const { stdout } = await run(['nodes'], { GetCluster, ListNodes: () => ({ nodes: nodes.map(wire.node) }) });
  expect(stdout).toMatch(
    /silent for 20 s, fenced in 50 s .*\n.*silent for 20 s, fenced {2}.*\n.*silent for 20 s {2}/,
  );
});

test('what keeps the whole cluster from going on is reported beside the list', async () => {
  const cluster = aCluster({
    pausedBecause: '3 of 5 nodes became silent together',
    maintenanceMs: 5_400_000,
    clockProblem: 'clock_stepped: the clock is 1d ahead; if it is right: muster clock accept',
  });
  const answers = { ...list, GetCluster: () => cluster };
  const { stderr } = await run(['nodes'], answers);
  expect(stderr).toBe(
    'clock_stepped: the clock is 1d ahead; if it is right: muster clock accept.\n' +
      'Nothing is started or rescheduled: 3 of 5 nodes became silent together.\n' +
      'Maintenance for 1 h 30 min more; `muster maintenance --end` ends it.\n',
  );
  expect((await run(['nodes'], list)).stderr).toBe('');
});

// ---- One node

const bigNode = aNode({
  name: 'gpu-box',
  inventory: {
    ...aNode().inventory,
    labels: { rack: 'r1' },
    gpus: [
      aGpu(1, { pciBusId: '00000000:3b:00.0', numaNode: 1, cpuAffinity: '32-63' }),
      aGpu(0, { pciBusId: '00000000:1b:00.0', numaNode: 0, cpuAffinity: '0-31' }),
    ],
    gpuDriver: {
      source: 'nvml',
      profilingSource: 'dcgm-exporter',
      driverVersion: '580.10.01',
      cudaVersion: '13.0',
    },
    links: [
      { from: 'GPU-0', to: 'GPU-1', kind: 'NV18' },
      { from: 'GPU-0', to: 'mlx5_0', kind: 'PIX' },
      { from: 'GPU-1', to: 'mlx5_0', kind: 'SYS' },
    ],
    nics: [
      {
        name: 'ib0',
        state: 'up',
        speedMbps: 400_000,
        addresses: ['10.0.0.1'],
        pciBusId: null,
        numaNode: 0,
        isVirtual: false,
      },
      {
        name: 'docker0',
        state: 'down',
        speedMbps: null,
        addresses: [],
        pciBusId: null,
        numaNode: null,
        isVirtual: true,
      },
    ],
    rdmaDevices: [
      {
        name: 'mlx5_0',
        port: 1,
        linkLayer: 'InfiniBand',
        state: 'ACTIVE',
        rateGbps: 400,
        nic: 'ib0',
        pciBusId: null,
        numaNode: 0,
      },
    ],
    host: {
      hostname: 'gpu-box.lab',
      os: 'Debian GNU/Linux 13',
      kernel: '6.12.1',
      cpuModel: 'Example CPU 9000',
      sockets: 2,
      cores: 64,
      threads: 128,
      numaNodes: 2,
      fileSystems: [{ mountPoint: '/', device: '/dev/nvme0n1p2', type: 'ext4', sizeBytes: 1024 ** 4 }],
    },
  },
  gpuUses: [{ uuid: 'GPU-0', jobId: 'job_aaaaaaaaaaaa', attempt: 1 }],
  conditions: [aCondition({ gpuUuid: 'GPU-1', count: 3 }), diskFull],
  drainedGpuUuids: ['GPU-1'],
});

test('node shows the machine, what is wrong with it, its GPUs and how they are connected', async () => {
  const { stdout } = await run(['node', 'gpu-box'], { GetNode: () => wire.node(bigNode) });
  expect(stdout.replaceAll(clock, 'TIME')).toBe(
    [
      'gpu-box',
      '',
      'State       online',
      'Joined      1 min ago',
      'Agent       0.1.0',
      'Host        gpu-box.lab',
      'Addresses   127.0.0.1',
      'OS          Debian GNU/Linux 13',
      'Kernel      6.12.1',
      'CPU         2 × Example CPU 9000, 64 cores, 128 threads, 2 NUMA nodes',
      'CPUs        0/8 used',
      'Memory      0/64 GiB used',
      'GPU source  NVML',
      'Driver      580.10.01, CUDA 13.0',
      'Activity    SM and tensor activity from dcgm-exporter',
      'Network     ib0  up  400 Gbit/s  10.0.0.1  NUMA 0',
      '            and 1 virtual',
      'RDMA        mlx5_0:1  InfiniBand  ACTIVE  400 Gbit/s  ib0  NUMA 0',
      'Disks       /  ext4  1 TiB  /dev/nvme0n1p2',
      'Runs        process',
      'Labels      rack=r1',
      '',
      'Conditions',
      'critical  xid_79  GPU 1  since TIME (1 min ago), seen 3 times, last 1 min ago',
      '  GPU 0 has fallen off the bus.',
      '  Read: NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen off the bus.',
      '  No new work on this GPU. Cleared by hand, once fixed: muster node clear gpu-box xid_79 --gpu 1',
      'warning  disk_full  the node  since TIME (1 min ago)',
      '  The disk of /data is 97 % full.',
      '  Read: /data: 1.0 GiB of 32 GiB free',
      '  For information; work continues. Ends automatically once the readings are normal.',
      '',
      'GPU  MODEL  MEMORY  STATE            JOB               PCI               NUMA  UUID',
      '0    H100   80 GiB  in use           job_aaaaaaaaaaaa  00000000:1b:00.0     0  GPU-0',
      '1    H100   80 GiB  drained: xid_79                    00000000:3b:00.0     1  GPU-1',
      '',
      'Topology',
      '      GPU0  GPU1  mlx5_0  CPUS   NUMA',
      'GPU0  X     NV18  PIX     0-31   0',
      'GPU1  NV18  X     SYS     32-63  1',
      'NV#: # NVLinks · PIX: one PCIe switch · SYS: another NUMA node',
      '',
    ].join('\n'),
  );
});

test('-o json has everything', async () => {
  const { stdout } = await run(['node', 'gpu-box', '-o', 'json'], { GetNode: () => wire.node(bigNode) });
  expect(JSON.parse(stdout)).toEqual(bigNode);
});

test('simulated GPUs are called so, and what an old agent does not tell is left out', async () => {
  const node = withGpus([aGpu(0, { simulated: true })], {
    inventory: { ...aNode().inventory, gpus: [aGpu(0, { simulated: true })] },
  });
  const asSource = {
    ...node,
    inventory: {
      ...node.inventory,
      gpuDriver: { ...node.inventory.gpuDriver, source: 'simulated' as const },
    },
  };
  const { stdout } = await run(['node', 'node-1'], { GetNode: () => wire.node(asSource) });
  expect(stdout).toContain('GPU source  simulated GPUs');
  expect(stdout).toContain('0    H100 (simulated)  80 GiB  free');
  expect(stdout).not.toMatch(/Kernel|Driver|Network|Topology|Conditions/);
});

test('MIG instances stand below their card', async () => {
  const instance = (id: number) =>
    aGpu(0, {
      uuid: `MIG-${id}`,
      model: 'NVIDIA A100',
      memoryMb: 9_728,
      mig: { parentUuid: 'GPU-0', profile: '1g.10gb', gpuInstanceId: id, computeInstanceId: 0 },
    });
  const node = withGpus([aGpu(1), instance(9), instance(7)], {
    gpuUses: [{ uuid: 'MIG-9', jobId: 'job_aaaaaaaaaaaa', attempt: 1 }],
  });
  const { stdout } = await run(['node', 'node-1'], { GetNode: () => wire.node(node) });
  expect(stdout.slice(stdout.indexOf('GPU  '))).toBe(
    [
      'GPU        MODEL   MEMORY  STATE   JOB               PCI  NUMA  UUID',
      '0          A100            MIG                                  GPU-0',
      '  1g.10gb         9.5 GiB  free                                 MIG-7',
      '  1g.10gb         9.5 GiB  in use  job_aaaaaaaaaaaa             MIG-9',
      '1          H100    80 GiB  free                                 GPU-1',
      '',
    ].join('\n'),
  );
});

test('a narrow terminal gets everything but the matrix, and a line about that', async () => {
  const gpus = Array.from({ length: 16 }, (_, index) => aGpu(index, { numaNode: 0, cpuAffinity: '0-63' }));
  const links = gpus.flatMap((from, index) =>
    gpus.slice(index + 1).map((to): DeviceLink => ({ from: from.uuid, to: to.uuid, kind: 'NV18' })),
  );
  const node = aNode({ inventory: { ...aNode().inventory, gpus, links }, conditions: [aCondition()] });
  const answers = { GetNode: () => wire.node(node) };
  const { stdout } = await run(['node', 'node-1'], answers, { columns: 80 });
  const plain = stripVTControlCharacters(stdout);
  expect(plain).toMatch(/\nTopology {2}needs \d+ columns to be shown; -o json has it\n/);
  expect(widest(plain.slice(plain.indexOf('\nGPU ')))).toBeLessThanOrEqual(80);
  const wide = await run(['node', 'node-1'], answers, { columns: 200 });
  expect(wide.stdout).toContain('NV18');
});

test('evidence from a log cannot move the cursor', async () => {
  const node = aNode({ conditions: [aCondition({ evidence: 'a\x1b[2Jb\nc', message: '\x07' })] });
  const { stdout } = await run(['node', 'node-1'], { GetNode: () => wire.node(node) });
  expect(stdout).toContain('  Read: a\\u001b[2Jb c\n');
  expect(stdout).toContain('  \\u0007\n');
});

// ---- Clearing a condition

function clearing(node: NodeView) {
  return {
    GetNode: () => wire.node(node),
    ClearCondition: () => wire.node({ ...node, conditions: [] }),
  };
}
const twice = { ...busy, conditions: [aCondition(), aCondition({ gpuUuid: 'GPU-2' }), diskFull] };

test.each([
  [['node-1', 'xid_79', '--gpu', '2'], 'GPU-2', 'GPU 2 of node-1 is cleared'],
  [['node-1', 'xid_79', '--gpu', 'GPU-0'], 'GPU-0', 'GPU 0 of node-1 is cleared'],
  [['node-1', 'disk_full'], null, 'node-1 is cleared; it returns if the next reading still shows it'],
])('node clear %j ends that one', async (argv, gpuUuid, done) => {
  const { exitCode, stdout, requests } = await run(['node', 'clear', ...argv], clearing(twice));
  const { request } = requests.at(-1) ?? {};
  expect(request).toMatchObject({ node: 'node-1', kind: argv[1], ...(gpuUuid === null ? {} : { gpuUuid }) });
  expect(gpuUuid === null).toBe(!Object.hasOwn(request as object, 'gpuUuid'));
  expect({ exitCode, stdout }).toEqual({
    exitCode: exitCodes.ok,
    stdout: `${argv[1]} of ${done}; nothing else is wrong with it\n`,
  });
});

test('a condition on one GPU alone needs no --gpu, and flags may stand before the word', async () => {
  const { requests } = await run(['node', '-o', 'json', 'clear', 'node-1', 'xid_79'], clearing(busy));
  expect(requests.at(-1)).toMatchObject({ request: { gpuUuid: 'GPU-0' } });
});

test.each([
  [
    ['node-1', 'xid_79'],
    'xid_79 is on several GPUs of node-1: GPU 0 of node-1, GPU 2 of node-1\nName one with --gpu',
  ],
  [['node-1', 'xid_79', '--gpu', '1'], 'xid_79 of node-1 is not on GPU 1\nIt is on: GPU 0 of node-1'],
  [['node-1', 'xid_97'], 'node-1 has no condition "xid_97"\nDid you mean xid_79?\nIt has: xid_79, disk_full'],
  [['node-1'], "missing required argument 'condition'"],
])('node clear %j says what it lacks', async (argv, message) => {
  const { exitCode, stderr, requests } = await run(['node', 'clear', ...argv], clearing(twice));
  expect(stderr).toContain(`muster: ${message}`);
  expect(exitCode).toBe(exitCodes.usage);
  expect(requests.filter(({ method }) => method === 'ClearCondition')).toEqual([]);
});

test('a node without conditions, and a condition that still holds, are refused in words', async () => {
  expect(await run(['node', 'clear', 'node-1', 'xid_79'], clearing(aNode()))).toMatchObject({
    exitCode: exitCodes.notFound,
    stderr: 'muster: node-1 has no conditions, so none named "xid_79"\n',
  });
  const holds = () => {
    throw new MusterError('failed_precondition', 'disk_full still holds on node-1: free some space first');
  };
  const answers = { ...clearing(twice), ClearCondition: holds };
  expect(await run(['node', 'clear', 'node-1', 'disk_full'], answers)).toMatchObject({
    exitCode: exitCodes.refused,
    stderr: 'muster: disk_full still holds on node-1: free some space first\n',
  });
});

// ---- Paths, silence and death

test('node shows what preflights measured, the slowest path first', async () => {
  const path = { measuredAtMs: submittedAtMs, backend: 'gloo' } as const;
  const bandwidths = [
    { ...path, peer: 'node-2', bytesPerS: 11_625_000_000 },
    { ...path, peer: 'node-3', bytesPerS: 11_750_000 },
  ];
  const { stdout } = await run(['node', 'node-1'], { GetNode: () => wire.node(aNode({ bandwidths })) });
  expect(stdout).toMatch(/Paths +node-3 {2}94 Mbit\/s {2}gloo {2}1 min ago\n +node-2 {2}93 Gbit\/s/);
});

test('node says how to declare a silent node dead', async () => {
  const GetNode = () => wire.node(aNode({ state: 'silent', silentForMs: 20_000, fencedInMs: 50_000 }));
  const { stdout } = await run(['node', 'node-1'], { GetNode });
  expect(stdout).toMatch(/State +silent for 20 s, fenced in 50 s\n.*muster node confirm-dead node-1\n/);
  expect((await run(['node', 'node-1'], { GetNode: () => wire.node(aNode()) })).stdout).not.toContain('dead');
});

test('node confirm-dead tells the coordinator, and what it answers', async () => {
  const ConfirmDead = () => wire.node(aNode({ state: 'silent' }));
  const { stdout, requests } = await run(['node', 'confirm-dead', 'node-1'], { ConfirmDead });
  expect(stdout).toBe('node-1 is confirmed dead: its tasks have ended as node_lost.\n');
  expect(requests).toEqual([{ method: 'ConfirmDead', request: { node: 'node-1' } }]);
  const json = await run(['node', 'confirm-dead', 'node-1', '-o', 'json'], { ConfirmDead });
  expect(JSON.parse(json.stdout)).toMatchObject({ name: 'node-1', state: 'silent' });
});

test('node confirm-dead of a node that answers says what the coordinator says', async () => {
  const ConfirmDead = () => {
    throw new MusterError('failed_precondition', 'node-1 answers: it is not dead');
  };
  const { exitCode, stderr } = await run(['node', 'confirm-dead', 'node-1'], { ConfirmDead });
  expect(exitCode).toBe(exitCodes.refused);
  expect(stderr).toContain('node-1 answers: it is not dead');
});
