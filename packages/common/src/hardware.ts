/** What a node has, as its agent reports it. Absent is null. */

/** A device that is scheduled: a card, or an instance of a card in MIG mode (the card itself is then not listed). */
export interface Gpu {
  readonly uuid: string;
  readonly model: string;
  /** MiB; null: unknown. */
  readonly memoryMb: number | null;
  /** Not real hardware; shown as such everywhere. */
  readonly simulated: boolean;
  /** The driver's number of the card. Changes with resets and reboots, so only for people. */
  readonly index: number | null;
  /** `00000000:1b:00.0`, lower case. */
  readonly pciBusId: string | null;
  readonly numaNode: number | null;
  /** CPUs near this GPU as a list, `0-31,64-95`. */
  readonly cpuAffinity: string | null;
  readonly serial: string | null;
  /** null: a whole card. */
  readonly mig: MigInstance | null;
}

/** A hardware partition of a card. */
export interface MigInstance {
  readonly parentUuid: string;
  /** `1g.10gb` */
  readonly profile: string;
  readonly gpuInstanceId: number;
  readonly computeInstanceId: number;
}

/** How two devices are connected, in the words of `nvidia-smi topo -m`. */
export interface DeviceLink {
  /** UUID of a card. */
  readonly from: string;
  /** UUID of another card, or name of a NIC or RDMA device. */
  readonly to: string;
  /** `NV1` … `NV18`, `PIX`, `PXB`, `PHB`, `NODE`, `SYS`. */
  readonly kind: string;
}

export const gpuSourceNames = ['nvml', 'nvidia-smi', 'simulated', 'none'] as const;
export type GpuSourceName = (typeof gpuSourceNames)[number];

export const profilingSourceNames = ['dcgm-exporter', 'dcgmi', 'gpm'] as const;
export type ProfilingSourceName = (typeof profilingSourceNames)[number];

/** Where the GPU facts of a node come from. */
export interface GpuDriver {
  readonly source: GpuSourceName;
  /** Of SM, tensor, DRAM, NVLink and PCIe activity; null: nobody tells. */
  readonly profilingSource: ProfilingSourceName | null;
  readonly driverVersion: string | null;
  /** `13.1` */
  readonly cudaVersion: string | null;
}

export interface Nic {
  readonly name: string;
  /** operstate of the kernel. */
  readonly state: 'up' | 'down' | 'unknown';
  readonly speedMbps: number | null;
  readonly addresses: readonly string[];
  readonly pciBusId: string | null;
  readonly numaNode: number | null;
  /** Bridges, tunnels, veth: no hardware behind them. */
  readonly isVirtual: boolean;
}

export interface RdmaDevice {
  /** `mlx5_0` */
  readonly name: string;
  readonly port: number;
  /** `InfiniBand` or `Ethernet`. */
  readonly linkLayer: string;
  /** `ACTIVE`, `INIT`, `DOWN` … */
  readonly state: string;
  readonly rateGbps: number | null;
  /** The network interface of the same port. */
  readonly nic: string | null;
  readonly pciBusId: string | null;
  readonly numaNode: number | null;
}

export interface FileSystem {
  readonly mountPoint: string;
  readonly device: string;
  readonly type: string;
  readonly sizeBytes: number;
}

export interface HostFacts {
  readonly hostname: string;
  /** `Debian GNU/Linux 12` */
  readonly os: string;
  readonly kernel: string;
  readonly cpuModel: string;
  readonly sockets: number;
  readonly cores: number;
  readonly threads: number;
  readonly numaNodes: number;
  readonly fileSystems: readonly FileSystem[];
}

/** What the firmware and the disks tell of themselves; null and empty: they do not, or not to the agent's user. */
export interface MachineFacts {
  /** `Supermicro SYS-821GE-TNHR` */
  readonly model: string | null;
  readonly board: string | null;
  /** Maker, version and date. */
  readonly bios: string | null;
  readonly disks: readonly {
    readonly model: string;
    /** `NVMe`, `SSD`, `HD`; empty: unknown. */
    readonly type: string;
    readonly sizeBytes: number | null;
  }[];
  readonly memoryModules: readonly {
    readonly sizeBytes: number;
    /** `DDR5` */
    readonly type: string;
    readonly clockMhz: number | null;
    /** Maker and part number; empty: unknown. */
    readonly model: string;
  }[];
}

export interface NodeInventory {
  readonly gpus: readonly Gpu[];
  /** Logical CPUs on offer. */
  readonly cpus: number;
  readonly memoryMb: number;
  /** Addresses other nodes may reach this one at, best first. */
  readonly addresses: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
  /** Ways to run a task here: `process`, `docker`. */
  readonly drivers: readonly string[];
  readonly gpuDriver: GpuDriver;
  /** Each pair once. */
  readonly links: readonly DeviceLink[];
  readonly nics: readonly Nic[];
  readonly rdmaDevices: readonly RdmaDevice[];
  /** null: an agent that does not tell. */
  readonly host: HostFacts | null;
  /** null: not read yet, or an agent that does not tell. */
  readonly machine: MachineFacts | null;
}

/** An inventory of nothing, to be filled: what an older agent or store does not mention is as in here. */
export const emptyInventory: NodeInventory = {
  gpus: [],
  cpus: 0,
  memoryMb: 0,
  addresses: [],
  labels: {},
  drivers: [],
  gpuDriver: { source: 'none', profilingSource: null, driverVersion: null, cudaVersion: null },
  links: [],
  nics: [],
  rdmaDevices: [],
  host: null,
  machine: null,
};

/** A card of which nothing is known but its UUID. */
export function bareGpu(uuid: string): Gpu {
  return {
    uuid,
    model: '',
    memoryMb: null,
    simulated: false,
    index: null,
    pciBusId: null,
    numaNode: null,
    cpuAffinity: null,
    serial: null,
    mig: null,
  };
}

/** UUIDs of simulated GPUs begin with it, so that anyone who sees nothing but a UUID knows. */
export const simulatedUuidPrefix = 'GPU-SIMULATED-';

export function isSimulatedUuid(uuid: string): boolean {
  return uuid.startsWith(simulatedUuidPrefix);
}

/** The card that a device is, or is a part of. Conditions and links speak of cards. */
export function cardUuid(gpu: Gpu): string {
  return gpu.mig?.parentUuid ?? gpu.uuid;
}
