/** The use that an attempt made of its GPUs. */
import { type GpuUsage, mergeGpuUsage } from '@muster/common/telemetry';
import type { Attempt } from '../model.ts';

/** Of the tasks that have ended. @returns null when there are none, or nothing of their GPUs was read */
export function gpuUsageOf({ tasks }: Attempt): GpuUsage | null {
  return mergeGpuUsage(tasks.flatMap(({ exit }) => exit?.gpuUsage ?? []));
}
