/** The coordinator on the ports of a machine: opens them in order, serves the calls, and closes all in reverse. */
import { randomBytes } from 'node:crypto';
import { accessSync, constants, statfsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { formatAddress, parseAddress } from '@muster/common/address';
import { hasSinks } from '@muster/common/alertSinkSettings';
import { readBootId } from '@muster/common/boot';
import { systemClock } from '@muster/common/clock';
import { MusterError, messageOf } from '@muster/common/errors';
import { makeDirectories, writeFileDurably } from '@muster/common/files';
import type { RandomBytes } from '@muster/common/ids';
import { createLogger } from '@muster/common/pinoLogger';
import type { RunningSinks } from './alertSinks/start.ts';
import type { RunningApi } from './api/server.ts';
import { usualSseTiming } from './api/sseStream.ts';
import { AdminTokenFile } from './auth/adminToken.ts';
import { kernelClock } from './clock/kernelClock.ts';
import { openCoordinator } from './coordinator.ts';
import { DiskReserve, fillersFor } from './diskReserve.ts';
import { followedSeq } from './events/follower.ts';
import { natsCursorName } from './events/natsCursor.ts';
import type { RunningHttpServer } from './http/httpServer.ts';
import { fenceCommandRunner } from './leases/fenceCommand.ts';
import { type LeaseSettings } from './leases/leases.ts';
import { logLimits } from './logs/logKeeping.ts';
import type { CoordinatorMetrics } from './metrics/coordinatorMetrics.ts';
import { timedStore } from './metrics/timedStore.ts';
import type { CoordinatorOptions } from './options.ts';
import { outputIn } from './output.ts';
import { historyFrom } from './prometheus/metricHistory.ts';
import { PageScrub } from './reconcilers/pageScrub.ts';
import { keepLimits } from './reconcilers/retention.ts';
import { rowBudgetBytes } from './rows/rowKeeping.ts';
import { Connections, connectionLimits } from './rpc/connections.ts';
import { descriptorsMax } from './rpc/descriptors.ts';
import { listenAddress, startServer } from './rpc/server.ts';
import { webhookDeliveries } from './rpc/webhookDeliveries.ts';
import { SecretKeyFile } from './secrets/keyFile.ts';
import { ClusterState } from './state/state.ts';
import { openStore } from './store/openStore.ts';
import { readAttached } from './store/sqlite/attached.ts';
import { StoreError } from './store/store.ts';
import { addressesForOthers, openServerTls } from './tls/serverTls.ts';
import { listData } from './triggers/dataListing.ts';
import { certificateEnds } from './upkeep/certificates.ts';
import { measureDiskUse } from './upkeep/diskUse.ts';
import { Contained } from './work/contained.ts';

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
    state.queued.limitStored(options.queueBytes);
    const adminToken = new AdminTokenFile(options.dataDir);
    await adminToken.ensure(state, store, random, clock.wallMs());
    const space = openedStore.keepOwnSpace(fillersFor(options.reserveBytes));
    const reserve = new DiskReserve(options.dataDir, options.reserveBytes, log, space);
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
    const contained = new Contained(log, clock.monotonicMs);
    let sinks: RunningSinks | null = null;
    let tls: Awaited<ReturnType<typeof openServerTls>> = null;
    const certificates = () => certificateEnds(tls?.ends() ?? null, state);
    // Loaded only where it is used: OpenTelemetry costs memory too.
    const tracing =
      options.otlp === null ? null : (await import('./tracing/start.ts')).openTracing(options.otlp);
    const coordinator = await openCoordinator({
      settings: {
        heartbeatIntervalMs: options.heartbeatIntervalMs,
        credentialLifetimeMs: options.credentialLifetimeMs,
        leases: leaseSettings(options),
        leaseFreeBootId: options.localLeases ? null : ownBootId(),
        telemetryBytes: options.telemetryBytes,
        prices: options.prices,
        telemetryPath: join(options.dataDir, 'telemetry.snapshot'),
        builtInAlerts: options.builtInAlerts,
      },
      listData: (directory) => listData(directory, options.watchDirs),
      state,
      store,
      clock,
      machineClock: kernelClock,
      random,
      log,
      contained,
      reserve,
      openOutput: outputIn({
        dataDir: options.dataDir,
        logLimits: logLimits(options),
        rowBudgetBytes: rowBudgetBytes(options),
        keep: keepLimits(options),
        publishedSeq: async () => {
          const ofNats =
            options.natsUrl === null ? state.lastEventSeq : followedSeq(store, natsCursorName, 0);
          return Math.min(await ofNats, (await sinks?.deliveredSeq()) ?? state.lastEventSeq);
        },
        reserve,
        log,
        onFatal,
      }),
      ...(tracing === null ? {} : { isSampled: tracing.isSampled }),
      readHistory: options.prometheusUrl === null ? null : historyFrom(options.prometheusUrl),
      runFenceCommand:
        options.fenceCommand === null ? null : fenceCommandRunner(options.fenceCommand, process.env),
      secretKeys: new SecretKeyFile(options.dataDir),
      machine: {
        diskFreePercent: () => freePercentOf(options.dataDir),
        certificateExpiresAtMs: () =>
          certificates().reduce<number | null>(
            (first, { expiresAtMs }) => (first === null ? expiresAtMs : Math.min(first, expiresAtMs)),
            null,
          ),
      },
      backup: ({ hasKeys }) =>
        openedStore.backup(coordinator.wallMs(), () =>
          hasKeys ? readAttached(options.dataDir, options.configPath) : [],
        ),
      onFatal,
      onCommitted: (change) => metrics?.committed(change),
      onViolation: (guarantee) => metrics?.violated(guarantee),
    });
    releases.push(() => coordinator.close());
    const { wallMs } = coordinator;
    reserve.restore();

    const { host } = listenAddress(options.listen);
    const { dataDir, advertise } = options;
    tls = await openServerTls({
      dataDir,
      clusterId: state.clusterId,
      host,
      advertise,
      random,
      log,
      wallMs,
      systemWallMs: clock.wallMs,
    });
    releases.push(() => tls?.close());

    const connections = new Connections({
      limits: connectionLimits(descriptorsMax()),
      monotonicMs: () => clock.monotonicMs(),
      log,
    });
    // Loaded only where it is used: the library costs memory too.
    const idTokens =
      options.oidc === null
        ? null
        : new (await import('./auth/idTokens.ts')).IdTokens({ settings: options.oidc, wallMs });
    const upkeep = {
      certificates,
      diskUse: () =>
        measureDiskUse({
          dataDir,
          reserveBytes: options.reserveBytes,
          heldBytes: () => space.heldBytes,
          budgets: coordinator.budgets,
        }),
    };
    const calls = coordinator.calls({
      upkeep,
      idTokens,
      authorityDigest: tls?.authorityDigest ?? null,
      nodeCertificates: tls?.nodeCertificates ?? null,
      storeAdminToken: (token) => adminToken.write(token),
    });
    const { gate, agents } = coordinator;
    const server = await startServer(options.listen, gate, connections, calls, tls?.credentials ?? null);
    releases.push(() => server.close());
    releases.push(() => agents.endAll());

    let http: RunningHttpServer | null = null;
    if (options.httpListen !== null) {
      // Loaded only where they are used: the metrics library costs memory too.
      const { CoordinatorMetrics } = await import('./metrics/coordinatorMetrics.ts');
      const { startHttpServer } = await import('./http/httpServer.ts');
      const own = new CoordinatorMetrics({
        ...coordinator,
        prices: options.prices,
        contained,
        connections,
        upkeep,
      });
      metrics = own;
      http = await startHttpServer(options.httpListen, {
        ownPage: () => own.page(),
        nodePage: (node) => coordinator.pages.requestPage(node),
        nodes: () => [...state.nodes.keys()].sort(),
        log,
      });
      releases.push(() => http?.close());
    }

    let api: RunningApi | null = null;
    if (options.apiListen !== null) {
      // Loaded only where it is used: the framework costs memory that a cluster without it need not pay.
      const { startApi } = await import('./api/server.ts');
      api = await startApi(options.apiListen, {
        gate,
        connections,
        calls: calls.muster,
        deliver: webhookDeliveries(coordinator),
        tls: tls?.https ?? null,
        hosts: tls?.hosts ?? [],
        random,
        log,
        nowMs: () => clock.monotonicMs(),
        wallMs,
        timing: usualSseTiming,
      });
      releases.push(() => api?.close());
    }

    if (options.natsUrl !== null) {
      // Loaded only where it is used: the client costs memory that a lab without NATS need not pay.
      const { startNatsRelay } = await import('./events/natsRelay.ts');
      const relay = startNatsRelay(options.natsUrl, {
        clusterId: state.clusterId,
        store,
        committed: coordinator.committed,
        log,
        credentials: options.natsCredentials,
        settings: { ca: options.natsCa, replicas: options.natsReplicas },
      });
      releases.push(() => relay.close());
    }
    if (options.natsUrl !== null && options.natsSubmit) {
      const { startNatsSubmit } = await import('./api/natsSubmit.ts');
      const submits = startNatsSubmit(options.natsUrl, {
        clusterId: state.clusterId,
        gate,
        calls: calls.muster,
        credentials: options.natsCredentials,
        ca: options.natsCa,
        newRequestId: () => `nats-${Buffer.from(random(16)).toString('hex')}`,
        log,
      });
      releases.push(() => submits.close());
    }
    if (tracing !== null) {
      const tracer = tracing.start({
        clusterId: state.clusterId,
        store,
        log,
        committed: coordinator.committed,
        lastEventSeq: () => state.lastEventSeq,
        wallMs,
        onSpans: (result, count) => metrics?.spans(result, count),
      });
      releases.push(() => tracer.close());
    }
    if (hasSinks(options.alertSinks)) {
      const { openSinks } = await import('./alertSinks/open.ts');
      const { startSinks } = await import('./alertSinks/start.ts');
      const started = startSinks(await openSinks(options.alertSinks, { state, wallMs }), {
        store,
        log,
        wallMs,
        committed: coordinator.committed,
        lastEventSeq: () => state.lastEventSeq,
        onDelivery: (sink, result) => metrics?.delivered(sink, result),
      });
      sinks = started;
      releases.push(() => started.close());
    }

    const timer = setInterval(() => void coordinator.reconcile(), coordinator.tickMs);
    releases.push(() => clearInterval(timer));

    const httpAddress = http?.address ?? null;
    const connection = {
      addr: server.address,
      tokenFile: adminToken.path,
      http: httpAddress,
      api: api?.url ?? null,
      ca: tls?.authorityPath ?? null,
      advertised: addressesForOthers(host, advertise, server.address),
    };
    writeFileDurably(join(options.dataDir, 'connection.json'), `${JSON.stringify(connection)}\n`, 0o600);
    coordinator.loop.wake();
    const identity = tls === null ? 'no TLS' : `TLS, CA sha256:${tls.authorityDigest.toString('hex')}`;
    log.info(
      { http: httpAddress, api: api?.url ?? null, cluster: state.clusterId, jobs: state.jobs.size },
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

/** null: it cannot be read. */
function freePercentOf(directory: string): number | null {
  try {
    const { bavail, blocks } = statfsSync(directory);
    return blocks === 0 ? null : (100 * bavail) / blocks;
  } catch {
    return null;
  }
}

/** null: it cannot be read, so no machine counts as this one. */
function ownBootId(): string | null {
  try {
    return readBootId() || null;
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
