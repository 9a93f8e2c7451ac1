/**
 * The composition root: the coordinator's parts, wired on ports. `main.ts` gives it the ports of a machine, the simulation
 * simulated ones, and tests a store in memory, so that all three run the same wiring.
 *
 * It listens nowhere and sets no timer: its opener serves `calls` and runs the reconcilers.
 */

import type { BuiltInAlertName } from '@muster/common/builtInAlerts';
import type { Clock } from '@muster/common/clock';
import type { NodeName, RandomBytes } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import type { TraceSampler } from '@muster/common/traceContext';
import { OrphanTasks } from './agents/orphans.ts';
import { AgentRegistry } from './agents/registry.ts';
import { StatusPacer } from './agents/statusPacer.ts';
import { TaskAccounts } from './agents/taskAccounts.ts';
import { TaskStatusCache } from './agents/taskStatusCache.ts';
import type { AroundCluster } from './alerts/facts.ts';
import { AlertWatch } from './alertWatch/alertWatch.ts';
import { Gate } from './auth/gate.ts';
import { type MachineClock, openTrustedClock } from './clock/trustedClock.ts';
import type { DiskReserve } from './diskReserve.ts';
import { CommitNotifier, Notices } from './events/notices.ts';
import { RecentEvents } from './events/watch.ts';
import { goOnAfterRestore } from './leases/afterRestore.ts';
import type { RunFenceCommand } from './leases/fenceCommand.ts';
import { fencedAfterMs, type LeaseSettings, longestLeaseMs } from './leases/leases.ts';
import { metaStore } from './leases/metaStore.ts';
import { Loop } from './loop.ts';
import { Arrivals } from './metricStream/arrivals.ts';
import { clusterCounts } from './metrics/counts.ts';
import type { OpenOutput } from './output.ts';
import { PathHistory } from './paths/pathHistory.ts';
import { buildView } from './planning/planningView.ts';
import { WaitTimes } from './planning/waitTimes.ts';
import { costOf } from './prices.ts';
import type { ReadHistory } from './prometheus/metricHistory.ts';
import { ArrayFiller } from './reconcilers/arrayFiller.ts';
import { enforceBudgets } from './reconcilers/budgetLimits.ts';
import { askToRenew, removeExpiredTokens, storeLastUse } from './reconcilers/credentialUse.ts';
import { Drains } from './reconcilers/drains.ts';
import { HangWatch } from './reconcilers/hangWatch.ts';
import { publishHeldBackStatus } from './reconcilers/heldBackStatus.ts';
import { LeaseKeeper } from './reconcilers/leaseKeeper.ts';
import { StartDeadlines } from './reconcilers/startDeadlines.ts';
import { TimeLimits } from './reconcilers/timeLimits.ts';
import { adviceCalls } from './rpc/advice.ts';
import { agentHubCalls } from './rpc/agentHub.ts';
import { alertCalls } from './rpc/alerts.ts';
import { type CredentialCallParts, credentialCalls } from './rpc/credentials.ts';
import { jobCalls } from './rpc/jobs.ts';
import type { JoinParts } from './rpc/join.ts';
import { lineageCalls } from './rpc/lineage.ts';
import { metricStreamCalls } from './rpc/metricStreams.ts';
import { type NodeCallParts, nodeCalls } from './rpc/nodes.ts';
import { type PeopleCallParts, peopleCalls } from './rpc/people.ts';
import { pipelineCalls } from './rpc/pipelines.ts';
import { secretCalls } from './rpc/secrets.ts';
import { type StreamCallParts, streamCalls } from './rpc/streams.ts';
import { sweepCalls } from './rpc/sweeps.ts';
import { telemetryCalls } from './rpc/telemetry.ts';
import { triggerCalls } from './rpc/triggers.ts';
import { openRunners, type Runners } from './runners.ts';
import type { SecretKeys } from './secrets/keyFile.ts';
import { SecretVault } from './secrets/vault.ts';
import type { Committed } from './state/committed.ts';
import { type ClusterState, Draft } from './state/state.ts';
import type { JobRecord, Store, StoreError } from './store/store.ts';
import { ClusterHistory } from './telemetry/clusterHistory.ts';
import { PageRequests } from './telemetry/pageRequests.ts';
import { TelemetryFile } from './telemetry/telemetryFile.ts';
import { TelemetryStore } from './telemetry/telemetryStore.ts';
import { GpuStatsPublisher } from './training/gpuStats.ts';
import { statusOf as statusOfJob } from './training/status.ts';
import type { ListData } from './triggers/dataListing.ts';
import type { Contained, ContainedWork } from './work/contained.ts';

export interface CoordinatorSettings {
  readonly heartbeatIntervalMs: number;
  readonly credentialLifetimeMs: number;
  readonly leases: LeaseSettings;
  /** The boot of the machine whose tasks run without a lease where the job does not say. null: none does. */
  readonly leaseFreeBootId: string | null;
  /** Memory for the readings of jobs' GPUs, bytes. */
  readonly telemetryBytes: number;
  /** Of GPUs; empty: jobs have no cost. */
  readonly prices: Parameters<typeof costOf>[2];
  /** Where readings are kept over a restart, absolute; null: nowhere. */
  readonly telemetryPath: string | null;
  /** Of those that are built in, the alerts that are switched on. */
  readonly builtInAlerts: readonly BuiltInAlertName[];
}

export interface CoordinatorPorts {
  readonly settings: CoordinatorSettings;
  /** What `store` had when it was loaded. */
  readonly state: ClusterState;
  readonly store: Store;
  /** The system's clocks. */
  readonly clock: Clock;
  /** What the wall clock is compared with. Null: it is trusted as it is. */
  readonly machineClock: MachineClock | null;
  readonly random: RandomBytes;
  readonly log: Logger;
  /** Runs work whose failure must not reach beyond itself. */
  readonly contained: Pick<Contained, 'run'>;
  /** Space on the disk that is kept for commits which make room. */
  readonly reserve: Pick<DiskReserve, 'requireSpace' | 'restore' | 'paused'>;
  /** Opens what is kept on disk beside the store: the output of tasks, their rows of metrics and status pages. */
  readonly openOutput: OpenOutput;
  /** Lists what triggers watch. */
  readonly listData: ListData;
  /** Asks the Prometheus that scrapes this cluster; null: there is none. */
  readonly readHistory: ReadHistory | null;
  /** Which traces are recorded. Absent: none is. */
  readonly isSampled?: TraceSampler;
  /** null: there is none. */
  readonly runFenceCommand: RunFenceCommand | null;
  /** What secrets are encrypted with. */
  readonly secretKeys: SecretKeys;
  /** Of the store, while it is in use. @throws {StoreError} when there is none */
  readonly backup: StreamCallParts['backup'];
  /** What alerts may know of the machine of the coordinator. */
  readonly machine: Pick<AroundCluster, 'diskFreePercent' | 'certificateExpiresAtMs'>;
  /** The store is in an unknown state: nothing may be acknowledged any longer. */
  readonly onFatal: (error: StoreError) => void;
  /** Called with each commit after the coordinator's own parts. */
  readonly onCommitted?: (change: Committed) => void;
  /** An operation was refused that would have broken this guarantee, such as `G2`. */
  readonly onViolation?: (guarantee: string) => void;
}

/** What only the one who serves the calls knows. */
export type ServerFacts = Pick<CredentialCallParts, 'authorityDigest' | 'storeAdminToken'> &
  Pick<PeopleCallParts, 'idTokens'> &
  Pick<JoinParts, 'nodeCertificates'> &
  Pick<NodeCallParts, 'upkeep'>;

/**
 * Continues from what is stored. Resolves when calls may be served.
 * @throws {StoreError} when the store cannot be read or written
 */
export async function openCoordinator(ports: CoordinatorPorts) {
  const { settings, state, store, random, log, contained, reserve, onFatal } = ports;
  const clock = await openTrustedClock(ports);
  const { wallMs, monotonicMs } = clock;
  const now = { wallMs, monotonicMs };
  const { heartbeatIntervalMs, credentialLifetimeMs } = settings;
  const tickMs = Math.min(1_000, heartbeatIntervalMs);

  const gate = new Gate({ ...now, clock, state, log });
  const agents = new AgentRegistry(clock, heartbeatIntervalMs);
  for (const node of state.nodes.keys()) agents.expect(node);
  const orphans = new OrphanTasks(state);
  const taskAccounts = new TaskAccounts();
  const orphanGpus = (node: NodeName) => orphans.gpusOf(node);

  const longestMs = longestLeaseMs(state.jobs.values(), settings.leases.leaseMs);
  const quietMs = fencedAfterMs(settings.leases, longestMs);
  const restored = await goOnAfterRestore({ state, store, wallMs, quietMs });
  if (restored !== null)
    log.warn({ ...restored }, 'this store was restored from a backup, or accepted with losses');
  const leases = await LeaseKeeper.open({
    state,
    store: metaStore({ store, onFatal }),
    agents,
    clock,
    random,
    log,
    settings: settings.leases,
    tickMs,
    runFenceCommand: ports.runFenceCommand,
  });
  const paths = await PathHistory.open(store, state);

  const waitTimes = new WaitTimes();
  for (const job of state.jobs.values()) waitTimes.follow(job, monotonicMs());
  const taskStatus = new TaskStatusCache();
  clock.onSet = (byMs) => taskStatus.clockWasSet(byMs);
  const pacer = new StatusPacer(monotonicMs);
  const committed = new CommitNotifier();
  const notices = new Notices(committed);
  const events = new RecentEvents(store);
  const telemetry = new TelemetryStore({ state, clock, bytesMax: settings.telemetryBytes });
  const clusterHistory = new ClusterHistory({
    ...now,
    sample: () => clusterCounts({ ...now, state, agents, waitTimes }),
  });
  const telemetryFile =
    settings.telemetryPath === null
      ? null
      : new TelemetryFile({ path: settings.telemetryPath, telemetry, clusterHistory, reserve, clock, log });
  await telemetryFile?.load();
  const pages = new PageRequests();

  const loop = new Loop({
    state,
    store,
    clock,
    log,
    waitTimes,
    onlineNodes: () => agents.online(),
    paused: () => leases.paused() ?? reserve.paused(),
    needsPreflight: (node) => paths.needsPreflight(node),
    leaseMs: settings.leases.leaseMs,
    leaseFreeBootId: settings.leaseFreeBootId,
    orphanGpus,
    onViolation: (guarantee) => ports.onViolation?.(guarantee),
    contained,
    followers: {
      gate: (change) => gate.committed(change),
      clock: (change) => clock.committed(change),
      orphans: (change) => orphans.committed(change),
      taskAccounts: (change) => taskAccounts.committed(change),
      agents: (change) => agents.committed(change),
      taskStatus: (change) => taskStatus.committed(change),
      paths: (change) => paths.committed(change.events),
      output: (change) => output.committed(change),
      // Before the watchers, who read from there.
      events: (change) => events.committed(change.events),
      watchers: (change) => committed.notify(change.events.map((event) => event.subject)),
      alerts: (change) => alerts.committed(change),
      sweeps: (change) => runners.sweeps.committed(change),
      pipelines: (change) => runners.pipelines.committed(change),
      triggers: (change) => runners.triggers.committed(change),
      evaluations: (change) => runners.evaluations.committed(change),
      phases: (change) => runners.phases.committed(change),
      others: (change) => ports.onCommitted?.(change),
    },
    onFatal,
  });
  leases.attach(loop);
  const statusOf = (record: JobRecord) =>
    statusOfJob({ ...now, state, taskStatus, reasons: loop.reasons }, record);
  const output = ports.openOutput({ state, store, loop, statusOf, clock });
  const vault = new SecretVault({ store, loop, random, keys: ports.secretKeys });
  const arrays = new ArrayFiller({ state, store, loop, random });
  const timeLimits = new TimeLimits(monotonicMs);
  const startDeadlines = new StartDeadlines(monotonicMs, taskStatus);
  const hangWatch = new HangWatch({ ...now, heartbeatIntervalMs });
  const drains = new Drains(now);
  const gpuStats = new GpuStatsPublisher({ ...now, telemetry, taskStatus, notices });

  const common = { ...now, isCertain: clock.isCertain, state, store, loop, random, log };
  const alerts = new AlertWatch({
    ...common,
    agents,
    taskStatus,
    telemetry,
    machine: ports.machine,
    builtIn: settings.builtInAlerts,
  });
  await alerts.open();
  const arrivals = new Arrivals();
  const costAtPrices = (held: Parameters<typeof costOf>[0]) =>
    costOf(held, state.nodes, settings.prices, wallMs());
  const { logs, rowKeeping } = output.parts;
  const { runningMs } = timeLimits;
  const { listData } = ports;
  const kept = { taskAccounts, logs, rowKeeping };
  const runners: Runners = openRunners({
    ...common,
    ...kept,
    agents,
    vault,
    runningMs,
    costOf: costAtPrices,
    listData,
  });
  telemetry.onTaken = (node, task) => {
    alerts.noteNode(node);
    if (task === null) arrivals.arrived({ kind: 'host', node });
    else {
      alerts.noteSample(task.jobId);
      arrivals.arrived({ kind: 'gpu', node, jobId: task.jobId });
    }
  };
  clusterHistory.onSampled = () => arrivals.arrived({ kind: 'cluster' });
  rowKeeping.rows.onAppended = (jobId, frames) => arrivals.arrived({ kind: 'rows', jobId, frames });

  /** Periodic work, by name. Each looks at what is and makes it what it should be; none remembers what it was about to do. */
  const reconcilers: Readonly<Record<string, ContainedWork>> = {
    clock: () => clock.run(loop),
    reserve: () => reserve.restore(),
    telemetry: () => telemetry.sweep(),
    clusterHistory: () => clusterHistory.run(),
    telemetryFile: () => telemetryFile?.run(),
    leases: () => leases.run(),
    startDeadlines: () => startDeadlines.run(state, loop),
    timeLimits: () => timeLimits.run(state, loop),
    budgets: () => enforceBudgets(state, loop, timeLimits.runningMs),
    hangWatch: () => hangWatch.run(state, loop),
    drains: () => drains.run(state, loop),
    arrays: () => arrays.run(),
    heldBackStatus: () => publishHeldBackStatus(pacer, loop),
    gpuStats: () => gpuStats.run(state),
    alerts: () => alerts.run(),
    sweeps: () => runners.sweeps.run(),
    pipelines: () => runners.pipelines.run(),
    triggers: () => runners.triggers.run(),
    evaluations: () => runners.evaluations.run(),
    phases: () => runners.phases.run(),
    ...output.reconcilers,
    joinTokens: () => (clock.isCertain() ? removeExpiredTokens(state, loop, wallMs()) : []),
    credentialUse: () => storeLastUse(state, gate, loop),
    renewals: () => askToRenew({ ...now, state, agents, lifetimeMs: credentialLifetimeMs }),
    refusals: () => gate.refusals.run(),
    openCalls: () => gate.run(),
  };

  const parts = {
    clock,
    gate,
    state,
    store,
    loop,
    vault,
    agents,
    leases,
    taskStatus,
    orphans,
    taskAccounts,
    pacer,
    paths,
    log,
    reserve,
    arrays,
    random,
    committed,
    notices,
    events,
    timeLimits,
    startDeadlines,
    hangWatch,
    statusOf,
    telemetry,
    clusterHistory,
    arrivals,
    alerts,
    ...runners,
    pages,
    waitTimes,
    ...now,
    ...output.parts,
  };
  const nodeViews = () =>
    buildView(new Draft(state), agents.online(), waitTimes, orphanGpus, monotonicMs()).nodes;
  return {
    ...parts,
    /** The handlers of both services. */
    calls: (server: ServerFacts) => ({
      muster: {
        ...jobCalls({ ...parts, nodeViews, costOf: costAtPrices }),
        ...streamCalls({ ...parts, backup: ports.backup }),
        ...nodeCalls({ ...parts, ...server }),
        ...credentialCalls({ ...parts, ...server }),
        ...peopleCalls({ ...parts, ...server }),
        ...telemetryCalls({ ...parts, readHistory: ports.readHistory }),
        ...metricStreamCalls(parts),
        ...secretCalls(parts),
        ...alertCalls(parts),
        ...sweepCalls({ ...parts, costOf: costAtPrices, hasPrices: settings.prices.length > 0 }),
        ...adviceCalls(settings),
        ...pipelineCalls(parts),
        ...triggerCalls({ ...parts, listData: ports.listData }),
        ...lineageCalls(parts),
      },
      agentHub: agentHubCalls({
        ...parts,
        heartbeatIntervalMs,
        credentialLifetimeMs,
        nodeCertificates: server.nodeCertificates,
        leaseMs: settings.leases.leaseMs,
        isSampled: ports.isSampled ?? null,
        ...leases.hubParts(),
      }),
    }),
    reconcilers,
    /** How often `reconcile` must be called. */
    tickMs,
    /** Runs every reconciler once. Resolves when all of them are done; never rejects. */
    async reconcile(): Promise<void> {
      await Promise.all(Object.entries(reconcilers).map(([name, run]) => contained.run(name, run)));
    },
    /** Ends the work of the parts. The store stays open, for it is the caller's. */
    async close(): Promise<void> {
      agents.endAll();
      await leases.close();
      await loop.stop();
      await output.close();
      await telemetryFile?.close();
      await clock.close();
    },
  };
}
