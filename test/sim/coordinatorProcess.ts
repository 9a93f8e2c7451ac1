/**
 * One run of the coordinator: the real loop, registry, sessions, commands and handlers, wired as its main file does, on
 * a simulated store, clock and network.
 */
import { Metadata } from '@grpc/grpc-js';
import type { Clock } from '@muster/common/clock';
import type { NodeName } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import { OrphanTasks } from '@muster/coordinator/agents/orphans';
import { AgentRegistry } from '@muster/coordinator/agents/registry';
import { StatusPacer } from '@muster/coordinator/agents/statusPacer';
import { TaskStatusCache } from '@muster/coordinator/agents/taskStatusCache';
import type { DiskReserve } from '@muster/coordinator/diskReserve';
import { CommitNotifier } from '@muster/coordinator/events/commitNotifier';
import { Notices } from '@muster/coordinator/events/notices';
import { metaStore } from '@muster/coordinator/leases/metaStore';
import type { LogEvents } from '@muster/coordinator/logs/logEvents';
import type { LogIntake } from '@muster/coordinator/logs/logIntake';
import type { LogStore } from '@muster/coordinator/logs/logStore';
import { Loop } from '@muster/coordinator/loop';
import { PathHistory } from '@muster/coordinator/paths/pathHistory';
import { buildView } from '@muster/coordinator/planning/planningView';
import { WaitTimes } from '@muster/coordinator/planning/waitTimes';
import { ArrayFiller } from '@muster/coordinator/reconcilers/arrayFiller';
import { Drains } from '@muster/coordinator/reconcilers/drains';
import { HangWatch } from '@muster/coordinator/reconcilers/hangWatch';
import { publishHeldBackStatus } from '@muster/coordinator/reconcilers/heldBackStatus';
import { LeaseKeeper } from '@muster/coordinator/reconcilers/leaseKeeper';
import { StartDeadlines } from '@muster/coordinator/reconcilers/startDeadlines';
import { TimeLimits } from '@muster/coordinator/reconcilers/timeLimits';
import type { RowKeeping } from '@muster/coordinator/rows/rowKeeping';
import { agentHubCalls } from '@muster/coordinator/rpc/agentHub';
import { jobCalls } from '@muster/coordinator/rpc/jobs';
import { nodeCalls } from '@muster/coordinator/rpc/nodes';
import { streamCalls } from '@muster/coordinator/rpc/streams';
import { ClusterState, Draft } from '@muster/coordinator/state/state';
import { type Credential, type Store, StoreError } from '@muster/coordinator/store/store';
import type { PageRequests } from '@muster/coordinator/telemetry/pageRequests';
import type { TelemetryStore } from '@muster/coordinator/telemetry/telemetryStore';
import { clockRateError } from './clock.ts';
import type { Random } from './random.ts';
import type { Life } from './timeline.ts';

export interface CoordinatorParts {
  readonly life: Life;
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly heartbeatIntervalMs: number;
  readonly hasBallast: () => boolean;
  /** It gave up on its store. */
  readonly onFatal: (error: Error) => void;
}

type Calls = ReturnType<typeof jobCalls> & ReturnType<typeof nodeCalls> & ReturnType<typeof streamCalls>;
export type UnaryName =
  | 'Submit'
  | 'GetJob'
  | 'ListJobs'
  | 'StopJobs'
  | 'RequeueJob'
  | 'ListNodes'
  | 'ClearCondition'
  | 'ConfirmDead'
  | 'SetMaintenance'
  | 'DrainNode'
  | 'UndrainNode'
  | 'ExtendJob';

export interface CoordinatorProcess {
  readonly life: Life;
  /** @param call the server's end of a stream */
  openSession(call: unknown): void;
  unary(name: UnaryName, request: unknown, answer: (error: unknown, response: unknown) => void): void;
  watchEvents(call: unknown): void;
}

/** Of tests. */
export const leaseSettings = { leaseMs: 6_000, fenceMs: 2_000, marginMs: 2_000, clockRateError } as const;

/** The credential of everybody. */
export const simulated: Credential = {
  ...{ id: 'simulated', kind: 'admin', subject: 'admin', secretHash: 'simulated', createdAtMs: 0 },
  ...{ expiresAtMs: null, usedFor: null, nextHash: null, lastUsedAtMs: null, replaces: false },
};

/** Resolves when it serves. To be called in the turn of the process itself. */
export async function startCoordinator(parts: CoordinatorParts): Promise<CoordinatorProcess> {
  const { store, clock, log, heartbeatIntervalMs, life } = parts;
  const state = new ClusterState(await store.load());
  // Nobody joins here, and nobody is revoked.
  state.setCredential(simulated.id, simulated);
  const agents = new AgentRegistry(clock, heartbeatIntervalMs);
  for (const node of state.nodes.keys()) agents.expect(node);
  const waitTimes = new WaitTimes();
  for (const job of state.jobs.values()) waitTimes.follow(job, clock.monotonicMs());
  const timeLimits = new TimeLimits(clock.monotonicMs);
  const taskStatus = new TaskStatusCache();
  const pacer = new StatusPacer(clock.monotonicMs);
  const startDeadlines = new StartDeadlines(clock.monotonicMs, taskStatus);
  const hangWatch = new HangWatch({ ...clock, heartbeatIntervalMs });
  const drains = new Drains(clock);
  const tickMs = Math.min(1_000, heartbeatIntervalMs);
  const settings = leaseSettings;
  const { hasBallast: freeBallast, onFatal } = parts;
  const leases = await LeaseKeeper.open({
    ...{ state, agents, clock, log, settings, tickMs, runFenceCommand: null },
    // Its only use is a key, which is nobody's guess here.
    random: (size) => new Uint8Array(size),
    store: metaStore({ store, freeBallast, onFatal }),
  });
  const paths = await PathHistory.open(store, state);
  const committed = new CommitNotifier();
  const notices = new Notices(committed);
  const orphans = new OrphanTasks(state);
  const orphanGpusOf = (node: NodeName) => orphans.gpusOf(node);
  const loop = new Loop({
    state,
    store,
    clock,
    log,
    waitTimes,
    onlineNodes: () => agents.online(),
    paused: () => leases.paused(),
    leaseMs: settings.leaseMs,
    leaseFreeBootId: null,
    orphanGpus: orphanGpusOf,
    needsPreflight: (node) => paths.needsPreflight(node),
    onViolation: () => {},
    // Here nothing may fail: what does ends the coordinator.
    contained: {
      run(_, work) {
        work();
        return Promise.resolve();
      },
    },
    followers: {
      agents: (change) => agents.committed(change),
      taskStatus: (change) => taskStatus.committed(change),
      paths: (change) => paths.committed(change.events),
      watchers: (change) => committed.notify(change.events.map((event) => event.subject)),
    },
    freeBallast,
    onFatal,
  });
  leases.attach(loop);
  const random = (size: number) => parts.random.bytes(size);
  const arrays = new ArrayFiller({ state, store, loop, random });
  const shared = {
    ...{
      state,
      store,
      loop,
      agents,
      orphans,
      leases,
      taskStatus,
      pacer,
      paths,
      log,
      committed,
      notices,
      timeLimits,
      hangWatch,
      ...clock,
    },
    statusOf: () => '',
    authorityDigest: null,
    // Output, readings and free space have tests of their own; nothing here uses more of them than this.
    logs: {} as LogStore,
    logEvents: {} as LogEvents,
    intake: {} as LogIntake,
    rowKeeping: {} as RowKeeping,
    reserve: { requireSpace() {} } as unknown as DiskReserve,
    telemetry: {} as TelemetryStore,
    pages: {} as PageRequests,
    arrays,
    random,
  };
  const nodeViews = () =>
    buildView(new Draft(state), agents.online(), waitTimes, orphanGpusOf, clock.monotonicMs()).nodes;
  const muster = {
    ...jobCalls({ ...shared, nodeViews }),
    ...nodeCalls(shared),
    ...streamCalls({ ...shared, backup: noBackup }),
  };
  const hub = agentHubCalls({
    ...{ ...shared, heartbeatIntervalMs, leaseMs: settings.leaseMs },
    credentialLifetimeMs: 7 * 24 * 60 * 60_000,
    term: (node) => ({ term: leases.term, termProof: leases.termProofOf(node) }),
    checkAccount: (account) => leases.checkAccount(account),
  });

  setInterval(() => {
    const work = [
      ...leases.run(),
      ...startDeadlines.run(state, loop),
      ...timeLimits.run(state, loop),
      ...hangWatch.run(state, loop),
      ...drains.run(state, loop),
      arrays.run(),
      ...publishHeldBackStatus(pacer, loop),
    ];
    Promise.all(work).catch(() => {});
  }, tickMs);
  loop.wake();

  return {
    life,
    openSession: (call) => hub.Session(call as Parameters<typeof hub.Session>[0]),
    unary: (name, request, answer) => callUnary(muster, name, request, answer),
    watchEvents: (call) => muster.WatchEvents(call as Parameters<typeof muster.WatchEvents>[0]),
  };
}

function callUnary(
  calls: Calls,
  name: UnaryName,
  request: unknown,
  answer: (error: unknown, response: unknown) => void,
): void {
  const handler = calls[name] as (call: object, callback: typeof answer) => void;
  const metadata = new Metadata();
  // As the interceptor leaves it when the credential was right.
  metadata.set('muster-identity', JSON.stringify({ kind: 'admin', id: simulated.id, peer: null }));
  handler({ request, metadata }, answer);
}

/** Only a store on a disk has one. */
function noBackup(): never {
  throw new StoreError('io', 'a store in memory has no backup');
}
