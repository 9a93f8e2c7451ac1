import { type ContainerPolicy, containerDefaults } from './drivers/docker/containerPolicy.ts';

/** What the agent is started with. Flags and environment are read by the CLI; nothing here reads either. */
import { type OutputLimits, outputDefaults } from './guard/outputPace.ts';
import type { AccountRule } from './taskFacts/account.ts';

export interface AgentOptions {
  /** Absolute. Holds the credential and the tasks' directories; created 0700 when absent. One agent per directory. */
  readonly dataDir: string;
  /** 1 to 63 lower-case letters, digits and hyphens. */
  readonly name: string;
  /** `host:port` of the coordinator. */
  readonly coordinator: string;
  /** PEM of the CA to trust from now on; null: the one known since the join, or that the join token pins. */
  readonly caCertificate: string | null;
  /** Needed once, until the agent has a credential of its own in its data directory. */
  readonly joinToken: string | null;
  readonly gpus: GpuOption;
  /** CPUs to offer; null: all of the machine's. */
  readonly cpus: number | null;
  readonly labels: Readonly<Record<string, string>>;
  /** Where GPU facts come from; `auto`: NVML where its library is, else nvidia-smi. */
  readonly gpuSource: 'auto' | 'nvml' | 'nvidia-smi';
  /** Profiling values (SM, tensor, DRAM, NVLink, PCIe activity); `auto`: the first that answers. */
  readonly profilingSource: 'auto' | 'dcgm-exporter' | 'dcgmi' | 'gpm' | 'off';
  readonly nvidiaSmiPath: string;
  /** Name or path of NVML's library. */
  readonly nvmlLibrary: string;
  readonly dcgmExporterUrl: string;
  readonly dcgmiPath: string;
  /** Between readings of the GPUs; null: what suits the source. */
  readonly sampleIntervalMs: number | null;
  /** `host:port` of the Prometheus page, loopback only; null: none. The coordinator can fetch it either way. */
  readonly metricsListen: string | null;
  /** Label that holds the node's name on GPU series: dcgm-exporter's releases differ. */
  readonly hostnameLabel: 'Hostname' | 'hostname';
  /** Where a dcgm-exporter looks for its job mapping files; null: none are written. */
  readonly hpcJobDir: string | null;
  /** A file that changes rows of the table of conditions; null: the built-in table. */
  readonly conditionTable: string | null;
  readonly kernelLog: string;
  readonly dockerSocket: string;
  /** Absolute. Where jobs keep their checkpoints, as far as it was configured: examined at the start. */
  readonly checkpointRoots: readonly string[];
  /** What containers may do here. */
  readonly containers: ContainerPolicy;
  /** The accounts that bare tasks run as. Only an agent that is root can follow a rule. */
  readonly accounts: readonly AccountRule[];
  /**
   * Whether bare tasks without a rule may run as root, where this agent does; otherwise they run as the account with the name of
   * their user, or not at all.
   */
  readonly rootTasks: 'allow' | 'refuse';
  /** argv that starts a guard; its options follow. null: a service of its own, started by somebody else. */
  readonly guardCommand: readonly string[] | null;
  /**
   * argv that starts the reader of NVML (`nvml-reader.mjs` beside the bundle, `gpus/nvml/main.ts` in the source tree); its
   * options follow.
   */
  readonly nvmlReaderCommand: readonly string[];
  /**
   * What the end of this agent means when it is asked for. `leave`: only the agent ends, unless the system itself is being
   * shut down. `drain`: the machine goes down; its tasks must first save, and be rescheduled.
   */
  readonly onSigterm: (typeof sigtermActions)[number];
  /** How long that may take. */
  readonly shutdownGraceMs: number;
  /** How much output a task may write, and how much of it is kept on this node. */
  readonly outputLimits: OutputLimits;
  readonly logLevel: string;
}

export const sigtermActions = ['leave', 'drain'] as const;

export type GpuOption =
  /** What the driver lists; none when there is no driver. */
  | { readonly kind: 'detect' }
  /** For trying Muster out; labelled as simulated everywhere. */
  | { readonly kind: 'simulated'; readonly count: number };

export const agentDefaults = {
  caCertificate: null,
  gpus: { kind: 'detect' },
  cpus: null,
  labels: {},
  gpuSource: 'auto',
  profilingSource: 'auto',
  nvidiaSmiPath: 'nvidia-smi',
  nvmlLibrary: 'libnvidia-ml.so.1',
  dcgmExporterUrl: 'http://127.0.0.1:9400/metrics',
  dcgmiPath: 'dcgmi',
  sampleIntervalMs: null,
  metricsListen: '127.0.0.1:9410',
  hostnameLabel: 'Hostname',
  hpcJobDir: null,
  conditionTable: null,
  kernelLog: '/dev/kmsg',
  dockerSocket: '/var/run/docker.sock',
  checkpointRoots: [],
  containers: containerDefaults,
  accounts: [],
  rootTasks: 'refuse',
  onSigterm: 'leave',
  shutdownGraceMs: 90_000,
  outputLimits: outputDefaults,
  logLevel: 'info',
} as const satisfies Partial<AgentOptions>;
