/** What the coordinator is started with. Flags and environment are read by the CLI; nothing here reads either. */
export interface CoordinatorOptions {
  /** Absolute. Holds the database, logs, tokens; created 0700 when absent. One coordinator per directory. */
  readonly dataDir: string;
  /** `host:port`; port 0 picks a free one. Only loopback hosts: there is no TLS yet. */
  readonly listen: string;
  /** `host:port` of Prometheus pages and service discovery; port 0 picks a free one, loopback only. null: none. */
  readonly httpListen: string | null;
  /** Memory for the readings of jobs' GPUs, bytes. 64 MiB hold some 1.6 million: six hours of 750 busy GPUs. */
  readonly telemetryBytes: number;
  /** `nats://host:port` to publish events on JetStream as well; null: in-process only. */
  readonly natsUrl: string | null;
  /** Free space to keep, bytes: below it submits are refused, state changes of existing jobs still commit. */
  readonly reserveBytes: number;
  readonly heartbeatIntervalMs: number;
  /** Length of a lease per answered heartbeat. */
  readonly leaseMs: number;
  readonly logLevel: string;
}

export const coordinatorDefaults = {
  listen: '127.0.0.1:7070',
  httpListen: '127.0.0.1:7071',
  telemetryBytes: 64 * 1024 * 1024,
  natsUrl: null,
  reserveBytes: 512 * 1024 * 1024,
  heartbeatIntervalMs: 5_000,
  leaseMs: 60_000,
  logLevel: 'info',
} as const satisfies Omit<CoordinatorOptions, 'dataDir'>;
