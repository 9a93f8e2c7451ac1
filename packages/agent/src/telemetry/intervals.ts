/** From samples to readings: what a GPU did over an interval, for one task or for none. Pure; times are arguments. */
import { type TaskRef, taskKey } from '@muster/common/ids';
import type { GpuReading } from '@muster/common/telemetry';
import type { GpuSample } from '../gpus/gpuSource.ts';

/**
 * A sample stands for the time since the one before, but not for longer than this: what was not looked at is not known.
 * @param intervalMs between two samples
 */
export function gapMaxMs(intervalMs: number): number {
  return Math.max(30_000, 3 * intervalMs);
}

interface Mean {
  sum: number;
  weightMs: number;
}

/** One GPU since the last reading. */
interface Interval {
  readonly gpuUuid: string;
  readonly task: TaskRef | null;
  sinceMs: number;
  /** Monotonic. */
  lastMs: number;
  lastWallMs: number;
  readonly means: Map<MeanField, Mean>;
  memoryUsedMb: number | null;
  temperature: number | null;
  energyJoules: number | null;
}

type MeanField =
  | 'utilization'
  | 'powerWatts'
  | 'smActive'
  | 'tensorActive'
  | 'dramActive'
  | 'nvlinkReceiveBytes'
  | 'nvlinkTransmitBytes';

function meanValues(sample: GpuSample): Readonly<Record<MeanField, number | null>> {
  const { activity } = sample;
  return {
    utilization: sample.utilization,
    powerWatts: sample.powerWatts,
    smActive: activity?.smActive ?? null,
    tensorActive: activity?.tensorActive ?? null,
    dramActive: activity?.dramActive ?? null,
    nvlinkReceiveBytes: activity?.nvlinkRxBytes ?? null,
    nvlinkTransmitBytes: activity?.nvlinkTxBytes ?? null,
  };
}

/** What one GPU consumed between two samples, in joules; null when neither its counter nor its power is known. */
export function energyBetween(before: GpuSample | null, sample: GpuSample, elapsedMs: number): number | null {
  const from = before?.energyMillijoules ?? null;
  const to = sample.energyMillijoules;
  // A counter that decreased was reset with the driver; how much it had counted by then is unknown.
  if (from !== null && to !== null && to >= from) return (to - from) / 1000;
  return sample.powerWatts === null ? null : (sample.powerWatts * elapsedMs) / 1000;
}

export class Intervals {
  private readonly gapMaxMs: number;
  private readonly open = new Map<string, Interval>();
  private readonly newest = new Map<string, GpuSample>();

  /** @param intervalMs between two samples */
  constructor(intervalMs = 0) {
    this.gapMaxMs = gapMaxMs(intervalMs);
  }

  /**
   * Takes a sample.
   * @param monotonicMs of the sample
   * @returns the reading of the task before when another one, or none, holds the GPU now
   */
  add(sample: GpuSample, task: TaskRef | null, monotonicMs: number, wallMs: number): GpuReading | null {
    const before = this.open.get(sample.uuid);
    const handedOver = before !== undefined && keyOf(before.task) !== keyOf(task);
    const ended = handedOver ? this.end(before, wallMs) : null;
    const fresh = before === undefined || handedOver;
    const interval = fresh ? newInterval(sample.uuid, task, before?.lastMs ?? monotonicMs) : before;
    this.open.set(sample.uuid, interval);

    const elapsedMs = monotonicMs - interval.lastMs;
    const isKnown = elapsedMs <= this.gapMaxMs;
    interval.lastMs = monotonicMs;
    interval.lastWallMs = wallMs;
    if (!isKnown) interval.sinceMs = monotonicMs;
    // The first sample of all stands for a moment; it still has a weight, so that a short interval is not empty.
    const weightMs = isKnown ? Math.max(1, elapsedMs) : 1;
    for (const [field, value] of Object.entries(meanValues(sample)) as [MeanField, number | null][]) {
      if (value !== null) addTo(interval.means, field, value, weightMs);
    }
    interval.memoryUsedMb = greater(interval.memoryUsedMb, sample.memoryUsedMb);
    interval.temperature = greater(interval.temperature, sample.temperature);
    const last = this.newest.get(sample.uuid) ?? null;
    const energy = last === null || !isKnown ? null : energyBetween(last, sample, elapsedMs);
    if (energy !== null) interval.energyJoules = (interval.energyJoules ?? 0) + energy;
    this.newest.set(sample.uuid, sample);
    return ended;
  }

  /** The readings of all GPUs that were sampled since the last time; the next interval begins. */
  close(wallMs: number): readonly GpuReading[] {
    const readings: GpuReading[] = [];
    for (const [uuid, interval] of this.open) {
      if (interval.means.size === 0 && interval.memoryUsedMb === null && interval.temperature === null) {
        // Nothing of it could be read: an empty reading would add nothing. The next sample begins a new interval.
        this.open.delete(uuid);
        this.newest.delete(uuid);
        continue;
      }
      readings.push(this.end(interval, wallMs));
      this.open.set(uuid, newInterval(uuid, interval.task, interval.lastMs));
    }
    return readings;
  }

  private end(interval: Interval, wallMs: number): GpuReading {
    const mean = (field: MeanField) => {
      const known = interval.means.get(field);
      return known === undefined ? null : known.sum / known.weightMs;
    };
    return {
      gpuUuid: interval.gpuUuid,
      atMs: interval.lastWallMs || wallMs,
      intervalMs: Math.round(interval.lastMs - interval.sinceMs),
      task: interval.task,
      utilization: mean('utilization'),
      memoryUsedMb: interval.memoryUsedMb,
      powerWatts: mean('powerWatts'),
      energyJoules: interval.energyJoules,
      smActive: mean('smActive'),
      tensorActive: mean('tensorActive'),
      dramActive: mean('dramActive'),
      temperature: interval.temperature,
      nvlinkReceiveBytes: mean('nvlinkReceiveBytes'),
      nvlinkTransmitBytes: mean('nvlinkTransmitBytes'),
    };
  }
}

function newInterval(gpuUuid: string, task: TaskRef | null, sinceMs: number): Interval {
  const nothing = { memoryUsedMb: null, temperature: null, energyJoules: null };
  return { gpuUuid, task, sinceMs, lastMs: sinceMs, lastWallMs: 0, means: new Map(), ...nothing };
}

function addTo(means: Map<MeanField, Mean>, field: MeanField, value: number, weightMs: number): void {
  const mean = means.get(field) ?? { sum: 0, weightMs: 0 };
  mean.sum += value * weightMs;
  mean.weightMs += weightMs;
  means.set(field, mean);
}

/** Of what is known of both. */
export function greater(a: number | null, b: number | null): number | null {
  if (a === null || b === null) return a ?? b;
  return Math.max(a, b);
}

function keyOf(task: TaskRef | null): string {
  return task === null ? '' : taskKey(task);
}
