/**
 * Publishes every half minute what the GPUs of each running job do, to those who watch its events: `[GPU Stats] Memory: 45.2/80GB |
 * Util: 92% | Samples/sec: 1024`. Unknown values are omitted, and without any value nothing is published. It is not stored: a
 * job would leave a megabyte a day that nobody reads.
 */

import type { NewEvent } from '@muster/common/eventKinds';
import type { NodeName } from '@muster/common/ids';
import type { TrainingProgress } from '@muster/common/training';
import type { TaskStatusCache } from '../agents/taskStatusCache.ts';
import type { Notices } from '../events/notices.ts';
import type { Attempt, Job, Node } from '../model.ts';
import { ownName } from '../spec/ownSpec.ts';
import type { ClusterState } from '../state/state.ts';
import { freshGpusOf, type GpuOfJob, type NewestReadings } from '../telemetry/jobGpus.ts';
import { liveTraining } from '../views.ts';

const intervalMs = 30_000;
/** Programs that print their speed do so every few seconds or minutes. */
const trainingFreshMs = 300_000;
const mbPerGb = 1_024;

export interface GpuStats {
  readonly text: string;
  /** Of all GPUs of the job that were read. */
  readonly memoryUsedMb: number | null;
  /** Of the same GPUs. */
  readonly memoryTotalMb: number | null;
  /** Percent, the mean of the GPUs. */
  readonly utilization: number | null;
  readonly samplesPerSecond: number | null;
}

/** @returns null: nothing is known */
export function gpuStats(gpus: readonly GpuOfJob[], samplesPerSecond: number | null): GpuStats | null {
  const withMemory = gpus.filter(({ reading }) => reading.memoryUsedMb !== null);
  const memoryUsedMb = sumOf(withMemory.map(({ reading }) => reading.memoryUsedMb ?? 0));
  const sizesMb = withMemory.flatMap(({ memoryMb }) => memoryMb ?? []);
  const memoryTotalMb = sizesMb.length === withMemory.length ? sumOf(sizesMb) : null;
  const utilizations = gpus.flatMap(({ reading }) => reading.utilization ?? []);
  const utilizationSum = sumOf(utilizations);
  const utilization = utilizationSum === null ? null : utilizationSum / utilizations.length;
  const parts = [
    ...(memoryUsedMb === null ? [] : [`Memory: ${memoryText(memoryUsedMb, memoryTotalMb)}`]),
    ...(utilization === null ? [] : [`Util: ${Math.round(utilization)}%`]),
    ...(samplesPerSecond === null ? [] : [`Samples/sec: ${Number(samplesPerSecond.toPrecision(4))}`]),
  ];
  if (parts.length === 0) return null;
  const text = `[GPU Stats] ${parts.join(' | ')}`;
  return { text, memoryUsedMb, memoryTotalMb, utilization, samplesPerSecond };
}

function memoryText(usedMb: number, totalMb: number | null): string {
  const used = (usedMb / mbPerGb).toFixed(1);
  return totalMb === null ? `${used}GB` : `${used}/${Math.round(totalMb / mbPerGb)}GB`;
}

function sumOf(values: readonly number[]): number | null {
  return values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0);
}

export interface GpuStatsPublisherParts {
  readonly telemetry: NewestReadings;
  readonly taskStatus: Pick<TaskStatusCache, 'of'>;
  readonly notices: Pick<Notices, 'publish'>;
  readonly wallMs: () => number;
  readonly monotonicMs: () => number;
}

export class GpuStatsPublisher {
  private readonly parts: GpuStatsPublisherParts;
  /** Monotonic. */
  private publishedAtMs: number;

  constructor(parts: GpuStatsPublisherParts) {
    this.parts = parts;
    this.publishedAtMs = parts.monotonicMs();
  }

  /** One pass. May be called at any time; it publishes every half minute. */
  run(state: ClusterState): void {
    const { monotonicMs, wallMs, notices } = this.parts;
    const nowMs = monotonicMs();
    if (nowMs - this.publishedAtMs < intervalMs) return;
    this.publishedAtMs = nowMs;
    const changes = [...state.jobs.values()].flatMap((job) => {
      const attempt = job.state.kind === 'running' ? job.state.attempt : null;
      const stats = attempt === null ? null : this.statsOf(job, attempt, state.nodes);
      if (attempt === null || stats === null) return [];
      const data = { name: ownName(job), attempt: attempt.number, ...stats };
      return [{ kind: 'training.stats', subject: job.id, data } satisfies NewEvent];
    });
    notices.publish(changes, wallMs());
  }

  private statsOf(job: Job, attempt: Attempt, nodes: ReadonlyMap<NodeName, Node>): GpuStats | null {
    const gpus = freshGpusOf(job, nodes, this.parts.telemetry, this.parts.wallMs());
    const hasGpus = attempt.tasks.some(({ gpuUuids }) => gpuUuids.length > 0);
    return hasGpus ? gpuStats(gpus, this.samplesPerSecond(liveTraining(job, this.parts.taskStatus))) : null;
  }

  private samplesPerSecond(training: TrainingProgress | null): number | null {
    if (training === null || this.parts.wallMs() - training.atMs > trainingFreshMs) return null;
    return training.latest.samples_per_second ?? null;
  }
}
