/**
 * GPUs that are not there, for trying Muster out: labelled as simulated in the inventory, and with them every sample.
 * A sample is a function of the time, the number of the GPU, whether a task holds it and what it is to do meanwhile
 * (`readSimulatedStates`); only the energy adds up.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Gpu, simulatedUuidPrefix } from '@muster/common/hardware';
import { emptySample, type GpuActivity, type GpuSample, type GpuSource } from './gpuSource.ts';

export interface SimulatedOptions {
  readonly nodeName: string;
  readonly count: number;
  /** Milliseconds on a clock that does not go back. */
  readonly nowMs: () => number;
  /** UUIDs of the GPUs that tasks hold now; these are busy. Default: none. */
  readonly holders?: () => ReadonlySet<string>;
  /** What they do while they are held, by index; one that is not named is busy. Default: all are. */
  readonly states?: () => ReadonlyMap<number, SimulatedState>;
}

export const simulatedStates = ['busy', 'pinned', 'idle'] as const;
/**
 * `pinned`: full utilisation at the power of a card that does next to nothing, as kernels show that wait for other ranks.
 * `idle`: memory is held, and nothing runs.
 */
export type SimulatedState = (typeof simulatedStates)[number];

const memoryMb = 81_920;
const reservedMb = 512;
const powerLimitWatts = 700;
/** Training goes in steps: how long the simulated ones take. */
const stepMs = 30_000;
const pcieBytesPerSecond = 4e9;
const nvlinkBytesPerSecond = 120e9;

export function createSimulatedSource(options: SimulatedOptions): GpuSource {
  const { nodeName, count, nowMs, holders, states } = options;
  const gpus = Array.from({ length: count }, (_, index) => simulatedGpu(nodeName, index));
  const meters = gpus.map(() => new EnergyMeter(nowMs()));
  return {
    name: 'simulated',
    onXid: null,
    list: async () => ({ gpus, driverVersion: null, cudaVersion: null, links: [], problems: [] }),
    sample: async () => {
      const now = nowMs();
      const held = holders?.() ?? new Set<string>();
      const wanted = states?.() ?? new Map<number, SimulatedState>();
      const samples = gpus.map(({ uuid }, index) => {
        const state = wanted.get(index) ?? 'busy';
        const sample = held.has(uuid) ? heldSample(uuid, index, now, state) : idleSample(uuid, index);
        return { ...sample, energyMillijoules: meters[index]?.add(sample.powerWatts ?? 0, now) ?? null };
      });
      return { samples, problems: [] };
    },
    close: async () => {},
  };
}

/** The name is as unmistakable as the flag: it also shows in the environment of tasks and in their logs. */
export function simulatedGpu(nodeName: string, index: number): Gpu {
  return {
    uuid: `${simulatedUuidPrefix}${nodeName}-${index}`,
    model: 'Simulated GPU',
    memoryMb: memoryMb,
    simulated: true,
    index,
    pciBusId: null,
    numaNode: null,
    cpuAffinity: null,
    serial: null,
    mig: null,
  };
}

function idleSample(uuid: string, index: number): GpuSample {
  return {
    ...healthySample(uuid),
    utilization: 0,
    memoryUtilization: 0,
    ...memory(0),
    temperature: 30 + (index % 4),
    memoryTemperature: 36 + (index % 4),
    powerWatts: 70 + (index % 8),
    smClockMhz: 345,
    memoryClockMhz: 2619,
    // Idle.
    clockEventReasons: 0x1,
    activity: activity(0),
  };
}

function heldSample(uuid: string, index: number, nowMs: number, state: SimulatedState): GpuSample {
  const busy = busySample(uuid, index, nowMs);
  const idle = idleSample(uuid, index);
  switch (state) {
    case 'busy':
      return busy;
    case 'idle':
      return { ...idle, ...memory(busy.memoryUsedMb ?? 0) };
    case 'pinned': {
      const spinning = { graphicsActive: 1, smActive: 0.03 };
      return {
        ...busy,
        utilization: 100,
        memoryUtilization: 0,
        powerWatts: (idle.powerWatts ?? 0) + 60,
        activity: { ...activity(0), ...spinning },
      };
    }
    default: {
      const never: never = state;
      return never;
    }
  }
}

/** Between 0 and 1 load swings with the steps; neighbours are a little out of step. */
function busySample(uuid: string, index: number, nowMs: number): GpuSample {
  const phase = (2 * Math.PI * nowMs) / stepMs + index / 4;
  const load = 0.93 + 0.05 * Math.sin(phase);
  return {
    ...healthySample(uuid),
    utilization: Math.round(100 * load),
    memoryUtilization: Math.round(60 * load),
    ...memory(Math.round(61_000 + 500 * (index % 8))),
    temperature: Math.round(52 + 10 * load + (index % 4)),
    memoryTemperature: Math.round(60 + 12 * load + (index % 4)),
    powerWatts: Math.round(6200 * load) / 10,
    smClockMhz: 1980,
    memoryClockMhz: 2619,
    clockEventReasons: 0,
    activity: activity(load),
  };
}

function healthySample(uuid: string): GpuSample {
  return {
    ...emptySample(uuid),
    encoderUtilization: 0,
    decoderUtilization: 0,
    powerLimitWatts: powerLimitWatts,
    pcieReplays: 0,
    nvlinkErrors: { replay: 0, recovery: 0, crc: 0 },
    ecc: {
      correctedVolatile: 0,
      uncorrectedVolatile: 0,
      correctedAggregate: 0,
      uncorrectedAggregate: 0,
      sramThresholdExceeded: false,
    },
    rows: { correctable: 0, uncorrectable: 0, pending: false, failed: false },
    recoveryAction: 0,
  };
}

function memory(
  usedMb: number,
): Pick<GpuSample, 'memoryTotalMb' | 'memoryUsedMb' | 'memoryFreeMb' | 'memoryReservedMb'> {
  return {
    memoryTotalMb: memoryMb,
    memoryUsedMb: usedMb,
    memoryFreeMb: memoryMb - reservedMb - usedMb,
    memoryReservedMb: reservedMb,
  };
}

/** In the proportions of training a transformer in mixed precision. */
function activity(load: number): GpuActivity {
  return {
    graphicsActive: load,
    smActive: 0.9 * load,
    smOccupancy: 0.35 * load,
    tensorActive: 0.45 * load,
    dramActive: 0.4 * load,
    fp64Active: 0,
    fp32Active: 0.12 * load,
    fp16Active: 0.05 * load,
    pcieTxBytes: pcieBytesPerSecond * load,
    pcieRxBytes: pcieBytesPerSecond * load,
    nvlinkTxBytes: nvlinkBytesPerSecond * load,
    nvlinkRxBytes: nvlinkBytesPerSecond * load,
  };
}

/** Adds up what is drawn between readings, since the source was made. */
class EnergyMeter {
  private lastMs: number;
  private millijoules = 0;

  constructor(startMs: number) {
    this.lastMs = startMs;
  }

  add(watts: number, nowMs: number): number {
    // A watt for a millisecond is a millijoule. A counter never runs backwards, whatever the clock does.
    this.millijoules += Math.max(0, Math.round(watts * (nowMs - this.lastMs)));
    this.lastMs = nowMs;
    return this.millijoules;
  }
}

// ---- What simulated GPUs are to do

/** In the data directory of an agent. */
const fileName = 'simulated-gpus';
/** As many as can be simulated. */
const gpusMax = 64;

/**
 * The file by which a test, or somebody who tries Muster out, makes simulated GPUs do what real ones do when a training
 * hangs. A line is a state for all GPUs, or the index of one and its state:
 *
 *     pinned
 *     1 idle
 *
 * @returns states by index; empty: there is no such file. A line that is not understood is ignored.
 */
export function readSimulatedStates(dataDir: string): ReadonlyMap<number, SimulatedState> {
  try {
    return statesIn(readFileSync(join(dataDir, fileName), 'utf8'));
  } catch {
    return new Map();
  }
}

function statesIn(text: string): ReadonlyMap<number, SimulatedState> {
  const states = new Map<number, SimulatedState>();
  for (const line of text.split('\n')) {
    const [, index, word] = /^(?:(\d{1,2}) )?([a-z]+)$/.exec(line.trim()) ?? [];
    const state = simulatedStates.find((each) => each === word);
    if (state === undefined) continue;
    if (index !== undefined) states.set(Number(index), state);
    else for (let gpu = 0; gpu < gpusMax; gpu += 1) states.set(gpu, state);
  }
  return states;
}
