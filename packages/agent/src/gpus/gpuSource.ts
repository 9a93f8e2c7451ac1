/**
 * Where the facts about this node's GPUs come from. Everything behind this interface may hang, lie or fall over:
 * `GpuReader` puts deadlines around it, and nobody else calls it.
 *
 * Every value can be absent; absent is null, never 0.
 */
import type { DeviceLink, Gpu, GpuDriver, GpuSourceName, ProfilingSourceName } from '@muster/common/hardware';
import type { TaskRef } from '@muster/common/ids';

/** What the GPUs of a node are; changes rarely. */
export interface GpuListing {
  /** Devices that can be scheduled: cards, and for a card in MIG mode its instances. Lost cards are not listed. */
  readonly gpus: readonly Gpu[];
  readonly driverVersion: string | null;
  /** `13.1`: the newest CUDA that the driver can do. */
  readonly cudaVersion: string | null;
  readonly links: readonly DeviceLink[];
  /** Cards that the driver counts or names but cannot use, one sentence each. */
  readonly problems: readonly GpuProblem[];
}

/** The listing of a node of whose GPUs nothing is known, or that has none. */
export const emptyListing: GpuListing = {
  gpus: [],
  driverVersion: null,
  cudaVersion: null,
  links: [],
  problems: [],
};

/** A card, or the whole driver, that does not answer as it should. */
export interface GpuProblem {
  readonly kind: /** The card fell off the bus, or needs a reset. */
    | 'lost'
    | 'reset_required'
    /** The library of one version, the kernel module of another. */
    | 'driver_mismatch'
    | 'driver_not_loaded'
    /** A container's or service's rules keep the agent from the devices. */
    | 'no_permission'
    /** The driver failed without a reason. */
    | 'unknown_error'
    /** No answer within the deadline. */
    | 'hung'
    /** The output was not understood: garbage, truncated, of an unknown shape. */
    | 'unreadable'
    /** In MIG mode and not divided yet: the card is there and well, but has nothing that could be scheduled. */
    | 'no_instances'
    /** Nothing is known of it: its driver shows no card while another one is lost. */
    | 'hidden';
  /** UUID of the card; null: unknown, or the node as a whole. */
  readonly gpuUuid: string | null;
  readonly pciBusId: string | null;
  /** One sentence for people. */
  readonly message: string;
  /** What was read. */
  readonly evidence: string;
}

/** A problem of the node as a whole. @param message one sentence */
export function nodeProblem(kind: GpuProblem['kind'], message: string, evidence: string): GpuProblem {
  return { kind, gpuUuid: null, pciBusId: null, message, evidence };
}

/** One reading of one device, at one moment. */
export interface GpuSample {
  readonly uuid: string;
  /** Percent, 0 to 100. null while MIG is on; memoryUtilization (of the memory interface), encoder and decoder too. */
  readonly utilization: number | null;
  readonly memoryUtilization: number | null;
  readonly encoderUtilization: number | null;
  readonly decoderUtilization: number | null;
  /** MiB. `memoryUsedMb` is without what the driver reserves, where that can be distinguished. */
  readonly memoryTotalMb: number | null;
  readonly memoryUsedMb: number | null;
  readonly memoryFreeMb: number | null;
  readonly memoryReservedMb: number | null;
  /** Degrees Celsius. */
  readonly temperature: number | null;
  readonly memoryTemperature: number | null;
  readonly powerWatts: number | null;
  readonly powerLimitWatts: number | null;
  /** Millijoules since the driver was loaded; starts over with it. */
  readonly energyMillijoules: number | null;
  readonly smClockMhz: number | null;
  readonly memoryClockMhz: number | null;
  /** Bits of nvmlClocksEventReasons: 0x8 hardware slowdown, 0x20 software thermal, 0x40 hardware thermal, 0x80 power brake. */
  readonly clockEventReasons: number | null;
  readonly pcieReplays: number | null;
  readonly nvlinkErrors: NvlinkErrors | null;
  readonly ecc: EccCounters | null;
  readonly rows: RowRemaps | null;
  readonly retiredPages: RetiredPages | null;
  /** Value of nvml field 230: 0 none, 1 GPU reset, 2 node reboot, 3 drain P2P, 4 drain and reset, 5 recover IMEX domain. */
  readonly recoveryAction: number | null;
  readonly activity: GpuActivity | null;
  /** null: cannot be determined. */
  readonly processes: readonly GpuProcess[] | null;
}

/** Counters since the driver was loaded, over all links of the GPU. */
export interface NvlinkErrors {
  readonly replay: number | null;
  readonly recovery: number | null;
  readonly crc: number | null;
}

/** Volatile: since the driver was loaded. Aggregate: of the card's life. */
export interface EccCounters {
  readonly correctedVolatile: number | null;
  readonly uncorrectedVolatile: number | null;
  readonly correctedAggregate: number | null;
  readonly uncorrectedAggregate: number | null;
  /** The card's own verdict that its SRAM has to be replaced. */
  readonly sramThresholdExceeded: boolean | null;
}

/** Ampere and newer. */
export interface RowRemaps {
  readonly correctable: number | null;
  readonly uncorrectable: number | null;
  /** Takes effect with the next reset. */
  readonly pending: boolean | null;
  readonly failed: boolean | null;
}

/** Before Ampere. */
export interface RetiredPages {
  readonly singleBit: number | null;
  readonly doubleBit: number | null;
  readonly pending: boolean | null;
}

/** From DCGM or GPM. Ratios, 0 to 1; rates in bytes per second. */
export interface GpuActivity {
  readonly graphicsActive: number | null;
  readonly smActive: number | null;
  readonly smOccupancy: number | null;
  readonly tensorActive: number | null;
  readonly dramActive: number | null;
  readonly fp64Active: number | null;
  readonly fp32Active: number | null;
  readonly fp16Active: number | null;
  readonly pcieTxBytes: number | null;
  readonly pcieRxBytes: number | null;
  readonly nvlinkTxBytes: number | null;
  readonly nvlinkRxBytes: number | null;
}

export interface GpuProcess {
  /** In the pid namespace of the host. */
  readonly pid: number;
  readonly memoryMb: number | null;
}

export interface GpuSampling {
  readonly samples: readonly GpuSample[];
  readonly problems: readonly GpuProblem[];
}

/** An Xid that the driver itself announced. */
export interface XidEvent {
  readonly gpuUuid: string;
  readonly xid: number;
}

export interface GpuSource {
  readonly name: GpuSourceName;
  /** @throws {Error} one sentence: the source as a whole failed */
  list(): Promise<GpuListing>;
  /** Of the devices last listed. @throws {Error} one sentence: the source as a whole failed */
  sample(): Promise<GpuSampling>;
  /** Xids as they come; null for sources that have no events. */
  readonly onXid: ((listener: (event: XidEvent) => void) => void) | null;
  /**
   * Resolves when nothing of the source runs any longer: a reader that hangs in the kernel is not gone by being killed, and
   * no second one may be started behind it.
   */
  close(): Promise<void>;
}

/** Profiling values beside a source that has none. */
export interface ProfilingSource {
  readonly name: ProfilingSourceName;
  /** By UUID of the device. @throws {Error} one sentence */
  sample(): Promise<ReadonlyMap<string, GpuActivity>>;
  close(): Promise<void>;
}

/** A sample in which nothing was read. */
export function emptySample(uuid: string): GpuSample {
  return {
    uuid,
    utilization: null,
    memoryUtilization: null,
    encoderUtilization: null,
    decoderUtilization: null,
    memoryTotalMb: null,
    memoryUsedMb: null,
    memoryFreeMb: null,
    memoryReservedMb: null,
    temperature: null,
    memoryTemperature: null,
    powerWatts: null,
    powerLimitWatts: null,
    energyMillijoules: null,
    smClockMhz: null,
    memoryClockMhz: null,
    clockEventReasons: null,
    pcieReplays: null,
    nvlinkErrors: null,
    ecc: null,
    rows: null,
    retiredPages: null,
    recoveryAction: null,
    activity: null,
    processes: null,
  };
}

/** Activity of which nothing was read. */
export const emptyActivity: GpuActivity = {
  graphicsActive: null,
  smActive: null,
  smOccupancy: null,
  tensorActive: null,
  dramActive: null,
  fp64Active: null,
  fp32Active: null,
  fp16Active: null,
  pcieTxBytes: null,
  pcieRxBytes: null,
  nvlinkTxBytes: null,
  nvlinkRxBytes: null,
};

/** A group of values, such as ECC counters: null where none of them could be read. */
export function unlessAllAbsent<T extends object>(values: T): T | null {
  return Object.values(values).some((value) => value !== null) ? values : null;
}

/** What the sampler hands on after each reading: to the Prometheus page, the conditions and the telemetry upload. */
export interface GpuObservation {
  readonly gpus: readonly Gpu[];
  readonly gpuDriver: GpuDriver;
  /** Newest of each GPU, by UUID; a GPU that could not be read this time has none. */
  readonly samples: ReadonlyMap<string, GpuSample>;
  readonly problems: readonly GpuProblem[];
  /** Which task of this node holds each GPU, by UUID. */
  readonly holders: ReadonlyMap<string, TaskRef>;
  /** Wall clock of the reading; 0: there was none yet. */
  readonly atMs: number;
}
