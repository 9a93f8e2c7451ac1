/** Everything a page is made of, with values that differ from each other; a test changes what it is about. */
import type { Condition } from '@muster/common/conditions';
import { bareGpu, type Gpu } from '@muster/common/hardware';
import type { JobId, TaskRef } from '@muster/common/ids';
import { emptyActivity, emptySample, type GpuObservation, type GpuSample } from '../../gpus/gpuSource.ts';
import type { HostSample } from '../../host/hostMetrics.ts';
import type { AgentFigures } from '../agentPage.ts';
import type { GpuPageParts } from '../gpuPage.ts';
import { GpuReads } from '../gpuReads.ts';

export const aTask: TaskRef = { jobId: 'job_0123456789ab' as JobId, attempt: 2, nodeRank: 1 };

export function aCard(index: number, change: Partial<Gpu> = {}): Gpu {
  return {
    ...bareGpu(`GPU-10000000-aaaa-bbbb-cccc-00000000000${index}`),
    model: 'Some GPU 80GB',
    index,
    pciBusId: `00000000:${index}b:00.0`,
    ...change,
  };
}

/** An instance of card 0. */
export function anInstance(gpuInstanceId: number, computeInstanceId = 0): Gpu {
  return aCard(0, {
    uuid: `MIG-10000000-aaaa-bbbb-cccc-0000000000${gpuInstanceId}${computeInstanceId}`,
    mig: { parentUuid: aCard(0).uuid, profile: '1g.10gb', gpuInstanceId, computeInstanceId },
  });
}

export function aSample({ uuid }: Gpu, change: Partial<GpuSample> = {}): GpuSample {
  return {
    ...emptySample(uuid),
    utilization: 97,
    memoryUtilization: 41,
    encoderUtilization: 0,
    decoderUtilization: 1,
    memoryTotalMb: 81_559,
    memoryUsedMb: 74_211,
    memoryFreeMb: 6_700,
    memoryReservedMb: 648,
    temperature: 61,
    memoryTemperature: 78,
    powerWatts: 612.5,
    powerLimitWatts: 700,
    energyMillijoules: 98_765_432_100,
    smClockMhz: 1_980,
    memoryClockMhz: 2_619,
    clockEventReasons: 4,
    pcieReplays: 3,
    nvlinkErrors: { replay: 5, recovery: 6, crc: 7 },
    ecc: {
      correctedVolatile: 8,
      uncorrectedVolatile: 9,
      correctedAggregate: 10,
      uncorrectedAggregate: 11,
      sramThresholdExceeded: false,
    },
    rows: { correctable: 12, uncorrectable: 13, pending: true, failed: false },
    retiredPages: { singleBit: 14, doubleBit: 15, pending: false },
    recoveryAction: 1,
    activity: {
      ...emptyActivity,
      graphicsActive: 0.998,
      smActive: 0.912,
      smOccupancy: 0.25,
      tensorActive: 0.4335,
      dramActive: 0.305,
      fp64Active: 0,
      fp32Active: 0.125,
      fp16Active: 0.0625,
      pcieTxBytes: 589_824,
      pcieRxBytes: 1_048_576,
      nvlinkTxBytes: 200_000_000_000,
      nvlinkRxBytes: 200_000_000_001,
    },
    ...change,
  };
}

export function anObservation(
  gpus: readonly Gpu[],
  {
    samples = gpus.map((gpu) => aSample(gpu)),
    ...change
  }: Partial<Omit<GpuObservation, 'samples'>> & { readonly samples?: readonly GpuSample[] } = {},
): GpuObservation {
  return {
    gpus,
    gpuDriver: {
      source: 'nvml',
      profilingSource: 'dcgm-exporter',
      driverVersion: '580.1.2',
      cudaVersion: '13.0',
    },
    samples: new Map(samples.map((sample) => [sample.uuid, sample])),
    problems: [],
    holders: new Map(),
    atMs: 1_700_000_000_500,
    ...change,
  };
}

export function gpuParts(observation: GpuObservation, change: Partial<GpuPageParts> = {}): GpuPageParts {
  return { observation, nodeName: 'node-1', hostnameLabel: 'Hostname', lastXids: new Map(), ...change };
}

export const someHost: HostSample = {
  monotonicMs: 1_000,
  cpu: { user: 1_000.25, nice: 0, system: 200.5, idle: 90_000.75, iowait: 3, irq: 0, softirq: 4, steal: 0 },
  memoryTotalBytes: 137_438_953_472,
  memoryAvailableBytes: 68_719_476_736,
  load: { load1: 1.5, load5: 1.25, load15: 0.75 },
  disks: [{ name: 'nvme0n1', readBytes: 1_000, writtenBytes: 2_000 }],
  nics: [
    { name: 'docker0', receivedBytes: 30, transmittedBytes: 40, isHardware: false },
    { name: 'eth0', receivedBytes: 3_000, transmittedBytes: 4_000, isHardware: true },
  ],
  fileSystems: [
    {
      path: '/data',
      space: { sizeBytes: 5_000, availableBytes: 2_500, files: 200, availableFiles: 100 },
      isAnswering: true,
    },
  ],
};

export const aCondition: Condition = {
  kind: 'xid_79',
  gpuUuid: aCard(0).uuid,
  severity: 'critical',
  action: 'drain_node',
  message: 'The GPU has fallen off the bus.',
  evidence: 'NVRM: Xid 79',
  sinceMs: 1_700_000_000_000,
  lastSeenAtMs: 1_700_000_000_000,
  count: 1,
  clears: 'by_reboot',
  task: null,
};

export function someAgent(change: Partial<AgentFigures> = {}): AgentFigures {
  const gpuReads = new GpuReads();
  gpuReads.took('nvml', 0.004);
  gpuReads.took('nvml', 0.3);
  gpuReads.took('nvml', 60);
  gpuReads.failed('dcgm-exporter', 'hung');
  return {
    version: '0.1.0',
    startedAtMs: 1_700_000_000_000,
    cpuSeconds: 12.5,
    residentBytes: 80_000_000,
    tasks: new Map([
      ['running', 2],
      ['frozen', 0],
    ]),
    connected: true,
    heartbeatAgeSeconds: 1.5,
    gpuReads,
    conditions: [aCondition],
    ...change,
  };
}
