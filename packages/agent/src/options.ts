/** What the agent is started with. Flags and environment are read by the CLI; nothing here reads either. */
export interface AgentOptions {
  /** Absolute. Holds the credential and the tasks' directories; created 0700 when absent. One agent per directory. */
  readonly dataDir: string;
  /** 1 to 63 lower-case letters, digits and hyphens. */
  readonly name: string;
  /** `host:port` of the coordinator. */
  readonly coordinator: string;
  /** Needed once, until the agent has a credential of its own in its data directory. */
  readonly joinToken: string | null;
  readonly gpus: GpuOption;
  /** CPUs to offer; null: all of the machine's. */
  readonly cpus: number | null;
  readonly labels: Readonly<Record<string, string>>;
  readonly nvidiaSmiPath: string;
  readonly dockerSocket: string;
  /** argv that starts a guard; its options follow. */
  readonly guardCommand: readonly string[];
  readonly logLevel: string;
}

export type GpuOption =
  /** What nvidia-smi lists; none when there is no driver. */
  | { readonly kind: 'detect' }
  /** For trying Muster out; labelled as simulated everywhere. */
  | { readonly kind: 'simulated'; readonly count: number };

export const agentDefaults = {
  gpus: { kind: 'detect' },
  cpus: null,
  labels: {},
  nvidiaSmiPath: 'nvidia-smi',
  dockerSocket: '/var/run/docker.sock',
  logLevel: 'info',
} as const satisfies Partial<AgentOptions>;
