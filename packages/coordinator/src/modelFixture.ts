/** Values for tests. Everything has a default, so every field that a test sets matters to it. */

import { nothingRan } from '@muster/common/cause';
import type { Checkpoint } from '@muster/common/checkpoints';
import type { Condition } from '@muster/common/conditions';
import type { Endpoint, TaskFailure } from '@muster/common/gangs';
import { bareGpu, emptyInventory, type Gpu, type NodeInventory } from '@muster/common/hardware';
import type { JobId, NodeName, TaskRef } from '@muster/common/ids';
import { decodeJobSpec } from '@muster/common/spec/serialize';
import type { JobSpec, JobSpecFile } from '@muster/common/spec/types';
import type { GpuUsage } from '@muster/common/telemetry';
import type { TaskEnd, TaskReport } from '@muster/common/views';
import { type AgentIdentity, type Coordinator, coordinatorPart } from './caller.ts';
import type { JobEvent, Placement } from './lifecycle/event.ts';
import { firstPhase } from './lifecycle/phases.ts';
import type { Attempt, Job, JobState, Node, Task } from './model.ts';

/** A moment in 2023; tests add to it. */
export const someMs = 1_700_000_000_000;

/** @param number of at most 12 digits; equal numbers give equal ids, and ids sort like their numbers */
export function jobIdOf(number: number): JobId {
  return `job_${String(number).padStart(12, '0')}` as JobId;
}

export function nodeNameOf(name: string): NodeName {
  return name as NodeName;
}

/** For commands of which nobody asks who gave them. */
export const aCaller: Coordinator = coordinatorPart('test');

export function anAgent(node: string): AgentIdentity {
  return { kind: 'agent', id: `agent:${node}`, node: nodeNameOf(node), peer: null, renewed: false };
}

/** A checked spec from what a user would write. */
export function aSpec(file: Partial<JobSpecFile> = {}): JobSpec {
  return decodeJobSpec(JSON.stringify({ name: 'train', command: ['true'], ...file }));
}

/** A job that was just submitted. */
export function aJob(number: number, fields: Partial<Job> = {}): Job {
  return {
    id: jobIdOf(number),
    submitSeq: number,
    spec: aSpec(),
    array: null,
    requeuedFrom: null,
    resumedFrom: null,
    submittedAtMs: someMs + number,
    state: queuedState(),
    lastAttempt: 0,
    failures: 0,
    failedStarts: 0,
    excludedNodes: [],
    checkpoints: [],
    resumeChoice: { kind: 'newest' },
    checkpointJobId: fields.id ?? jobIdOf(number),
    user: 'admin',
    lineage: [],
    recentFailures: [],
    failuresInRow: 0,
    preemptions: 0,
    batchScale: 1,
    lrScale: 1,
    extraRuntimeMs: 0,
    ledger: [],
    phase: firstPhase(fields.spec ?? aSpec(), 0),
    budget: null,
    traceparent: null,
    ...fields,
  };
}

type QueuedState = Extract<JobState, { kind: 'queued' }>;

export function queuedState(fields: Partial<QueuedState> = {}): QueuedState {
  return { kind: 'queued', backoffMs: 0, lastCause: null, sinceMs: someMs, breakerOpen: false, ...fields };
}

/** Verified, by attempt 1 on node-1, of 1 MiB. */
export function aCheckpoint(step: number | null, fields: Partial<Checkpoint> = {}): Checkpoint {
  return {
    name: step === null ? 'ckpt.pt' : `checkpoint-${step}`,
    version: 'v1',
    step,
    format: 'torch',
    bytes: 1_048_576,
    files: 1,
    savedAtMs: someMs + (step ?? 0),
    saveDurationMs: 1_000,
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
    ...fields,
  };
}

export function aTask(nodeRank: number, fields: Partial<Task> = {}): Task {
  return {
    nodeRank,
    node: nodeNameOf(`node-${nodeRank + 1}`),
    gpuUuids: [],
    cpus: 1,
    memoryMb: 0,
    state: 'assigned',
    exit: null,
    endpoints: [],
    testPort: null,
    paths: null,
    preflight: null,
    failedAtMs: null,
    ...fields,
  };
}

export function anAttempt(number: number, fields: Partial<Attempt> = {}): Attempt {
  return {
    number,
    state: 'allocated',
    tasks: [aTask(0)],
    allocatedAtMs: someMs,
    runningAtMs: null,
    endedAtMs: null,
    cause: null,
    master: null,
    leaseMs: 60_000,
    preflight: false,
    resume: null,
    savedAtMs: null,
    stoppingAtMs: null,
    savedAfterStop: false,
    signs: [],
    hungAtMs: null,
    firstStepAtMs: null,
    network: null,
    ...fields,
  };
}

export function anExit(fields: Partial<TaskEnd> = {}): TaskEnd {
  return { ...nothingRan, exitCode: 0, ...fields };
}

/** What an agent reports of a task that it runs. */
export function aReport(task: TaskRef, fields: Partial<TaskReport> = {}): TaskReport {
  return {
    task,
    state: 'running',
    exit: null,
    startedAtMs: null,
    runningForMs: null,
    startedBoottimeMs: null,
    endedBoottimeMs: null,
    frozen: false,
    doing: null,
    trainingComplete: false,
    training: null,
    hang: null,
    ...fields,
  };
}

/** Where a node may be reached: `10.0.0.1` in `10.0.0.0/16` by default. */
export function anEndpoint(fields: Partial<Endpoint> = {}): Endpoint {
  return {
    address: '10.0.0.1',
    network: '10.0.0.0/16',
    interface: 'eth0',
    speedMbps: null,
    rdma: false,
    ...fields,
  };
}

/** The first thing that went wrong on a node. */
export function aFailure(fields: Partial<TaskFailure> = {}): TaskFailure {
  return {
    source: 'log',
    consequence: false,
    rank: null,
    message: 'it broke',
    kind: null,
    blame: null,
    line: null,
    atBoottimeMs: 0,
    ...fields,
  };
}

/** @param prefix makes the UUIDs of one node differ from another's */
export function someGpus(prefix: string, count: number, fields: Partial<Gpu> = {}): readonly Gpu[] {
  return Array.from({ length: count }, (_, index) => ({
    ...bareGpu(`GPU-${prefix}-${index}`),
    model: 'NVIDIA H100 80GB HBM3',
    memoryMb: 81_559,
    simulated: true,
    ...fields,
  }));
}

export function anInventory(fields: Partial<NodeInventory> = {}): NodeInventory {
  return {
    ...emptyInventory,
    cpus: 64,
    memoryMb: 262_144,
    addresses: ['127.0.0.1'],
    labels: {},
    drivers: ['process', 'docker'],
    ...fields,
  };
}

export function aNode(name: string, fields: Partial<Node> = {}): Node {
  return {
    name: nodeNameOf(name),
    instanceId: `instance-of-${name}`,
    bootId: `boot-of-${name}`,
    agentVersion: '0.1.0',
    inventory: anInventory({ gpus: someGpus(name, 2) }),
    conditions: [],
    joinedAtMs: someMs,
    drain: null,
    tokens: null,
    origin: null,
    ...fields,
  };
}

/** On the node as a whole, and nothing but to be known. */
export function aCondition(kind: string, fields: Partial<Condition> = {}): Condition {
  return {
    kind,
    gpuUuid: null,
    severity: 'warning',
    action: 'note',
    message: `${kind} was seen`,
    evidence: `evidence of ${kind}`,
    sinceMs: someMs,
    lastSeenAtMs: someMs,
    count: 1,
    clears: 'when_gone',
    task: null,
    ...fields,
  };
}

/** What one GPU did in a minute of work. */
export function aGpuUsage(fields: Partial<GpuUsage> = {}): GpuUsage {
  return {
    gpus: 1,
    observedGpuSeconds: 60,
    utilizationMean: 80,
    utilizationPeak: 100,
    memoryPeakMb: 40_000,
    energyKwh: 0.01,
    idleGpuSeconds: 2,
    smActiveMean: null,
    tensorActiveMean: null,
    ...fields,
  };
}

/** `count` placements, one per node; default: one for each node that the job wants. */
export function placementsFor(job: Job, count = job.spec.resources.nodes) {
  return Array.from({ length: count }, (_, rank) => ({
    node: nodeNameOf(`node-${rank + 1}`),
    gpuUuids: [`GPU-${rank}`],
    cpus: 1,
    memoryMb: 0,
  }));
}

/** An attempt on these places, with the usual lease, from nothing and without a preflight. */
export function allocation(tasks: readonly Placement[], fields: Partial<Allocate> = {}): Allocate {
  return { kind: 'allocate', tasks, leaseMs: 60_000, preflight: false, resume: null, ...fields };
}

type Allocate = Extract<JobEvent, { kind: 'allocate' }>;

/** Numbers in [0, 1), the same in every run: a failure can be repeated. */
export function seededRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
