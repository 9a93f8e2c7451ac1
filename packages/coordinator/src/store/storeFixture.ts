/** What the contract suite stores: one of everything, with every field set to something. */
import { bareGpu } from '@muster/common/hardware';
import type { ArrayId, JobId } from '@muster/common/ids';
import { unlimitedScope } from '@muster/common/people';
import type { Cause } from '@muster/common/views';
import type { Job, JobState, Node, StoredEvent } from '../model.ts';
import {
  aCheckpoint,
  aCondition,
  aGpuUsage,
  anAttempt,
  anExit,
  anInventory,
  aSpec,
  aTask,
  jobIdOf,
  nodeNameOf,
  queuedState,
  someGpus,
  someMs,
} from '../modelFixture.ts';
import { noStoredAlerts } from './alerts.ts';
import { noStoredPipelines } from './pipelines.ts';
import type { Batch, Credential, JobArrayRecord, RequestRecord, Snapshot } from './store.ts';
import { noStoredSweeps } from './sweeps.ts';

const someCause: Cause = {
  kind: 'gpu_fault',
  message: 'rank 0 on node-1 lost its GPU',
  nodeRank: 0,
  node: 'node-1',
  evidence: { line: 7, text: 'Xid 79', rank: 3 },
  blame: 'node',
};

const runningAttempt = anAttempt(2, {
  state: 'running',
  tasks: [
    aTask(0, { state: 'running', gpuUuids: ['GPU-a', 'GPU-b'], cpus: 1.5, memoryMb: 1_024 }),
    aTask(1, {
      state: 'ended',
      exit: anExit({ signal: 'SIGKILL', exitCode: null, startError: someCause, gpuUsage: aGpuUsage() }),
    }),
  ],
  runningAtMs: someMs,
  resume: { name: 'checkpoint-500', step: 500 },
  savedAtMs: someMs + 1,
  stoppingAtMs: someMs + 2,
  savedAfterStop: true,
  signs: [{ kind: 'nan_loss', step: 620, lastGoodStep: null }],
  hungAtMs: someMs + 3,
  master: { addr: '127.0.0.1', port: 29_500 },
});

/** Active ones first. */
export const everyState: readonly JobState[] = [
  queuedState({ backoffMs: 2_000, lastCause: someCause, sinceMs: someMs + 5, breakerOpen: true }),
  { kind: 'starting', attempt: anAttempt(2) },
  { kind: 'running', attempt: runningAttempt },
  {
    kind: 'stopping',
    attempt: runningAttempt,
    outcome: { next: 'queued', cause: someCause, backoffMs: 4_000, charge: 'failure' },
  },
  { kind: 'succeeded', endedAtMs: someMs },
  { kind: 'failed', endedAtMs: someMs, cause: someCause },
  { kind: 'cancelled', endedAtMs: someMs, cause: someCause },
];

export const withEverything: Partial<Job> = {
  spec: aSpec({
    image: 'registry.example/train:1',
    args: ['--epochs', '3'],
    env: { A: '1' },
    resources: { nodes: 2, gpus: 4, gpu_type: ['H100'], cpus: 0.5, memory_mb: 1_024 },
    volumes: ['/data:/data:ro'],
    max_runtime: '24h',
    retry: { max_attempts: 3, on: ['node_lost'] },
    checkpoint: { dir: '/checkpoints', keep_last: 3 },
    after: [jobIdOf(77)],
    labels: { team: 'a' },
  }),
  array: { id: 'arr_000000000001' as ArrayId, index: 3, size: 8 },
  phase: {
    index: 1,
    start: 100,
    firstAttempt: 2,
    extensions: 1,
    awaiting: { attempt: 2, step: 150 },
    ended: [
      {
        name: 'broad',
        firstAttempt: 1,
        lastAttempt: 1,
        start: 0,
        target: 100,
        extensions: 0,
        step: null,
        verdict: 'unmet',
        values: { eval_loss: 2.5, loss: null },
        checkpoint: { name: 'checkpoint-100', step: 100 },
        endedAtMs: someMs,
      },
    ],
  },
  requeuedFrom: jobIdOf(78),
  resumedFrom: { jobId: jobIdOf(78), name: 'checkpoint-500', step: 500 },
  failures: 1,
  failedStarts: 2,
  excludedNodes: [{ node: 'node-1', cause: someCause }],
  checkpoints: [
    aCheckpoint(500, { metrics: { train_loss: 1.5 }, digest: 'sha256:abc', depth: 'deep', shared: true }),
    aCheckpoint(null, { verdict: 'corrupt', problem: 'no central directory', suspect: true }),
  ],
  resumeChoice: { kind: 'step', step: 500 },
  checkpointJobId: jobIdOf(78),
  lineage: [jobIdOf(76)],
  recentFailures: [{ cause: 'python_exception', resume: 'checkpoint-500', node: nodeNameOf('node-1') }],
  failuresInRow: 3,
  preemptions: 4,
  batchScale: 0.25,
  lrScale: 0.01,
  extraRuntimeMs: 7_200_000,
  ledger: [
    { kind: 'productive', cause: null, gpuSeconds: 12.5 },
    { kind: 'failure', cause: 'cuda_oom', gpuSeconds: 3 },
  ],
};

const [someGpu = bareGpu('GPU-a')] = someGpus('a', 1);

export const nodeWithEverything: Partial<Node> = {
  drain: { reason: 'a new fan', sinceMs: someMs, deadlineMs: someMs + 1 },
  conditions: [
    aCondition('xid_79', { gpuUuid: 'GPU-a', task: { jobId: jobIdOf(1), attempt: 1, nodeRank: 0 } }),
  ],
  inventory: anInventory({
    gpus: [
      {
        ...someGpu,
        mig: { parentUuid: 'GPU-a', profile: '1g.10gb', gpuInstanceId: 7, computeInstanceId: 0 },
      },
    ],
    gpuDriver: { source: 'nvml', profilingSource: 'gpm', driverVersion: '580.1', cudaVersion: '13.0' },
    links: [{ from: 'GPU-a', to: 'mlx5_0', kind: 'PIX' }],
  }),
};

/** The attempt that an active job's state holds, as a batch stores it. */
export function attemptsOf(job: Job): Batch['attempts'] {
  return 'attempt' in job.state ? [{ jobId: job.id, attempt: job.state.attempt }] : [];
}

export function endedAttempt(jobId: JobId): Batch['attempts'][number] {
  return { jobId, attempt: anAttempt(1, { state: 'ended', endedAtMs: someMs, cause: someCause }) };
}

export function started(job: Job, number: number): Job {
  return { ...job, lastAttempt: number, state: { kind: 'starting', attempt: anAttempt(number) } };
}

/** Of a store without jobs and nodes, in which nine jobs have been submitted. */
export const emptySnapshot: Snapshot = {
  clusterId: 'test',
  activeJobs: [],
  unfilledArrays: [],
  outcomes: new Map(),
  successors: new Map(),
  arrayFailures: new Map(),
  nodes: [],
  credentials: [],
  users: [],
  projects: [],
  alerts: noStoredAlerts,
  sweeps: noStoredSweeps,
  pipelines: noStoredPipelines,
  evaluations: [],
  budgets: [],
  lastSubmitSeq: 9,
  lastEventSeq: 0,
  subjectSeqs: new Map(),
};

export function aCredential(id: string, fields: Partial<Credential> = {}): Credential {
  const secretHash = `hash of ${id}`;
  return {
    id,
    kind: 'admin',
    subject: id,
    secretHash,
    createdAtMs: someMs,
    expiresAtMs: null,
    usedFor: null,
    nextHash: null,
    lastUsedAtMs: null,
    replaces: false,
    label: '',
    scope: unlimitedScope,
    ...fields,
  };
}

export function aRequest(fields: Partial<RequestRecord> = {}): RequestRecord {
  return {
    requestId: 'request-1',
    digest: 'abc',
    jobIds: [],
    arrayId: null,
    createdAtMs: someMs,
    ...fields,
  };
}

export function anEvent(seq: number, subject: string, subjectSeq: number): StoredEvent {
  return {
    seq,
    id: `cluster-${seq}`,
    kind: 'job.submitted',
    subject,
    subjectSeq,
    timeMs: someMs + seq,
    data: { seq },
    by: 'admin',
    peer: '127.0.0.1',
  };
}

/** None of its jobs is stored. */
export function anArray(size: number): JobArrayRecord {
  const by = { kind: 'admin', id: 'admin', peer: '127.0.0.1' } as const;
  const id = 'arr_00000000000a' as ArrayId;
  return {
    id,
    spec: aSpec(),
    size,
    filled: 0,
    early: new Set(),
    firstSubmitSeq: 1,
    by,
    submittedAtMs: someMs,
  };
}
