/**
 * A coordinator that answers what a test tells it to, over real gRPC on a free loopback port. It checks the token like
 * the real one and remembers every request.
 */
import {
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServerWritableStream,
  type sendUnaryData,
  status,
} from '@grpc/grpc-js';
import { nothingRan } from '@muster/common/cause';
import type { Checkpoint } from '@muster/common/checkpoints';
import type { ClusterView } from '@muster/common/clusterView';
import type { Condition } from '@muster/common/conditions';
import { MusterError } from '@muster/common/errors';
import { bareGpu, emptyInventory, type Gpu } from '@muster/common/hardware';
import type { GpuReading, HostReading } from '@muster/common/telemetry';
import type {
  AttemptView,
  Cause,
  EventView,
  JobView,
  LogPiece,
  NodeView,
  TaskEnd,
  TaskView,
} from '@muster/common/views';
import {
  eventToWire,
  jobToWire,
  metricsToWire,
  nodeTelemetryToWire,
  nodeToWire,
  summaryToWire,
} from '@muster/common/wire/codec';
import { musterService } from '@muster/common/wire/service';
import { toServiceError } from '@muster/common/wire/status';

export const fakeToken = 'muster_admin_token_of_a_test';
export const fakeUserToken = 'muster_user_token_of_a_test';

/** With which `muster login` may call it. */
export const fakeLoginCode = 'muster_login_of_a_test';

/**
 * One wire message for a call. For a stream an async iterable of them, written with back-pressure, with a signal that
 * fires when the caller is gone. A thrown MusterError ends either with it.
 */
type Answer = (request: never, aborted: AbortSignal) => unknown;

/** By method name, such as `GetJob`. Every other method answers UNIMPLEMENTED. */
export type Answers = Readonly<Record<string, Answer>>;

export interface FakeCoordinator {
  readonly address: string;
  readonly requests: readonly { readonly method: string; readonly request: unknown }[];
  /** Every connection is cut, as when the process is killed. */
  kill(): void;
}

const streams = new Set(['ReadLogs', 'WatchEvents', 'WatchMetrics']);
/** They need no token. */
const callsForAnyone = new Set(['GetLoginMethod', 'LoginWithIdToken']);

/** @param listen port 0: a free one */
export async function startFakeCoordinator(
  answers: Answers,
  listen = '127.0.0.1:0',
): Promise<FakeCoordinator> {
  const server = new Server({ 'grpc.max_receive_message_length': 4 * 1024 * 1024 });
  const requests: { method: string; request: unknown }[] = [];
  const implementation = Object.fromEntries(
    Object.keys(musterService).map((method) => {
      const makeHandler = streams.has(method) ? streamHandler : unaryHandler;
      const record = (request: unknown) => requests.push({ method, request });
      return [method, makeHandler(method, answers[method], record)];
    }),
  );
  server.addService(musterService, implementation);
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync(listen, ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  return { address: `127.0.0.1:${port}`, requests, kill: () => server.forceShutdown() };
}

function unaryHandler(method: string, answer: Answer | undefined, record: (request: unknown) => void) {
  return (call: ServerUnaryCall<unknown, unknown>, callback: sendUnaryData<unknown>): void => {
    const respond = async () => {
      if (!callsForAnyone.has(method)) requireToken(call);
      record(call.request);
      if (answer === undefined) throw new MusterError('internal', 'the test gave no answer to this call');
      return answer(call.request as never, new AbortController().signal);
    };
    respond().then(
      (response) => callback(null, response),
      (error: unknown) => callback(serviceError(error)),
    );
  };
}

function streamHandler(_method: string, answer: Answer | undefined, record: (request: unknown) => void) {
  return (call: ServerWritableStream<unknown, unknown>): void => {
    const aborted = new AbortController();
    call.on('cancelled', () => aborted.abort());
    call.on('error', () => {});
    const write = async () => {
      requireToken(call);
      record(call.request);
      if (answer === undefined) throw new MusterError('internal', 'the test gave no answer to this stream');
      const messages = answer(call.request as never, aborted.signal) as AsyncIterable<unknown>;
      for await (const message of messages) {
        if (aborted.signal.aborted) return;
        if (call.write(message)) continue;
        await new Promise<void>((resolve) => {
          call.once('drain', () => resolve());
          aborted.signal.addEventListener('abort', () => resolve(), { once: true });
        });
      }
      call.end();
    };
    // As a coordinator ends a stream: `destroy` would tear it down before gRPC could send the status.
    write().catch((error: unknown) => call.emit('error', serviceError(error)));
  };
}

function requireToken(call: { metadata: { get(name: string): unknown[] } }): void {
  const [given] = call.metadata.get('authorization');
  if (![fakeToken, fakeUserToken, fakeLoginCode].some((each) => given === `Bearer ${each}`))
    throw new MusterError('unauthenticated', 'no or unknown token');
}

function serviceError(error: unknown) {
  if (error instanceof MusterError)
    return { name: 'Error', message: error.message, ...toServiceError(error) };
  return { code: status.INTERNAL, details: String(error) };
}

/** A stream that stays open and says nothing, until its reader goes. */
export async function* silentStream(_request: unknown, aborted: AbortSignal): AsyncGenerator<never> {
  await new Promise<void>((resolve) => {
    aborted.addEventListener('abort', () => resolve(), { once: true });
  });
  yield* [];
}

// ---- What tests put into answers. Every field has a default, so each one that a test sets matters.

export const submittedAtMs = Date.UTC(2026, 0, 2, 3, 4, 5);

export function aJob(given: Partial<JobView> = {}): JobView {
  return {
    id: 'job_0123456789ab',
    name: 'train',
    project: 'default',
    traceId: '0af7651916cd43dd8448eb211c80319c',
    user: 'admin',
    state: 'queued',
    spec: { name: 'train', command: ['python', 'train.py'], resources: { nodes: 1, gpus: 0 } },
    submittedAtMs,
    endedAtMs: null,
    pending: null,
    cause: null,
    attempts: [],
    array: null,
    requeuedFrom: null,
    resumedFrom: null,
    submitSeq: 1,
    excludedNodes: [],
    checkpoints: [],
    training: null,
    ledger: [],
    phases: null,
    preemptions: 0,
    batchScale: 1,
    lrScale: 1,
    extraRuntimeMs: 0,
    failures: 0,
    costUsd: null,
    outputAtMs: null,
    ...given,
  };
}

export function aNode(given: Partial<NodeView> = {}): NodeView {
  return {
    name: 'node-1',
    state: 'online',
    inventory: {
      ...emptyInventory,
      cpus: 8,
      memoryMb: 65_536,
      addresses: ['127.0.0.1'],
      drivers: ['process'],
    },
    agentVersion: '0.1.0',
    joinedAtMs: submittedAtMs,
    silentForMs: 100,
    gpuUses: [],
    cpusUsed: 0,
    memoryUsedMb: 0,
    conditions: [],
    drained: false,
    drainedGpuUuids: [],
    fencedInMs: null,
    bandwidths: [],
    drain: null,
    tasks: [],
    orphans: [],
    ...given,
  };
}

/** `GPU-0`, `GPU-1` … */
export function aGpu(index: number, given: Partial<Gpu> = {}): Gpu {
  return { ...bareGpu(`GPU-${index}`), index, model: 'NVIDIA H100', memoryMb: 81_920, ...given };
}

export function aCondition(given: Partial<Condition> = {}): Condition {
  return {
    kind: 'xid_79',
    gpuUuid: 'GPU-0',
    severity: 'critical',
    action: 'drain_gpu',
    message: 'GPU 0 has fallen off the bus.',
    evidence: 'NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen off the bus.',
    sinceMs: submittedAtMs,
    lastSeenAtMs: submittedAtMs,
    count: 1,
    clears: 'by_hand',
    task: null,
    ...given,
  };
}

/** Of GPU-0; nothing was read but what is given. */
export function aReading(given: Partial<GpuReading> = {}): GpuReading {
  return {
    gpuUuid: 'GPU-0',
    atMs: submittedAtMs + 50_000,
    intervalMs: 10_000,
    task: null,
    utilization: null,
    memoryUsedMb: null,
    powerWatts: null,
    energyJoules: null,
    smActive: null,
    tensorActive: null,
    dramActive: null,
    temperature: null,
    nvlinkReceiveBytes: null,
    nvlinkTransmitBytes: null,
    ...given,
  };
}

export function aHostReading(given: Partial<HostReading> = {}): HostReading {
  return {
    atMs: submittedAtMs + 50_000,
    intervalMs: 10_000,
    cpuUtilization: null,
    memoryUsedMb: null,
    load1: null,
    networkReceiveBytes: null,
    networkTransmitBytes: null,
    ...given,
  };
}

export function anAttempt(given: Partial<AttemptView> = {}): AttemptView {
  return {
    number: 1,
    state: 'running',
    tasks: [],
    cause: null,
    allocatedAtMs: submittedAtMs,
    runningAtMs: submittedAtMs,
    endedAtMs: null,
    masterAddr: null,
    masterPort: null,
    gpuUsage: null,
    resume: null,
    leaseMs: null,
    signs: [],
    hungAtMs: null,
    firstStepAtMs: null,
    hangs: false,
    ...given,
  };
}

/** Of rank 0 on node-1, with nothing to show it. */
export function aCause(kind: Cause['kind'], message: string, given: Partial<Cause> = {}): Cause {
  return { kind, message, nodeRank: 0, node: 'node-1', evidence: null, blame: 'job', ...given };
}

/** It ended, and nothing more is known. */
export function anEnd(given: Partial<TaskEnd> = {}): TaskEnd {
  return { ...nothingRan, ...given };
}

/** Verified, on node-1. */
export function aCheckpoint(given: Partial<Checkpoint> = {}): Checkpoint {
  return {
    name: 'checkpoint-500',
    version: 'v1',
    step: 500,
    format: 'huggingface',
    bytes: 3 * 1024 * 1024,
    files: 4,
    savedAtMs: submittedAtMs,
    saveDurationMs: 2_000,
    metrics: {},
    digest: null,
    verdict: 'verified',
    depth: 'quick',
    problem: null,
    attempt: 1,
    node: 'node-1',
    shared: false,
    suspect: false,
    reread: false,
    ...given,
  };
}

/** Of rank 0 on node-1, running. */
export function aTask(given: Partial<TaskView> = {}): TaskView {
  return {
    nodeRank: 0,
    node: 'node-1',
    gpuUuids: [],
    state: 'running',
    exit: null,
    frozen: false,
    doing: null,
    address: null,
    gpuIndexes: [],
    ...given,
  };
}

export function aCluster(given: Partial<ClusterView> = {}): ClusterView {
  return {
    id: 'abc',
    version: '0.1.0',
    lastEventSeq: 0,
    nodesOnline: 1,
    nodesTotal: 1,
    jobsQueued: 0,
    jobsActive: 0,
    pausedBecause: '',
    clockProblem: '',
    maintenanceMs: 0,
    ...given,
  };
}

export function anEvent(seq: number, given: Partial<EventView> = {}): EventView {
  const kind = given.kind ?? 'job.submitted';
  const subject = given.subject ?? 'job_0123456789ab';
  return {
    seq,
    id: `event-${seq}`,
    kind,
    subject,
    subjectSeq: seq,
    timeMs: submittedAtMs,
    cloudEvent: { specversion: '1.0', id: `event-${seq}`, type: kind, subject, data: { name: 'train' } },
    ...given,
  };
}

export function logPiece(data: string | Uint8Array, given: Partial<LogPiece> = {}): LogPiece {
  return {
    attempt: 1,
    nodeRank: 0,
    offset: 0,
    data: Buffer.from(data),
    complete: false,
    missing: null,
    ...given,
  };
}

export const wire = {
  job: jobToWire,
  node: nodeToWire,
  event: eventToWire,
  telemetry: nodeTelemetryToWire,
  metrics: metricsToWire,
  summary: summaryToWire,
};
