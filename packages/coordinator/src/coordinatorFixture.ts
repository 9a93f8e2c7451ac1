/**
 * A coordinator on a store in memory, with its real gRPC and HTTP servers. Time advances only when a test advances it, and
 * reconcilers run when a test runs them.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, Metadata } from '@grpc/grpc-js';
import type { BuiltInAlertName } from '@muster/common/builtInAlerts';
import type { Clock } from '@muster/common/clock';
import type { RandomBytes } from '@muster/common/ids';
import { type Logger, silentLogger } from '@muster/common/log';
import type { OidcSettings } from '@muster/common/oidcSettings';
import { unlimitedScope } from '@muster/common/people';
import { channelTo } from '@muster/common/wire/channel';
import { connectMuster } from '@muster/common/wire/client';
import type { ClientIdentity } from '@muster/common/wire/trust';
import { type SseTiming, usualSseTiming } from './api/sseStream.ts';
import { IdTokens } from './auth/idTokens.ts';
import { hashToken, newToken } from './auth/tokens.ts';
import type { MachineClock } from './clock/kernelClock.ts';
import { openCoordinator } from './coordinator.ts';
import { DiskReserve } from './diskReserve.ts';
import { problemOfEvent } from './events/eventSchemaFixture.ts';
import { startHttpServer } from './http/httpServer.ts';
import type { LeaseSettings } from './leases/leases.ts';
import { type LogLimits } from './logs/logKeeping.ts';
import { CoordinatorMetrics } from './metrics/coordinatorMetrics.ts';
import { someMs } from './modelFixture.ts';
import { coordinatorDefaults } from './options.ts';
import { outputIn } from './output.ts';
import type { ReadHistory } from './prometheus/metricHistory.ts';
import { Connections, connectionLimits } from './rpc/connections.ts';
import { startServer } from './rpc/server.ts';
import { webhookDeliveries } from './rpc/webhookDeliveries.ts';
import type { SecretKeys } from './secrets/keyFile.ts';
import { ClusterState } from './state/state.ts';
import { Memory, MemoryStore } from './store/memory/memoryStore.ts';
import { type Credential, type Store, StoreError } from './store/store.ts';
import type { ServerTls } from './tls/serverTls.ts';
import { listData } from './triggers/dataListing.ts';
import { certificateEnds } from './upkeep/certificates.ts';
import { measureDiskUse } from './upkeep/diskUse.ts';
import { Contained } from './work/contained.ts';

export const heartbeatIntervalMs = 1_000;
export const credentialLifetimeMs = 7 * 24 * 60 * 60_000;

export const leaseSettings: LeaseSettings = {
  leaseMs: 6_000,
  fenceMs: 2_000,
  marginMs: 2_000,
  clockRateError: 0.005,
};

/** The GPUs of nodes that tests make. */
const somePrices = [{ of: 'node', name: 'node-1', usdPerHour: 3.6 }] as const;

/** Advances only when a test sets `nowMs`. */
export class TestClock implements Clock {
  nowMs = 1_000;

  wallMs(): number {
    return someMs + this.nowMs;
  }

  monotonicMs(): number {
    return this.nowMs;
  }
}

/** Different bytes at each call, the same in each run. */
/** @param from where it begins to count */
export function countingBytes(from = 0): RandomBytes {
  let count = from;
  return (size) => {
    count += 1;
    // Five bits of each byte, because that is what becomes of them in an id.
    return Uint8Array.from({ length: size }, (_, index) =>
      index < 6 ? (count >> (5 * index)) & 31 : index * 7,
    );
  };
}

export type TestCoordinator = Awaited<ReturnType<typeof startTestCoordinator>>;

export async function startTestCoordinator(
  options: {
    reserveBytes?: number;
    memory?: Memory;
    store?: (memory: Memory) => Store;
    /** Default: the wall clock is trusted as it is. */
    machineClock?: MachineClock;
    /** Default: a new one. */
    clock?: TestClock;
    telemetryBytes?: number;
    builtInAlerts?: readonly BuiltInAlertName[];
    /** Below which triggers may watch; default: none. */
    watchDirs?: readonly string[];
    pageTimeoutMs?: number;
    heartbeatIntervalMs?: number;
    logLimits?: Partial<LogLimits>;
    log?: Logger;
    /** Serves the HTTP API as well, with these times. */
    api?: Partial<SseTiming>;
    /** Default: there is no Prometheus. */
    readHistory?: ReadHistory;
    /** How ID tokens are accepted. Default: none are. */
    oidc?: OidcSettings;
    /** Its clock begins at this one, by which clients verify certificates. */
    tls?: { wallMs: () => number; open: (dataDir: string) => Promise<ServerTls | null> };
  } = {},
) {
  const clock = options.clock ?? new TestClock();
  if (options.tls !== undefined) clock.nowMs = options.tls.wallMs() - someMs;
  // A restarted coordinator makes no id a second time.
  const random = countingBytes(1_000_000 * (options.memory?.jobs.size ?? 0));
  const memory = options.memory ?? new Memory('test');
  const adminToken = newToken('admin', random);
  addCredential(memory, { id: 'admin', kind: 'admin', subject: 'admin', secretHash: hashToken(adminToken) });
  const { store, eventProblems } = checkingEvents(options.store?.(memory) ?? new MemoryStore(memory));
  const state = new ClusterState(await store.load());
  const log = options.log ?? silentLogger;
  const directory = mkdtempSync(join(tmpdir(), 'muster-coordinator-'));
  const monotonicMs = () => clock.monotonicMs();
  const contained = new Contained(silentLogger, monotonicMs);
  const connections = new Connections({ limits: connectionLimits(1_024), monotonicMs, log: silentLogger });
  const reserve = new DiskReserve(directory, options.reserveBytes ?? 0, silentLogger);
  const unlimited = Number.POSITIVE_INFINITY;
  const fatal: Error[] = [];
  const onFatal = (error: StoreError) => void fatal.push(error);
  let metrics: CoordinatorMetrics | null = null;
  const coordinator = await openCoordinator({
    settings: {
      heartbeatIntervalMs: options.heartbeatIntervalMs ?? heartbeatIntervalMs,
      credentialLifetimeMs,
      leases: leaseSettings,
      leaseFreeBootId: null,
      telemetryBytes: options.telemetryBytes ?? 2 ** 20,
      prices: somePrices,
      telemetryPath: null,
      builtInAlerts: options.builtInAlerts ?? [],
    },
    state,
    store,
    clock,
    machineClock: options.machineClock ?? null,
    random,
    log,
    contained,
    reserve,
    openOutput: outputIn({
      dataDir: directory,
      logLimits: { budgetBytes: unlimited, capBytes: unlimited, rateBytes: unlimited, ...options.logLimits },
      rowBudgetBytes: unlimited,
      keep: { ...coordinatorDefaults.keep, eventsBytes: unlimited },
      publishedSeq: () => Promise.resolve(state.lastEventSeq),
      reserve,
      log: silentLogger,
      onFatal,
    }),
    listData: (watched) => listData(watched, options.watchDirs ?? []),
    readHistory: options.readHistory ?? null,
    runFenceCommand: null,
    secretKeys: memoryKeys(),
    machine: { diskFreePercent: () => null, certificateExpiresAtMs: () => null },
    backup: noBackup,
    onFatal,
    onCommitted: (change) => metrics?.committed(change),
  });
  const { gate, agents, pages } = coordinator;
  const storedAdminTokens: string[] = [];
  const tls = (await options.tls?.open(directory)) ?? null;
  const upkeep = {
    certificates: () => certificateEnds(tls?.ends() ?? null, state),
    diskUse: () =>
      measureDiskUse({
        dataDir: directory,
        reserveBytes: options.reserveBytes ?? 0,
        heldBytes: () => 0,
        budgets: coordinator.budgets,
      }),
  };
  metrics = new CoordinatorMetrics({
    ...coordinator,
    prices: somePrices,
    contained,
    connections,
    upkeep,
    log: silentLogger,
  });
  const caCertificate = tls === null ? null : readFileSync(tls.authorityPath, 'utf8');
  const calls = coordinator.calls({
    upkeep,
    authorityDigest: tls?.authorityDigest ?? null,
    idTokens:
      options.oidc === undefined
        ? null
        : new IdTokens({ settings: options.oidc, wallMs: () => clock.wallMs() }),
    nodeCertificates: tls?.nodeCertificates ?? null,
    storeAdminToken: (token) => void storedAdminTokens.push(token),
  });
  const server = await startServer('127.0.0.1:0', gate, connections, calls, tls?.credentials ?? null);
  const http = await startHttpServer('127.0.0.1:0', {
    ownPage: () => metrics?.page() ?? '',
    nodePage: (node) => pages.requestPage(node, options.pageTimeoutMs),
    nodes: () => [...state.nodes.keys()].sort(),
    log: silentLogger,
  });
  // Loaded only where it is used, as in the product.
  const httpApi =
    options.api === undefined
      ? null
      : await (await import('./api/server.ts')).startApi('127.0.0.1:0', {
          gate,
          connections,
          calls: calls.muster,
          deliver: webhookDeliveries(coordinator),
          tls: tls?.https ?? null,
          hosts: tls?.hosts ?? [],
          random,
          log,
          nowMs: monotonicMs,
          wallMs: () => clock.wallMs(),
          timing: { ...usualSseTiming, ...options.api },
        });
  const api = connectMuster({ address: server.address, token: adminToken, caCertificate });
  const clients: Client[] = [];
  return {
    ...coordinator,
    connections,
    adminToken,
    storedAdminTokens,
    api,
    clock,
    trustedClock: coordinator.clock,
    memory,
    /** Every call of the API, as its servers have them. */
    musterCalls: calls.muster,
    fatal,
    contained,
    /** `host:port` of its gRPC server. */
    address: server.address,
    /** PEM; null: it has no TLS. */
    caCertificate,
    /** `http://host:port` of its Prometheus pages. */
    httpUrl: `http://${http.address}`,
    /** `http://host:port` of the HTTP API, or with `https`; empty: it is not served. */
    apiUrl: httpApi?.url ?? '',
    /** A bare connection, for what the typed client would not send. */
    client(identity: ClientIdentity | null = null): Client {
      const channel = channelTo({ address: server.address, caCertificate, identity });
      const client = new Client(server.address, channel.credentials, channel.options);
      clients.push(client);
      return client;
    },
    async close() {
      api.close();
      for (const client of clients) client.close();
      tls?.close();
      agents.endAll();
      await httpApi?.close();
      await http.close();
      await server.close();
      await coordinator.close();
      // A write that was in progress may still put a file there.
      rmSync(directory, { recursive: true, maxRetries: 10 });
      if (eventProblems.length > 0) throw new Error(eventProblems.join('\n'));
    },
  };
}

/** Records each committed event that does not have the form described in docs/events.md: it fails the test at its end. */
function checkingEvents(store: Store): { readonly store: Store; readonly eventProblems: readonly string[] } {
  const eventProblems: string[] = [];
  const commit: Store['commit'] = (batch) => {
    eventProblems.push(...batch.events.flatMap((event) => problemOfEvent(event) ?? []));
    return store.commit(batch);
  };
  return { store: Object.assign(Object.create(store) as Store, { commit }), eventProblems };
}

function aCredential(): Pick<
  Credential,
  'createdAtMs' | 'expiresAtMs' | 'usedFor' | 'nextHash' | 'lastUsedAtMs' | 'replaces' | 'label' | 'scope'
> {
  return {
    createdAtMs: someMs,
    expiresAtMs: null,
    usedFor: null,
    nextHash: null,
    lastUsedAtMs: null,
    replaces: false,
    label: '',
    scope: unlimitedScope,
  };
}

export function addCredential(
  memory: Memory,
  fields: Pick<Credential, 'id' | 'kind' | 'subject' | 'secretHash'> & Partial<Credential>,
): void {
  const credential = { ...aCredential(), ...fields };
  memory.credentials.set(credential.id, credential);
}

/** @param headers beside the token */
export function withToken(token: string, headers: Readonly<Record<string, string>> = {}): Metadata {
  const metadata = new Metadata();
  metadata.set('authorization', `Bearer ${token}`);
  for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
  return metadata;
}

/** Keys of secrets that are in no file. */
export function memoryKeys(): SecretKeys {
  let kept: readonly Uint8Array[] = [];
  return {
    read: () => kept,
    write(keys) {
      kept = keys;
    },
  };
}

/** Only a store on a disk has one. */
function noBackup(): never {
  throw new StoreError('io', 'a store in memory has no backup');
}
