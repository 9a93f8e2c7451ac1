/** What the GPUs of a job do now, by their newest readings. */
import type { NodeName } from '@muster/common/ids';
import { type GpuReading, type NodeTelemetry, readingIntervalMs } from '@muster/common/telemetry';
import { currentAttempt, type Job, type Node } from '../model.ts';

/** After two lost readings the newest still counts; of a node that sends nothing, nothing is published. */
export const readingFreshMs = 3.5 * readingIntervalMs;

export interface GpuOfJob {
  readonly reading: GpuReading;
  /** null: unknown. */
  readonly memoryMb: number | null;
}

export interface NewestReadings {
  newest(node: NodeName): NodeTelemetry;
}

/** The GPUs of the current attempt of a job, each with its newest reading. Those without a reading of the last half minute are omitted. */
export function freshGpusOf(
  job: Job,
  nodes: ReadonlyMap<NodeName, Node>,
  telemetry: NewestReadings,
  nowMs: number,
): readonly GpuOfJob[] {
  return (currentAttempt(job)?.tasks ?? []).flatMap(({ node: name, gpuUuids }) => {
    const node = nodes.get(name);
    if (node === undefined || gpuUuids.length === 0) return [];
    const memoryMb = new Map(node.inventory.gpus.map((gpu) => [gpu.uuid, gpu.memoryMb]));
    return telemetry.newest(node.name).gpus.flatMap((reading) => {
      const { gpuUuid, task, atMs } = reading;
      const isOfJob =
        task?.jobId === job.id && task.attempt === job.lastAttempt && gpuUuids.includes(gpuUuid);
      return isOfJob && nowMs - atMs <= readingFreshMs
        ? [{ reading, memoryMb: memoryMb.get(gpuUuid) ?? null }]
        : [];
    });
  });
}
