/** What the coordinator is started with. Flags and environment are read by the CLI; nothing here reads either. */

import { type AlertSinkSettings, noAlertSinks } from '@muster/common/alertSinkSettings';
import type { BuiltInAlertName } from '@muster/common/builtInAlerts';
import type { OidcSettings } from '@muster/common/oidcSettings';

/** How long what is over is kept. Ages in milliseconds, by the wall clock. */
export interface Keep {
  readonly eventsMs: number;
  /** So many bytes of events at most, as far as they may be removed at all. */
  readonly eventsBytes: number;
  readonly jobsMs: number;
  /** So many ended jobs at most. */
  readonly jobsMax: number;
}

/** What an hour of a GPU costs, in USD: of a type that is part of the name of its model, or of a node whatever it has. */
export interface GpuPrice {
  readonly of: 'type' | 'node';
  readonly name: string;
  readonly usdPerHour: number;
}

export interface OtlpOptions {
  /** Of an OpenTelemetry collector, `http://host:4318`. */
  readonly url: string;
  /** 0 to 1: the share of the traces that are recorded, where no caller has decided. */
  readonly ratio: number;
}

export const traceRatioDefault = 0.1;

export interface CoordinatorOptions {
  /** Absolute. Holds the database, logs, tokens; created 0700 when absent. One coordinator per directory. */
  readonly dataDir: string;
  /** The file of settings that these options were read from, absolute; backups have a copy. null: there is none. */
  readonly configPath: string | null;
  /** `host:port`; port 0 picks a free one. TLS unless the host is loopback. */
  readonly listen: string;
  /** Names or addresses by which other machines reach this one, best first; empty: its own. */
  readonly advertise: readonly string[];
  /** `host:port` of Prometheus pages and service discovery; port 0 picks a free one, loopback only. null: none. */
  readonly httpListen: string | null;
  /** `host:port` of the HTTP API; port 0 picks a free one. TLS unless the host is loopback. null: none. */
  readonly apiListen: string | null;
  /** Memory for the readings of jobs' GPUs, bytes. 64 MiB hold some 1.4 million: six hours of 640 busy GPUs. */
  readonly telemetryBytes: number;
  /** What GPUs cost, for the metric of costs; empty: nothing is counted. */
  readonly prices: readonly GpuPrice[];
  /** Directories of this machine below which triggers may watch for data, absolute; empty: none may. */
  readonly watchDirs: readonly string[];
  /** `http://host:9090` of the Prometheus that scrapes this cluster, for metrics that memory no longer has. null: there is none. */
  readonly prometheusUrl: string | null;
  /** Where traces go, and how many. null: nowhere. */
  readonly otlp: OtlpOptions | null;
  /** `nats://host:port` to publish events on JetStream as well; null: in-process only. */
  readonly natsUrl: string | null;
  /** How to get in there, as a file says it: `user:password`, a token, or JWT and seed. null: nothing is needed. */
  readonly natsCredentials: string | null;
  /** Whether jobs may be submitted through NATS too; of no effect without `natsUrl`. */
  readonly natsSubmit: boolean;
  /** Of those that are built in, the alerts that are switched on. */
  readonly builtInAlerts: readonly BuiltInAlertName[];
  /** Where alerts go. */
  readonly alertSinks: AlertSinkSettings;
  /** PEM of the authority that has signed the certificates of NATS; null: those that the system trusts. */
  readonly natsCa: string | null;
  /** Copies of the stream, where there is none yet: 1 to 5. */
  readonly natsReplicas: number;
  /** Free space to keep, bytes: below it submits are refused, state changes of existing jobs still commit. */
  readonly reserveBytes: number;
  /** Specs of queued jobs, of all users together, bytes. One user may have half of it. */
  readonly queueBytes: number;
  /** Space for the output of all jobs, bytes. null: a fifth of the disk, 50 GiB at most. */
  readonly logBudgetBytes: number | null;
  /** Output kept of one task, bytes: its beginning and its end. null: a quarter of the budget, 1 GiB at most. */
  readonly logCapBytes: number | null;
  /** Output taken of one task in the long run, bytes a second. */
  readonly logRateBytes: number;
  /** Space for the rows of metrics of all jobs, bytes. null: a fiftieth of the disk, 5 GiB at most. */
  readonly metricsBudgetBytes: number | null;
  /** How long events, ended jobs and requests are kept. Bytes of events null: a fiftieth of the disk, 5 GiB at most. */
  readonly keep: Omit<Keep, 'eventsBytes'> & { readonly eventsBytes: number | null };
  readonly heartbeatIntervalMs: number;
  /** How long the credential of an agent is valid that is not renewed; agents renew theirs at two thirds of it. */
  readonly credentialLifetimeMs: number;
  /** L: length of a lease per answered heartbeat, where the job does not say. */
  readonly leaseMs: number;
  /**
   * Whether tasks on the coordinator's own machine run on leases as well. Without, they run on however long Muster is away, and
   * are never given up for a silence.
   */
  readonly localLeases: boolean;
  /** K: from the moment that a node fences a task until it runs no instruction. */
  readonly fenceMs: number;
  /** M: between the end of an attempt on a lost node and the beginning of the next one; 2 s at least. */
  readonly fenceMarginMs: number;
  /** ρ: how far the rates of two machines' clocks may differ. */
  readonly clockRateError: number;
  /** Shell command that makes sure that a silent node is dead, and exits 0 only then. null: there is none. */
  readonly fenceCommand: string | null;
  /** The issuer by which users may log in (OpenID Connect). null: by codes only. */
  readonly oidc: OidcSettings | null;
  readonly logLevel: string;
}

const dayMs = 24 * 60 * 60_000;

export const coordinatorDefaults = {
  configPath: null,
  listen: '127.0.0.1:7070',
  advertise: [] as readonly string[],
  httpListen: '127.0.0.1:7071',
  apiListen: null,
  telemetryBytes: 64 * 1024 * 1024,
  prices: [] as readonly GpuPrice[],
  watchDirs: [] as readonly string[],
  prometheusUrl: null,
  otlp: null,
  natsUrl: null,
  natsCredentials: null,
  natsSubmit: false,
  builtInAlerts: [] as readonly BuiltInAlertName[],
  alertSinks: noAlertSinks,
  natsCa: null,
  natsReplicas: 1,
  reserveBytes: 512 * 1024 * 1024,
  queueBytes: 1024 * 1024 * 1024,
  logBudgetBytes: null,
  logCapBytes: null,
  logRateBytes: 64 * 1024 * 1024,
  metricsBudgetBytes: null,
  keep: { eventsMs: 30 * dayMs, eventsBytes: null, jobsMs: 90 * dayMs, jobsMax: 1_000_000 },
  heartbeatIntervalMs: 5_000,
  credentialLifetimeMs: 7 * 24 * 60 * 60_000,
  leaseMs: 60_000,
  localLeases: true,
  fenceMs: 5_000,
  fenceMarginMs: 5_000,
  clockRateError: 0.005,
  fenceCommand: null,
  oidc: null,
  logLevel: 'info',
} as const satisfies Omit<CoordinatorOptions, 'dataDir'>;
