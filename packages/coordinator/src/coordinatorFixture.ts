/**
 * A coordinator without a disk: its real loop, handlers and gRPC server on a store in memory, wired as main.ts does.
 * Time stands still until a test moves it.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, credentials, Metadata } from '@grpc/grpc-js';
import type { Clock } from '@muster/common/clock';
import type { NodeName, RandomBytes } from '@muster/common/ids';
import { type Logger, silentLogger } from '@muster/common/log';
import { connectMuster } from '@muster/common/wire/client';
import { OrphanTasks } from './agents/orphans.ts';
import { AgentRegistry } from './agents/registry.ts';
import { StatusPacer } from './agents/statusPacer.ts';
import { TaskStatusCache } from './agents/taskStatusCache.ts';
import { Gate } from './auth/gate.ts';
import { hashToken, newToken } from './auth/tokens.ts';
import { DiskReserve } from './diskReserve.ts';
import { CommitNotifier } from './events/commitNotifier.ts';
import { Notices } from './events/notices.ts';
import { startHttpServer } from './http/httpServer.ts';
import type { LeaseSettings } from './leases/leases.ts';
import { LogKeeping, type LogLimits } from './logs/logKeeping.ts';
import { LogStore } from './logs/logStore.ts';
import { Loop } from './loop.ts';
import { CoordinatorMetrics } from './metrics/coordinatorMetrics.ts';
import { someMs } from './modelFixture.ts';
import { PathHistory } from './paths/pathHistory.ts';
import { buildView } from './planning/planningView.ts';
import { WaitTimes } from './planning/waitTimes.ts';
import { ArrayFiller } from './reconcilers/arrayFiller.ts';
import { HangWatch } from './reconcilers/hangWatch.ts';
import { LeaseKeeper } from './reconcilers/leaseKeeper.ts';
import { StartDeadlines } from './reconcilers/startDeadlines.ts';
import { TimeLimits } from './reconcilers/timeLimits.ts';
import { RowKeeping } from './rows/rowKeeping.ts';
import { agentHubCalls } from './rpc/agentHub.ts';
import { Connections, connectionLimits } from './rpc/connections.ts';
import { credentialCalls } from './rpc/credentials.ts';
import { jobCalls } from './rpc/jobs.ts';
import { nodeCalls } from './rpc/nodes.ts';
import { startServer } from './rpc/server.ts';
import { streamCalls } from './rpc/streams.ts';
import { telemetryCalls } from './rpc/telemetry.ts';
import { ClusterState, Draft } from './state/state.ts';
import { Memory, MemoryStore } from './store/memory/memoryStore.ts';
import { type Credential, type JobRecord, type Store, StoreError } from './store/store.ts';
import { PageRequests } from './telemetry/pageRequests.ts';
import { TelemetryStore } from './telemetry/telemetryStore.ts';
import { StatusFiles } from './training/statusFiles.ts';
import { statusOf as statusOfJob } from './training/statusOf.ts';
import { Contained } from './work/contained.ts';

export const heartbeatIntervalMs = 1_000;
export const credentialLifetimeMs = 7 * 24 * 60 * 60_000;

export const leaseSettings: LeaseSettings = {
  leaseMs: 6_000,
  fenceMs: 2_000,
  marginMs: 2_000,
  clockRateError: 0.005,
};

/** Stands still until moved. */
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
    telemetryBytes?: number;
    pageTimeoutMs?: number;
    heartbeatIntervalMs?: number;
    logLimits?: Partial<LogLimits>;
    log?: Logger;
    /** What limits refusals by; left out: the clock. */
    gateMonotonicMs?: () => number;
  } = {},
) {
  const clock = new TestClock();
  // A restarted coordinator makes no id a second time.
  const random = countingBytes(1_000_000 * (options.memory?.jobs.size ?? 0));
  const memory = options.memory ?? new Memory('test');
  const adminToken = newToken('admin', random);
  addCredential(memory, { id: 'admin', kind: 'admin', subject: 'admin', secretHash: hashToken(adminToken) });
  const store = options.store?.(memory) ?? new MemoryStore(memory);
  const state = new ClusterState(await store.load());
  const gate = new Gate({
    ...{ state, log: options.log ?? silentLogger, wallMs: () => clock.wallMs() },
    monotonicMs: options.gateMonotonicMs ?? (() => clock.monotonicMs()),
  });
  const directory = mkdtempSync(join(tmpdir(), 'muster-coordinator-'));
  const agents = new AgentRegistry(clock, options.heartbeatIntervalMs ?? heartbeatIntervalMs);
  const logs: LogStore = new LogStore(join(directory, 'logs'), {
    capBytes: options.logLimits?.capBytes ?? Number.POSITIVE_INFINITY,
    onTruncated: (task, reason) => logKeeping.logEvents.truncated(task, reason),
  });
  const waitTimes = new WaitTimes();
  const committed = new CommitNotifier();
  const notices = new Notices(committed);
  const wallMs = () => clock.wallMs();
  const monotonicMs = () => clock.monotonicMs();
  const timeLimits = new TimeLimits(monotonicMs);
  const taskStatus = new TaskStatusCache();
  const pacer = new StatusPacer(monotonicMs);
  const startDeadlines = new StartDeadlines(monotonicMs, taskStatus);
  const hangWatch = new HangWatch({ wallMs, monotonicMs, heartbeatIntervalMs });
  const leases = await LeaseKeeper.open({
    ...{ state, store, agents, clock, random, log: silentLogger },
    ...{ settings: leaseSettings, tickMs: heartbeatIntervalMs, runFenceCommand: null },
  });
  const paths = await PathHistory.open(store, state);
  const telemetry = new TelemetryStore({ state, clock, bytesMax: options.telemetryBytes ?? 2 ** 20 });
  const pages = new PageRequests();
  const contained = new Contained(silentLogger, monotonicMs);
  const connections = new Connections({ limits: connectionLimits(1_024), monotonicMs, log: silentLogger });
  const metrics = new CoordinatorMetrics({
    gate,
    state,
    clock,
    waitTimes,
    agents,
    leases,
    taskStatus,
    telemetry,
    pages,
    contained,
    connections,
    store,
    log: silentLogger,
  });
  const fatal: Error[] = [];
  const orphans = new OrphanTasks(state);
  const orphanGpusOf = (node: NodeName) => orphans.gpusOf(node);
  const loop = new Loop({
    state,
    store,
    clock,
    log: silentLogger,
    waitTimes,
    onlineNodes: () => agents.online(),
    paused: () => leases.paused(),
    leaseMs: leaseSettings.leaseMs,
    leaseFreeBootId: null,
    orphanGpus: orphanGpusOf,
    needsPreflight: (node) => paths.needsPreflight(node),
    contained,
    followers: {
      gate: (change) => gate.committed(change),
      agents: (change) => agents.committed(change),
      taskStatus: (change) => taskStatus.committed(change),
      paths: (change) => paths.committed(change.events),
      statusFiles: (change) => statusFiles.committed(change),
      watchers: (change) => committed.notify(change.events.map((event) => event.subject)),
      metrics: (change) => metrics.committed(change),
    },
    onViolation: () => {},
    freeBallast: () => false,
    onFatal: (error) => fatal.push(error),
  });
  const statusOf = (record: JobRecord) =>
    statusOfJob({ wallMs, state, taskStatus, reasons: loop.reasons }, record);
  const statusFiles = new StatusFiles({
    ...{ state, store, statusOf, monotonicMs, log: silentLogger },
    directoryOf: (jobId) => logs.directoryOf(jobId),
  });
  leases.attach(loop);
  const arrays = new ArrayFiller({ state, store, loop, random });
  const reserve = new DiskReserve(directory, options.reserveBytes ?? 0, silentLogger);
  const unlimited = Number.POSITIVE_INFINITY;
  const limits = { budgetBytes: unlimited, capBytes: unlimited, rateBytes: unlimited, ...options.logLimits };
  const logKeeping = new LogKeeping({ logs, limits, state, loop, reserve, monotonicMs, log: silentLogger });
  const rowKeeping = new RowKeeping({
    ...{ dataDir: directory, budgetBytes: unlimited, state, reserve, monotonicMs, log: silentLogger },
  });
  const now = { wallMs, monotonicMs };
  const storedAdminTokens: string[] = [];
  const shared = {
    gate,
    state,
    store,
    loop,
    agents,
    orphans,
    logs,
    logEvents: logKeeping.logEvents,
    intake: logKeeping.intake,
    rowKeeping,
    reserve,
    arrays,
    random,
    committed,
    notices,
    timeLimits,
    hangWatch,
    statusOf,
    taskStatus,
    pacer,
    leases,
    paths,
    telemetry,
    pages,
    ...now,
  };
  const nodeViews = () =>
    buildView(new Draft(state), agents.online(), waitTimes, orphanGpusOf, monotonicMs()).nodes;
  const server = await startServer('127.0.0.1:0', gate, connections, {
    muster: {
      ...jobCalls({ ...shared, nodeViews }),
      ...streamCalls({ ...shared, backup: noBackup }),
      ...nodeCalls(shared),
      ...credentialCalls({
        ...{ ...shared, log: silentLogger, authorityDigest: null },
        storeAdminToken: (token) => void storedAdminTokens.push(token),
      }),
      ...telemetryCalls(shared),
    },
    agentHub: agentHubCalls({
      ...{ ...shared, log: silentLogger, heartbeatIntervalMs, leaseMs: leaseSettings.leaseMs },
      credentialLifetimeMs,
      term: (node) => ({ term: leases.term, termProof: leases.termProofOf(node) }),
      checkAccount: (account) => leases.checkAccount(account),
    }),
  });
  const http = await startHttpServer('127.0.0.1:0', {
    ownPage: () => metrics.page(),
    nodePage: (node) => pages.requestPage(node, options.pageTimeoutMs),
    nodes: () => [...state.nodes.keys()].sort(),
    log: silentLogger,
  });
  const api = connectMuster({ address: server.address, token: adminToken });
  const clients: Client[] = [];
  return {
    adminToken,
    storedAdminTokens,
    api,
    clock,
    memory,
    state,
    loop,
    gate,
    agents,
    arrays,
    notices,
    logs,
    logKeeping,
    rowKeeping,
    fatal,
    timeLimits,
    startDeadlines,
    hangWatch,
    statusFiles,
    taskStatus,
    pacer,
    leases,
    telemetry,
    pages,
    contained,
    /** `host:port` of its gRPC server. */
    address: server.address,
    /** `http://host:port` of its Prometheus pages. */
    httpUrl: `http://${http.address}`,
    /** A bare connection, for what the typed client would not send. */
    client(): Client {
      const client = new Client(server.address, credentials.createInsecure());
      clients.push(client);
      return client;
    },
    async close() {
      api.close();
      for (const client of clients) client.close();
      agents.endAll();
      await leases.close();
      await http.close();
      await server.close();
      await loop.stop();
      await statusFiles.close();
      await logs.close();
      await rowKeeping.rows.close();
      rmSync(directory, { recursive: true });
    },
  };
}

function aCredential(): Pick<
  Credential,
  'createdAtMs' | 'expiresAtMs' | 'usedFor' | 'nextHash' | 'lastUsedAtMs' | 'replaces'
> {
  return {
    createdAtMs: someMs,
    expiresAtMs: null,
    usedFor: null,
    nextHash: null,
    lastUsedAtMs: null,
    replaces: false,
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

/** Only a store on a disk has one. */
function noBackup(): never {
  throw new StoreError('io', 'a store in memory has no backup');
}
