/** What the contract suite stores: one of everything, with every field set to something. */
import { bareGpu } from '@muster/common/hardware';
import type { ArrayId, JobId } from '@muster/common/ids';
import type { Job, JobState, Node, StoredEvent } from '../model.ts';
import {
  aCondition,
  aGpuUsage,
  anAttempt,
  anExit,
  anInventory,
  aSpec,
  aTask,
  jobIdOf,
  someGpus,
  someMs,
} from '../modelFixture.ts';
import type { Batch, Credential, RequestRecord } from './store.ts';

const someCause = { kind: 'node_lost', message: 'node-1 is gone', nodeRank: 0, node: 'node-1' } as const;

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
  master: { addr: '127.0.0.1', port: 29_500 },
});

/** Active ones first. */
export const everyState: readonly JobState[] = [
  { kind: 'queued', backoffMs: 2_000, lastCause: someCause },
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
  requeuedFrom: jobIdOf(78),
  failures: 1,
  failedStarts: 2,
};

const [someGpu = bareGpu('GPU-a')] = someGpus('a', 1);

export const nodeWithEverything: Partial<Node> = {
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
  };
}

/** Of a node, as it was stored before nodes had conditions, and inventories more than what is scheduled. */
export const earlierNodeBody = JSON.stringify({
  name: 'node-1',
  instanceId: 'instance',
  bootId: 'boot',
  agentVersion: '0.1.0',
  inventory: {
    gpus: [{ uuid: 'GPU-a', model: 'NVIDIA H100 80GB HBM3', memoryMb: 81_559, simulated: false }],
    cpus: 64,
    memoryMb: 262_144,
    addresses: ['10.0.0.1'],
    labels: { rack: 'r1' },
    drivers: ['process'],
  },
  joinedAtMs: 1_700_000_000_000,
});
