/** One run of the coordinator, by its own composition root, on a simulated store, clock and network. */
import { Metadata } from '@grpc/grpc-js';
import type { Clock } from '@muster/common/clock';
import { MusterError } from '@muster/common/errors';
import type { Logger } from '@muster/common/log';
import { musterService } from '@muster/common/wire/service';
import { statusOfCode } from '@muster/common/wire/statusCodes';
import { type Established, establish } from '@muster/coordinator/auth/establish';
import type { Gate } from '@muster/coordinator/auth/gate';
import { identify } from '@muster/coordinator/auth/interceptor';
import { newCredential } from '@muster/coordinator/auth/tokens';
import type { Identity } from '@muster/coordinator/caller';
import type { MachineClock } from '@muster/coordinator/clock/kernelClock';
import { openCoordinator } from '@muster/coordinator/coordinator';
import type { OutputFiles, OutputParts } from '@muster/coordinator/output';
import { grpcHandlers } from '@muster/coordinator/rpc/calls';
import { type WebhookDelivery, webhookDeliveries } from '@muster/coordinator/rpc/webhookDeliveries';
import type { SecretKeys } from '@muster/coordinator/secrets/keyFile';
import { ClusterState } from '@muster/coordinator/state/state';
import { type Store, StoreError } from '@muster/coordinator/store/store';
import type { ListData } from '@muster/coordinator/triggers/dataListing';
import { noUpkeep } from '@muster/coordinator/upkeep/upkeepFixture';
import type { ContainedWork } from '@muster/coordinator/work/contained';
import { clockRateError } from './clock.ts';
import type { Random } from './random.ts';
import type { Life } from './timeline.ts';

type RowKeeping = OutputParts['rowKeeping'];
type StepLogs = Pick<OutputParts['logs'], 'size' | 'read' | 'tailOffset'>;

export interface CoordinatorParts {
  readonly life: Life;
  readonly store: Store;
  readonly clock: Clock;
  readonly machineClock: MachineClock;
  readonly random: Random;
  readonly log: Logger;
  readonly heartbeatIntervalMs: number;
  /** What the jobs of steps of pipelines have printed. */
  readonly logs: StepLogs;
  readonly listData: ListData;
  /** On its disk. */
  readonly secretKeys: SecretKeys;
  /** It gave up on its store. */
  readonly onFatal: (error: Error) => void;
}

type Calls = ReturnType<typeof grpcHandlers>;
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
  | 'ExtendJob'
  | 'AddUser'
  | 'CreateUserToken'
  | 'CreateAlert'
  | 'ListAlerts'
  | 'SilenceAlert'
  | 'AcknowledgeAlert'
  | 'DeleteAlert'
  | 'RunPipeline'
  | 'ListPipelines'
  | 'StopPipeline'
  | 'CreateTrigger'
  | 'PauseTrigger'
  | 'ResumeTrigger'
  | 'DeleteTrigger';

export interface CoordinatorProcess {
  readonly life: Life;
  /** @param call the server's end of a stream */
  openSession(call: unknown): void;
  /** @param token of a user. null: the admin's */
  unary(
    name: UnaryName,
    request: unknown,
    token: string | null,
    answer: (error: unknown, response: unknown) => void,
  ): void;
  /** Over HTTP, from somebody without a token. */
  deliver(delivery: WebhookDelivery, answer: (error: unknown, response: unknown) => void): void;
  watchEvents(call: object): void;
}

/** Of tests. */
export const leaseSettings = { leaseMs: 6_000, fenceMs: 2_000, marginMs: 2_000, clockRateError } as const;

/** The credential of everybody. It never has to be renewed: how that is done has tests of its own. */
export const simulated = newCredential({
  id: 'simulated',
  kind: 'admin',
  subject: 'admin',
  secretHash: 'simulated',
  createdAtMs: 0,
  expiresAtMs: Number.MAX_SAFE_INTEGER,
});

/** Resolves when it serves. To be called in the turn of the process itself. */
export async function startCoordinator(parts: CoordinatorParts): Promise<CoordinatorProcess> {
  const { store, clock, log, heartbeatIntervalMs, life } = parts;
  const state = new ClusterState(await store.load());
  // No agent joins here, and none is revoked.
  state.setCredential(simulated.id, simulated);
  const coordinator = await openCoordinator({
    settings: {
      heartbeatIntervalMs,
      credentialLifetimeMs: 7 * 24 * 60 * 60_000,
      leases: leaseSettings,
      leaseFreeBootId: null,
      telemetryBytes: 2 ** 20,
      prices: [],
      telemetryPath: null,
      builtInAlerts: ['job_failed', 'node_lost'],
    },
    state,
    store,
    clock,
    machineClock: parts.machineClock,
    random: (size) => parts.random.bytes(size),
    log,
    contained: { run: runUncontained },
    reserve: { requireSpace() {}, restore() {}, paused: () => null },
    openOutput: () => outputWith(parts.logs),
    listData: parts.listData,
    runFenceCommand: null,
    secretKeys: parts.secretKeys,
    machine: { diskFreePercent: () => null, certificateExpiresAtMs: () => null },
    backup: noBackup,
    readHistory: null,
    onFatal: parts.onFatal,
  });
  const calls = coordinator.calls({
    authorityDigest: null,
    idTokens: null,
    nodeCertificates: null,
    storeAdminToken: () => {},
    upkeep: noUpkeep,
  });
  const muster = grpcHandlers(calls.muster);
  const { agentHub } = calls;
  const deliver = webhookDeliveries(coordinator);
  setInterval(() => void coordinator.reconcile().catch(() => {}), coordinator.tickMs);
  coordinator.loop.wake();

  return {
    life,
    openSession: (call) => agentHub.Session(call as Parameters<typeof agentHub.Session>[0]),
    unary: (name, request, token, answer) => {
      const established = token === null ? null : callerWith(coordinator.gate, name, token);
      if (established?.caller === null) {
        const { code, message } = established.refusal;
        answer({ code: statusOfCode[code], details: message }, null);
      } else callUnary(muster, name, request, established?.caller ?? admin, answer);
    },
    deliver: (delivery, answer) =>
      void deliver(delivery).then(
        (done) => answer(null, done),
        (error: unknown) => answer(asStatus(error), null),
      ),
    watchEvents: (call) =>
      muster.WatchEvents(
        Object.assign(call, { metadata: metadataOf(admin) }) as Parameters<typeof muster.WatchEvents>[0],
      ),
  };
}

/** What fails at once ends the coordinator here, so that no fault is hidden. Commands may be refused, as in the product. */
async function runUncontained(_name: string, work: ContainedWork): Promise<void> {
  const begun = work();
  await Promise.allSettled(Array.isArray(begun) ? begun : [begun]);
}

/** Output and rows of metrics have tests of their own; nothing in the simulation may use them, but what steps say of their artifacts. */
const outputWith = (logs: StepLogs): OutputFiles => ({
  parts: {
    logs: unused('logs', logs) as OutputParts['logs'],
    logEvents: unused('logEvents') as OutputParts['logEvents'],
    intake: unused('intake') as OutputParts['intake'],
    rowKeeping: {
      rows: unused('rows', {
        lookAt: rowOf,
        here: async () => ({ position: 1, step: 1, mark: null }),
      }) as RowKeeping['rows'],
      budget: unused('rowBudget') as RowKeeping['budget'],
      intake: unused('rowIntake') as RowKeeping['intake'],
      onComplete: () => {},
      ended: async () => {},
    },
    budgets: () => [],
  },
  reconcilers: {},
  committed() {},
  async close() {},
});

/** Every job has printed one loss, which is always the same one. */
const rowOf: RowKeeping['rows']['lookAt'] = (jobId, use) => {
  const evalLoss = Number.parseInt(jobId.slice(-4), 36);
  const row = { atMs: 0, values: { step: 1, eval_loss: evalLoss }, notFinite: 0, bucket: null };
  const frame = { attempt: 1, nodeRank: 0, position: 1, rows: [row] };
  return use({
    isThinned: false,
    firstSteps: new Map(),
    omitted: [],
    read: async (onFrame) => onFrame(frame),
  });
};

function unused(name: string, used: object = {}): object {
  return new Proxy(used, {
    get(target, member) {
      if (member in target) return Reflect.get(target, member);
      throw new Error(`the simulation has no ${name}, and ${String(member)} was used`);
    },
  });
}

/** As the caller of an RPC sees it, which is what clients of the simulation know. */
function asStatus(error: unknown): unknown {
  return error instanceof MusterError ? { code: statusOfCode[error.code], details: error.message } : error;
}

function callUnary(
  calls: Calls,
  name: UnaryName,
  request: unknown,
  caller: Identity,
  answer: (error: unknown, response: unknown) => void,
): void {
  const handler = calls[name] as (call: object, callback: typeof answer) => void;
  handler({ request, metadata: metadataOf(caller) }, answer);
}

const admin: Identity = { kind: 'admin', id: simulated.id, peer: null };

/** As the interceptor leaves it when the credential was right. */
function metadataOf(caller: Identity): Metadata {
  const metadata = new Metadata();
  identify(metadata, caller);
  return metadata;
}

function callerWith(gate: Gate, name: UnaryName, token: string): Established {
  return establish(
    { gate, encrypted: false },
    {
      path: musterService[name].path,
      isStream: false,
      peer: null,
      authorization: `Bearer ${token}`,
      certificate: () => null,
      version: null,
      traceparent: null,
    },
  );
}

/** Only a store on a disk has one. */
function noBackup(): never {
  throw new StoreError('io', 'a store in memory has no backup');
}
