import { expect, test } from 'vitest';
import { type Condition, conditionActions, conditionEnds, conditionSeverities } from '../conditions.ts';
import {
  bareGpu,
  emptyInventory,
  gpuSourceNames,
  type NodeInventory,
  profilingSourceNames,
} from '../hardware.ts';
import type { JobId } from '../ids.ts';
import { nodeStates } from '../states.ts';
import type { NodeTask, NodeView } from '../views.ts';
import {
  conditionFromWire,
  conditionToWire,
  inventoryFromWire,
  inventoryToWire,
  nodeFromWire,
  nodeToWire,
} from './codec.ts';
import { agentHubService, musterService } from './service.ts';
import { asked, sent } from './wireFixture.ts';

const fullInventory: NodeInventory = {
  gpus: [
    {
      uuid: 'GPU-a',
      model: 'NVIDIA H100 80GB HBM3',
      memoryMb: 81_559,
      simulated: false,
      // The first of everything is 0, which is not unknown.
      index: 0,
      pciBusId: '00000000:1b:00.0',
      numaNode: 0,
      cpuAffinity: '0-31,64-95',
      serial: '123',
      mig: null,
    },
    {
      ...bareGpu('MIG-b'),
      simulated: true,
      mig: { parentUuid: 'GPU-b', profile: '1g.10gb', gpuInstanceId: 0, computeInstanceId: 0 },
    },
    bareGpu('GPU-c'),
  ],
  cpus: 64,
  memoryMb: 262_144,
  addresses: ['10.0.0.1'],
  labels: { rack: 'r1' },
  drivers: ['process'],
  gpuDriver: { source: 'nvml', profilingSource: 'gpm', driverVersion: '580.1', cudaVersion: '13.0' },
  links: [
    { from: 'GPU-a', to: 'GPU-b', kind: 'NV18' },
    { from: 'GPU-a', to: 'mlx5_0', kind: 'PIX' },
  ],
  nics: [
    {
      name: 'eth0',
      state: 'up',
      speedMbps: 100_000,
      addresses: ['10.0.0.1', 'fe80::1'],
      pciBusId: '00000000:2b:00.0',
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
      pciBusId: '00000000:3b:00.0',
      numaNode: 1,
    },
    {
      name: 'mlx5_1',
      port: 2,
      linkLayer: 'Ethernet',
      state: 'DOWN',
      rateGbps: null,
      nic: null,
      pciBusId: null,
      numaNode: null,
    },
  ],
  host: {
    hostname: 'a',
    os: 'Debian GNU/Linux 12',
    kernel: '6.1.0',
    cpuModel: 'CPU',
    sockets: 2,
    cores: 32,
    threads: 64,
    numaNodes: 2,
    fileSystems: [{ mountPoint: '/', device: '/dev/sda1', type: 'ext4', sizeBytes: 2 ** 45 }],
  },
  machine: {
    model: 'Example Inc. GPU Server',
    board: 'Example Inc. X1',
    bios: null,
    disks: [
      { model: 'Example NVMe', type: 'NVMe', sizeBytes: 2 ** 41 },
      { model: 'Example RAID', type: '', sizeBytes: null },
    ],
    memoryModules: [
      { sizeBytes: 2 ** 36, type: 'DDR5', clockMhz: 4_800, model: 'Example 123' },
      { sizeBytes: 2 ** 36, type: 'DDR5', clockMhz: null, model: '' },
    ],
  },
};
const condition: Condition = {
  kind: 'xid_79',
  gpuUuid: 'GPU-a',
  severity: 'critical',
  action: 'drain_node',
  message: 'GPU 0 has fallen off the bus',
  evidence: 'a line of the log',
  sinceMs: 1_700_000_000_000,
  lastSeenAtMs: 1_700_000_000_001,
  count: 3,
  clears: 'by_reboot',
  task: { jobId: 'job_0123456789ab' as JobId, attempt: 1, nodeRank: 0 },
};
const aNodeTask: NodeTask = {
  task: { jobId: 'job_0123456789ab' as JobId, attempt: 1, nodeRank: 0 },
  name: 'train',
  gpus: 2,
  cpus: 0.5,
  stopAtMs: 0,
  stopping: false,
};
const node: NodeView = {
  name: 'node-1',
  state: 'online',
  inventory: fullInventory,
  agentVersion: '1',
  joinedAtMs: 5,
  silentForMs: 0,
  gpuUses: [{ uuid: 'GPU-a', jobId: 'job_1', attempt: 2 }],
  cpusUsed: 0.5,
  memoryUsedMb: 7,
  conditions: [condition, { ...condition, kind: 'clock_skew', gpuUuid: null, task: null }],
  drained: true,
  drainedGpuUuids: ['GPU-a'],
  fencedInMs: 0,
  bandwidths: [{ peer: 'node-2', bytesPerS: 1.25e9, measuredAtMs: 1_700_000_000_002, backend: 'gloo' }],
  drain: { reason: 'new fans', sinceMs: 1, deadlineMs: 1_700_000_000_003 },
  tasks: [aNodeTask, { ...aNodeTask, stopAtMs: null, stopping: true }],
  orphans: [{ task: aNodeTask.task, name: 'old', gpuUuids: ['GPU-b'], frozen: true }],
};

const overTheWire = (view: NodeView) => nodeFromWire(sent(musterService.GetNode, nodeToWire(view)));

test('a node is the same on the other side; contact just now is not no contact, fenced by now not never', () => {
  for (const state of nodeStates) expect(overTheWire({ ...node, state })).toEqual({ ...node, state });
  const bare = {
    ...node,
    silentForMs: null,
    inventory: emptyInventory,
    conditions: [],
    drained: false,
    drainedGpuUuids: [],
    fencedInMs: null,
    bandwidths: [],
    drain: null,
    tasks: [],
    orphans: [],
  };
  expect(overTheWire(bare)).toEqual(bare);
  const unhurried = { ...node, drain: { reason: '', sinceMs: 1, deadlineMs: null } };
  expect(overTheWire(unhurried)).toEqual(unhurried);
});

test('a status is the same on the other side', () => {
  const status = { inventory: inventoryToWire(fullInventory), conditions: [conditionToWire(condition)] };
  const { status: read } = asked(agentHubService.Session, { status });
  expect(read?.inventory && inventoryFromWire(read.inventory)).toEqual(fullInventory);
  expect(read?.conditions.map(conditionFromWire)).toEqual([condition]);
});

test('every word has its own name on the wire', () => {
  const through = (fields: Partial<Condition>) => {
    const [read] = overTheWire({ ...node, conditions: [{ ...condition, ...fields }] }).conditions;
    return read;
  };
  for (const severity of conditionSeverities) expect(through({ severity })).toMatchObject({ severity });
  for (const action of conditionActions) expect(through({ action })).toMatchObject({ action });
  for (const clears of conditionEnds) expect(through({ clears })).toMatchObject({ clears });
  const gpuDriver = {
    source: 'none',
    profilingSource: null,
    driverVersion: null,
    cudaVersion: null,
  } as const;
  for (const source of gpuSourceNames) {
    const inventory = { ...emptyInventory, gpuDriver: { ...gpuDriver, source } };
    expect(overTheWire({ ...node, inventory }).inventory).toEqual(inventory);
  }
  for (const profilingSource of profilingSourceNames) {
    const inventory = { ...emptyInventory, gpuDriver: { ...gpuDriver, profilingSource } };
    expect(overTheWire({ ...node, inventory }).inventory).toEqual(inventory);
  }
});

test('a value that a newer peer sends becomes what claims least', () => {
  const wire = {
    ...conditionToWire(condition),

    severity: 'apocalyptic',
    action: 'reboot_node',
    clears: 'by_prayer',
    task: { jobId: '../../etc', attempt: 1 },
  };
  const { status } = asked(agentHubService.Session, { status: { conditions: [wire] } });
  expect(status?.conditions.map(conditionFromWire)).toEqual([
    { ...condition, severity: 'warning', action: 'note', clears: 'by_hand', task: null },
  ]);
  const nics = [{ ...inventoryToWire(fullInventory).nics?.[0], state: 'dormant' }];
  const gpuDriver = { source: 'rocm', profilingSource: 'rocprof' };
  const { hello } = asked(agentHubService.Session, { hello: { inventory: { nics, gpuDriver } } });
  expect(hello?.inventory && inventoryFromWire(hello.inventory)).toMatchObject({
    nics: [{ name: 'eth0', state: 'unknown' }],
    gpuDriver: { source: 'none', profilingSource: null },
  });
});

test('what an older peer does not send is unknown', () => {
  const older = { uuid: 'GPU-a', model: 'H100', memoryMb: 81_559, simulated: false };
  const { hello } = asked(agentHubService.Session, { hello: { inventory: { gpus: [older], cpus: 8 } } });
  const gpus = [{ ...bareGpu('GPU-a'), ...older }];
  expect(hello?.inventory && inventoryFromWire(hello.inventory)).toEqual({
    ...emptyInventory,
    gpus,
    cpus: 8,
  });
});
