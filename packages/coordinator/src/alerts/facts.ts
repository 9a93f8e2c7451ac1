/** The values of the names that conditions use, from what the coordinator has in memory. Pure: the moment is an argument. */
import { drainedBy } from '@muster/common/conditions';
import type { GpuReading, HostReading } from '@muster/common/telemetry';
import { isDivergence, type TrainingProgress } from '@muster/common/training';
import { type Attempt, currentAttempt, type Job, type Node } from '../model.ts';
import { ownName } from '../spec/ownSpec.ts';
import type { clusterFactNames, FactValue, jobFactNames, nodeFactNames } from './names.ts';

const hourMs = 3_600_000;
const percent = 100;

/** A GPU of a job. */
export interface JobGpu {
  readonly reading: GpuReading;
  /** null: unknown. */
  readonly memoryMb: number | null;
}

/** What is known of a job beside what is stored of it. Each is asked for only when a condition needs it. */
export interface AroundJob {
  /** Wall clock. */
  readonly nowMs: number;
  readonly training: () => TrainingProgress | null;
  /** A task of it shows signs of a hang now. */
  readonly hangs: () => boolean;
  /** With the newest reading of each. */
  readonly gpus: () => readonly JobGpu[];
}

type JobFact = (job: Job, around: AroundJob) => FactValue;

export const jobFacts: Readonly<Record<keyof typeof jobFactNames, JobFact>> = {
  workload_id: ({ id }) => id,
  workload_name: ownName,
  workload_state: ({ state }) => state.kind,
  user: ({ user }) => user,
  project: ({ spec }) => spec.project,
  labels: ({ spec }) => spec.labels,
  priority: ({ spec }) => spec.priority,
  preemptible: ({ spec }) => spec.preemptible,
  gpus: (job) => {
    const tasks = currentAttempt(job)?.tasks;
    if (tasks !== undefined) return tasks.reduce((sum, { gpuUuids }) => sum + gpuUuids.length, 0);
    return job.spec.resources.gpus * job.spec.resources.nodes;
  },
  nodes: (job) => currentAttempt(job)?.tasks.length ?? job.spec.resources.nodes,
  attempt: ({ lastAttempt }) => lastAttempt,
  failures: ({ failures }) => failures,
  preemptions: ({ preemptions }) => preemptions,
  cause: ({ state }) => {
    if (state.kind === 'queued') return state.lastCause?.kind ?? null;
    return state.kind === 'failed' || state.kind === 'cancelled' ? state.cause.kind : null;
  },
  queued_for: ({ state }, { nowMs }) => (state.kind === 'queued' ? since(state.sinceMs, nowMs) : null),
  running_for: (job, { nowMs }) => since(running(job)?.runningAtMs ?? null, nowMs),
  train_loss: (job, around) => {
    const signs = currentAttempt(job)?.signs ?? [];
    if (signs.some(({ kind }) => kind === 'nan_loss')) return Number.NaN;
    return around.training()?.latest.train_loss ?? null;
  },
  eval_loss: latest('eval_loss'),
  learning_rate: latest('learning_rate'),
  grad_norm: latest('grad_norm'),
  epoch: latest('epoch'),
  step: latest('step'),
  tokens_per_second: latest('tokens_per_second'),
  samples_per_second: latest('samples_per_second'),
  tokens: latest('tokens'),
  progress_age: (_job, around) => since(around.training()?.atMs ?? null, around.nowMs),
  hung: (job, around) => {
    const attempt = running(job);
    return attempt === null ? null : attempt.hungAtMs !== null && around.hangs();
  },
  diverged: (job) => currentAttempt(job)?.signs.some(({ kind }) => isDivergence(kind)) ?? null,
  checkpoint_age: (job, { nowMs }) => {
    const runningAtMs = running(job)?.runningAtMs ?? null;
    const saves = job.checkpoints.length > 0 || job.spec.checkpoint.dir !== null;
    if (runningAtMs === null || !saves) return null;
    const savedAtMs = job.checkpoints
      .filter(({ verdict }) => verdict === 'verified' || verdict === 'unverified')
      .map((checkpoint) => checkpoint.savedAtMs);
    return since(Math.max(runningAtMs, ...savedAtMs), nowMs);
  },
  checkpoint_advice: (job, { nowMs }) => {
    const ranMs = since(running(job)?.runningAtMs ?? null, nowMs);
    const lengthMs = job.spec.maxRuntimeMs ?? ranMs;
    return lengthMs === null ? null : checkpointAdviceMs(lengthMs);
  },
  gpu_utilization: (_job, around) => meanOf(around.gpus().map(({ reading }) => reading.utilization)),
  gpu_memory_used: (_job, around) => mostOf(around.gpus().map(({ reading }) => reading.memoryUsedMb)),
  gpu_memory_used_percent: (_job, around) =>
    mostOf(
      around
        .gpus()
        .map(({ reading, memoryMb }) =>
          reading.memoryUsedMb === null || !memoryMb ? null : (percent * reading.memoryUsedMb) / memoryMb,
        ),
    ),
  gpu_power: (_job, around) => sumOf(around.gpus().map(({ reading }) => reading.powerWatts)),
  gpu_temperature: (_job, around) => mostOf(around.gpus().map(({ reading }) => reading.temperature)),
};

/** How often a job of this length should save, both in milliseconds. */
export function checkpointAdviceMs(lengthMs: number): number {
  if (lengthMs < hourMs) return hourMs / 6;
  if (lengthMs < 4 * hourMs) return hourMs / 2;
  return lengthMs <= 24 * hourMs ? hourMs : 2 * hourMs;
}

export interface AroundNode {
  readonly nowMs: number;
  readonly isSilent: boolean;
  /** Since the last contact. null: there was none since the coordinator started. */
  readonly lastContactAgoMs: number | null;
  readonly tasks: () => number;
  /** Only what is fresh. */
  readonly host: () => HostReading | null;
  readonly gpus: () => readonly GpuReading[];
}

type NodeFact = (node: Node, around: AroundNode) => FactValue;

export const nodeFacts: Readonly<Record<keyof typeof nodeFactNames, NodeFact>> = {
  node: ({ name }) => name,
  node_state: (_node, { isSilent }) => (isSilent ? 'silent' : 'online'),
  silent_for: (_node, { isSilent, lastContactAgoMs }) => (isSilent ? lastContactAgoMs : 0),
  drained: ({ drain }) => drain !== null,
  conditions: ({ conditions }) => conditions.map(({ kind }) => kind),
  critical_conditions: ({ conditions }) =>
    conditions.filter(({ severity }) => severity === 'critical').length,
  gpus: ({ inventory }) => inventory.gpus.length,
  unhealthy_gpus: ({ conditions, inventory }) => drainedBy(conditions, inventory).gpuUuids.size,
  tasks: (_node, around) => around.tasks(),
  cpu_utilization: (_node, around) => around.host()?.cpuUtilization ?? null,
  memory_used: (_node, around) => around.host()?.memoryUsedMb ?? null,
  load1: (_node, around) => around.host()?.load1 ?? null,
  gpu_utilization: (_node, around) => meanOf(around.gpus().map(({ utilization }) => utilization)),
  gpu_temperature: (_node, around) => mostOf(around.gpus().map(({ temperature }) => temperature)),
};

export interface AroundCluster {
  readonly nowMs: number;
  readonly jobs: () => Iterable<Job>;
  readonly nodes: () => Iterable<Node>;
  readonly queuedJobs: () => number;
  readonly silentNodes: () => number;
  /** Wall clock. */
  readonly lastStartAtMs: number;
  readonly diskFreePercent: () => number | null;
  /** Wall clock. null: there are no certificates. */
  readonly certificateExpiresAtMs: () => number | null;
}

export const clusterFacts: Readonly<
  Record<keyof typeof clusterFactNames, (around: AroundCluster) => FactValue>
> = {
  queued_jobs: ({ queuedJobs }) => queuedJobs(),
  running_jobs: ({ jobs }) => [...jobs()].filter(({ state }) => state.kind === 'running').length,
  oldest_queued: ({ jobs, nowMs }) => {
    let oldestMs: number | null = null;
    for (const { state } of jobs())
      if (state.kind === 'queued' && (oldestMs === null || state.sinceMs < oldestMs))
        oldestMs = state.sinceMs;
    return oldestMs === null ? 0 : since(oldestMs, nowMs);
  },
  last_start: ({ lastStartAtMs, nowMs }) => since(lastStartAtMs, nowMs),
  nodes: ({ nodes }) => [...nodes()].length,
  silent_nodes: ({ silentNodes }) => silentNodes(),
  gpus: ({ nodes }) => [...nodes()].reduce((sum, { inventory }) => sum + inventory.gpus.length, 0),
  disk_free_percent: ({ diskFreePercent }) => diskFreePercent(),
  certificate_expires_in: ({ certificateExpiresAtMs, nowMs }) => {
    const atMs = certificateExpiresAtMs();
    return atMs === null ? null : atMs - nowMs;
  },
};

function running(job: Job): Attempt | null {
  return job.state.kind === 'running' ? job.state.attempt : null;
}

function latest(
  name:
    | 'eval_loss'
    | 'learning_rate'
    | 'grad_norm'
    | 'epoch'
    | 'step'
    | 'tokens_per_second'
    | 'samples_per_second'
    | 'tokens',
): JobFact {
  return (_job, around) => around.training()?.latest[name] ?? null;
}

function since(atMs: number | null, nowMs: number): number | null {
  return atMs === null ? null : Math.max(0, nowMs - atMs);
}

function known(values: readonly (number | null)[]): readonly number[] {
  return values.filter((value) => value !== null);
}

function sumOf(values: readonly (number | null)[]): number | null {
  const read = known(values);
  return read.length === 0 ? null : read.reduce((sum, value) => sum + value, 0);
}

function meanOf(values: readonly (number | null)[]): number | null {
  const sum = sumOf(values);
  return sum === null ? null : sum / known(values).length;
}

function mostOf(values: readonly (number | null)[]): number | null {
  const read = known(values);
  return read.length === 0 ? null : Math.max(...read);
}
