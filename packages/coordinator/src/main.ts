/** Wiring of the coordinator, and nothing else: opens the parts in order, closes them in reverse. */
import { randomBytes } from 'node:crypto';
import { accessSync, constants, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { formatAddress, parseAddress } from '@muster/common/address';
import { systemClock } from '@muster/common/clock';
import { MusterError, messageOf } from '@muster/common/errors';
import { makeDirectories, writeFileDurably } from '@muster/common/files';
import type { NodeName, RandomBytes } from '@muster/common/ids';
import { createLogger } from '@muster/common/pinoLogger';
import { OrphanTasks } from './agents/orphans.ts';
import { AgentRegistry } from './agents/registry.ts';
import { StatusPacer } from './agents/statusPacer.ts';
import { TaskStatusCache } from './agents/taskStatusCache.ts';
import { AdminTokenFile } from './auth/adminToken.ts';
import { Gate } from './auth/gate.ts';
import { DiskReserve } from './diskReserve.ts';
import { CommitNotifier } from './events/commitNotifier.ts';
import { natsCursorName } from './events/natsCursor.ts';
import { Notices } from './events/notices.ts';
import type { RunningHttpServer } from './http/httpServer.ts';
import { goOnAfterRestore } from './leases/afterRestore.ts';
import { fenceCommandRunner } from './leases/fenceCommand.ts';
import { fencedAfterMs, type LeaseSettings } from './leases/leases.ts';
import { metaStore } from './leases/metaStore.ts';
import { LogKeeping, logLimits } from './logs/logKeeping.ts';
import { LogStore } from './logs/logStore.ts';
import { Loop } from './loop.ts';
import type { CoordinatorMetrics } from './metrics/coordinatorMetrics.ts';
import { timedStore } from './metrics/timedStore.ts';
import type { CoordinatorOptions } from './options.ts';
import { PathHistory } from './paths/pathHistory.ts';
import { buildView } from './planning/planningView.ts';
import { WaitTimes } from './planning/waitTimes.ts';
import { ArrayFiller } from './reconcilers/arrayFiller.ts';
import { askToRenew, removeExpiredJoinTokens, storeLastUse } from './reconcilers/credentialUse.ts';
import { Drains } from './reconcilers/drains.ts';
import { HangWatch } from './reconcilers/hangWatch.ts';
import { publishHeldBackStatus } from './reconcilers/heldBackStatus.ts';
import { LeaseKeeper } from './reconcilers/leaseKeeper.ts';
import { PageScrub } from './reconcilers/pageScrub.ts';
import { Retention } from './reconcilers/retention.ts';
import { StartDeadlines } from './reconcilers/startDeadlines.ts';
import { TimeLimits } from './reconcilers/timeLimits.ts';
import { RowKeeping, rowBudgetBytes } from './rows/rowKeeping.ts';
import { agentHubCalls } from './rpc/agentHub.ts';
import { Connections, connectionLimits } from './rpc/connections.ts';
import { credentialCalls } from './rpc/credentials.ts';
import { descriptorsMax } from './rpc/descriptors.ts';
import { jobCalls } from './rpc/jobs.ts';
import { nodeCalls } from './rpc/nodes.ts';
import { listenAddress, startServer } from './rpc/server.ts';
import { streamCalls } from './rpc/streams.ts';
import { telemetryCalls } from './rpc/telemetry.ts';
import { ClusterState, Draft } from './state/state.ts';
import { openStore } from './store/openStore.ts';
import { type JobRecord, StoreError } from './store/store.ts';
import { PageRequests } from './telemetry/pageRequests.ts';
import { TelemetryStore } from './telemetry/telemetryStore.ts';
import { addressesForOthers, openServerTls } from './tls/serverTls.ts';
import { GpuStatsPublisher } from './training/gpuStats.ts';
import { StatusFiles } from './training/statusFiles.ts';
import { statusOf as statusOfJob } from './training/statusOf.ts';
import { Contained, type ContainedWork } from './work/contained.ts';

export interface RunningCoordinator {
  /** `host:port` it serves on. */
  readonly address: string;
  /** `host:port` of its Prometheus page; null: none. */
  readonly httpAddress: string | null;
  close(): Promise<void>;
}

/**
 * Starts a coordinator and resolves when it serves.
 * @throws {MusterError} with one sentence for the user: data directory, store, address
 */
export async function runCoordinator(options: CoordinatorOptions): Promise<RunningCoordinator> {
  const log = createLogger('coordinator', options.logLevel);
  const clock = systemClock;
  const random: RandomBytes = (size) => randomBytes(size);
  const releases: (() => void | Promise<void>)[] = [];
  const release = async () => {
    for (const each of releases.splice(0).reverse()) await each();
  };

  try {
    prepareDataDir(options.dataDir);
    const openedStore = openStore(options.dataDir, random, log);
    releases.push(() => openedStore.close());
    let metrics: CoordinatorMetrics | null = null;
    const store = timedStore(openedStore, clock.monotonicMs, (ms) => metrics?.commitTook(ms));
    const state = new ClusterState(await store.load());
    const adminToken = new AdminTokenFile(options.dataDir);
    await adminToken.ensure(state, store, random, clock.wallMs());
    const gate = new Gate({ ...clock, state, log });

    const agents = new AgentRegistry(clock, options.heartbeatIntervalMs);
    for (const node of state.nodes.keys()) agents.expect(node);
    const orphans = new OrphanTasks(state);
    const orphanGpusOf = (node: NodeName) => orphans.gpusOf(node);
    const reserve = new DiskReserve(options.dataDir, options.reserveBytes, log);
    const onFatal = (error: StoreError) => {
      log.error({ error: error.message }, 'the store failed: exiting, a restart recovers what was committed');
      // Callers get their answer first; nothing is acknowledged after this.
      setTimeout(() => process.exit(70), 200);
    };
    const scrub = new PageScrub({
      store: openedStore,
      onDamage: (damage) => onFatal(openedStore.recordDamage(damage)),
      onFailed: (error) =>
        log.error({ error: messageOf(error) }, 'the store could not be compared with its checksums'),
      pause: (ms, signal) => sleep(ms, undefined, { signal, ref: false }).catch(() => {}),
    });
    releases.push(() => scrub.close());
    const ownLeases = [...state.jobs.values()].map(({ spec }) => spec.leaseMs ?? 0);
    const quietMs = fencedAfterMs(leaseSettings(options), Math.max(options.leaseMs, ...ownLeases));
    const restored = await goOnAfterRestore({ state, store, wallMs: clock.wallMs, quietMs });
    if (restored !== null)
      log.warn({ ...restored }, 'this store was restored from a backup, or accepted with losses');
    const tickMs = Math.min(1_000, options.heartbeatIntervalMs);
    const leases = await LeaseKeeper.open({
      state,
      store: metaStore({ store, onFatal, freeBallast: () => reserve.dropBallast() }),
      agents,
      clock,
      random,
      log,
      settings: leaseSettings(options),
      tickMs,
      runFenceCommand:
        options.fenceCommand === null ? null : fenceCommandRunner(options.fenceCommand, process.env),
    });
    const paths = await PathHistory.open(store, state);
    const limits = logLimits(options);
    const logs: LogStore = new LogStore(join(options.dataDir, 'logs'), {
      capBytes: limits.capBytes,
      onTruncated: (task, reason) => logKeeping.logEvents.truncated(task, reason),
    });
    releases.push(() => logs.close());
    reserve.restoreBallast();
    const waitTimes = new WaitTimes();
    for (const job of state.jobs.values()) waitTimes.follow(job, clock.monotonicMs());
    const timeLimits = new TimeLimits(clock.monotonicMs);
    const taskStatus = new TaskStatusCache();
    const pacer = new StatusPacer(clock.monotonicMs);
    const startDeadlines = new StartDeadlines(clock.monotonicMs, taskStatus);
    const hangWatch = new HangWatch({ ...clock, heartbeatIntervalMs: options.heartbeatIntervalMs });
    const drains = new Drains(clock);
    const committed = new CommitNotifier();
    const notices = new Notices(committed);
    const telemetry = new TelemetryStore({ state, clock, bytesMax: options.telemetryBytes });
    const gpuStats = new GpuStatsPublisher({ ...clock, telemetry, taskStatus, notices });
    const pages = new PageRequests();
    const contained = new Contained(log, clock.monotonicMs);

    const loop = new Loop({
      state,
      store,
      clock,
      log,
      waitTimes,
      onlineNodes: () => agents.online(),
      paused: () => leases.paused(),
      needsPreflight: (node) => paths.needsPreflight(node),
      leaseMs: options.leaseMs,
      leaseFreeBootId: options.localLeases ? null : readBootId(),
      orphanGpus: orphanGpusOf,
      onViolation: (guarantee) => metrics?.violated(guarantee),
      contained,
      followers: {
        gate: (change) => gate.committed(change),
        orphans: (change) => orphans.committed(change),
        agents: (change) => agents.committed(change),
        taskStatus: (change) => taskStatus.committed(change),
        paths: (change) => paths.committed(change.events),
        statusFiles: (change) => statusFiles.committed(change),
        watchers: (change) => committed.notify(change.events.map((event) => event.subject)),
        metrics: (change) => metrics?.committed(change),
      },
      freeBallast: () => reserve.dropBallast(),
      onFatal,
    });
    const logKeeping = new LogKeeping({ logs, limits, state, loop, reserve, log, ...clock });
    const rowKeeping = new RowKeeping({
      ...{ dataDir: options.dataDir, budgetBytes: rowBudgetBytes(options), state, reserve, log },
      monotonicMs: clock.monotonicMs,
    });
    releases.push(() => rowKeeping.rows.close());
    const statusOf = (record: JobRecord) =>
      statusOfJob({ ...clock, state, taskStatus, reasons: loop.reasons }, record);
    const statusFiles = new StatusFiles({
      ...{ ...clock, state, store, statusOf, log },
      directoryOf: (jobId) => logs.directoryOf(jobId),
    });
    releases.push(() => statusFiles.close());
    releases.push(() => loop.stop());
    const arrays = new ArrayFiller({ state, store, loop, random });
    const retention = new Retention({
      ...{ state, store, logs, rows: rowKeeping.rows, keep: options.keep, onFatal, ...clock },
      publishedSeq: async () =>
        options.natsUrl === null ? state.lastEventSeq : Number((await store.readMeta(natsCursorName)) ?? 0),
    });
    leases.attach(loop);
    releases.push(() => leases.close());

    const { host } = listenAddress(options.listen);
    const { dataDir, advertise } = options;
    const tls = await openServerTls({
      ...{ dataDir, clusterId: state.clusterId, host, advertise, random, log },
      wallMs: clock.wallMs,
    });
    releases.push(() => tls?.close());

    const shared = {
      gate,
      state,
      store,
      loop,
      agents,
      leases,
      taskStatus,
      orphans,
      pacer,
      paths,
      logs,
      logEvents: logKeeping.logEvents,
      intake: logKeeping.intake,
      rowKeeping,
      log,
      reserve,
      arrays,
      random,
      committed,
      notices,
      timeLimits,
      hangWatch,
      statusOf,
      telemetry,
      pages,
      contained,
      ...clock,
    };
    const nodeViews = () =>
      buildView(new Draft(state), agents.online(), waitTimes, orphanGpusOf, clock.monotonicMs()).nodes;
    const connections = new Connections({
      limits: connectionLimits(descriptorsMax()),
      monotonicMs: () => clock.monotonicMs(),
      log,
    });
    const server = await startServer(
      options.listen,
      gate,
      connections,
      {
        muster: {
          ...jobCalls({ ...shared, nodeViews }),
          ...streamCalls({ ...shared, backup: () => openedStore.backup(clock.wallMs()) }),
          ...nodeCalls(shared),
          ...credentialCalls({
            ...shared,
            authorityDigest: tls?.authorityDigest ?? null,
            storeAdminToken: (token) => adminToken.write(token),
          }),
          ...telemetryCalls(shared),
        },
        agentHub: agentHubCalls({
          ...shared,
          heartbeatIntervalMs: options.heartbeatIntervalMs,
          credentialLifetimeMs: options.credentialLifetimeMs,
          leaseMs: options.leaseMs,
          term: (node) => ({ term: leases.term, termProof: leases.termProofOf(node) }),
          checkAccount: (account) => leases.checkAccount(account),
        }),
      },
      tls?.credentials ?? null,
    );
    releases.push(() => server.close());
    releases.push(() => agents.endAll());

    let http: RunningHttpServer | null = null;
    if (options.httpListen !== null) {
      // Loaded only where they are used: the metrics library costs memory too.
      const { CoordinatorMetrics } = await import('./metrics/coordinatorMetrics.ts');
      const { startHttpServer } = await import('./http/httpServer.ts');
      const own = new CoordinatorMetrics({ ...shared, connections, clock, waitTimes });
      metrics = own;
      http = await startHttpServer(options.httpListen, {
        ownPage: () => own.page(),
        nodePage: (node) => pages.requestPage(node),
        nodes: () => [...state.nodes.keys()].sort(),
        log,
      });
      releases.push(() => http?.close());
    }

    if (options.natsUrl !== null) {
      // Loaded only where it is used: the client costs memory that a lab without NATS need not pay.
      const { startNatsRelay } = await import('./events/natsRelay.ts');
      const relay = startNatsRelay(options.natsUrl, {
        ...{ clusterId: state.clusterId, store, committed, log },
        credentials: options.natsCredentials,
      });
      releases.push(() => relay.close());
    }

    const periodic: Readonly<Record<string, ContainedWork>> = {
      reserve: () => reserve.restoreBallast(),
      telemetry: () => telemetry.sweep(),
      leases: () => leases.run(),
      startDeadlines: () => startDeadlines.run(state, loop),
      timeLimits: () => timeLimits.run(state, loop),
      hangWatch: () => hangWatch.run(state, loop),
      drains: () => drains.run(state, loop),
      arrays: () => arrays.run(),
      heldBackStatus: () => publishHeldBackStatus(pacer, loop),
      retention: () => retention.run(),
      gpuStats: () => gpuStats.run(state),
      statusFiles: () => statusFiles.run(),
      logKeeping: () => logKeeping.run(),
      rowBudget: () => rowKeeping.budget.run(),
      joinTokens: () => removeExpiredJoinTokens(state, loop, clock.wallMs()),
      credentialUse: () => storeLastUse(state, gate, loop),
      renewals: () => askToRenew({ ...clock, state, agents, lifetimeMs: options.credentialLifetimeMs }),
      refusals: () => gate.refusals.run(),
    };
    const timer = setInterval(() => {
      for (const [name, run] of Object.entries(periodic)) void contained.run(name, run);
    }, tickMs);
    releases.push(() => clearInterval(timer));

    const httpAddress = http?.address ?? null;
    const connection = {
      addr: server.address,
      tokenFile: adminToken.path,
      http: httpAddress,
      ca: tls?.authorityPath ?? null,
      advertised: addressesForOthers(host, advertise, server.address),
    };
    writeFileDurably(join(options.dataDir, 'connection.json'), `${JSON.stringify(connection)}\n`, 0o600);
    loop.wake();
    const identity = tls === null ? 'no TLS' : `TLS, CA sha256:${tls.authorityDigest.toString('hex')}`;
    log.info(
      { http: httpAddress, cluster: state.clusterId, jobs: state.jobs.size },
      `listening on ${listenedOn(host, server.address)} (${identity})`,
    );
    return { address: server.address, httpAddress, close: release };
  } catch (error) {
    await release();
    throw asUserError(error);
  }
}

/** Which interfaces it serves, with the port that it got. */
function listenedOn(host: string, address: string): string {
  return formatAddress({ host, port: parseAddress(address)?.port ?? 0 });
}

function leaseSettings(options: CoordinatorOptions): LeaseSettings {
  const { leaseMs, fenceMs, fenceMarginMs: marginMs, clockRateError } = options;
  return { leaseMs, fenceMs, marginMs, clockRateError };
}

/** null: it cannot be read, so no machine counts as this one. */
function readBootId(): string | null {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim() || null;
  } catch {
    return null;
  }
}

function prepareDataDir(dataDir: string): void {
  // Whatever is written here from now on, SQLite's files included, is the owner's alone.
  process.umask(0o077);
  try {
    makeDirectories(dataDir, 0o700);
    accessSync(dataDir, constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new MusterError(
      'failed_precondition',
      `the data directory ${dataDir} cannot be created or written (${messageOf(error)}); check owner and mode, or use another --data`,
      { cause: error },
    );
  }
}

function asUserError(error: unknown): MusterError {
  if (error instanceof MusterError) return error;
  if (error instanceof StoreError)
    return new MusterError('failed_precondition', error.message, { cause: error });
  return new MusterError('internal', `the coordinator could not start: ${messageOf(error)}`, {
    cause: error,
  });
}
