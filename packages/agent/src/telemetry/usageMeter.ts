/**
 * What the GPUs of each task did while it ran, for the record of its end. Kept beside the task's record, so that an agent
 * that is restarted in the middle of a run of weeks continues counting; energy is counted over the gap as well, because the
 * card counts it itself.
 */
import { readFileSync } from 'node:fs';
import { writeFileAtomically } from '@muster/common/files';
import { type TaskKey, type TaskRef, taskKey } from '@muster/common/ids';
import { type GpuReading, type GpuUsage, mergeGpuUsage } from '@muster/common/telemetry';
import type { GpuSample } from '../gpus/gpuSource.ts';
import { readTaskFile } from '../taskFacts/taskFile.ts';
import { energyBetween, gapMaxMs, greater } from './intervals.ts';

/** Below this the GPU did nothing worth its price. Percent. */
const idleBelow = 1;

interface Sum {
  sum: number;
  seconds: number;
}

interface GpuTotals {
  observedSeconds: number;
  readonly utilization: Sum;
  readonly smActive: Sum;
  readonly tensorActive: Sum;
  idleSeconds: number;
  utilizationPeak: number | null;
  memoryPeakMb: number | null;
  energyJoules: number | null;
  /** The card's own counter when it was last read. */
  energyMillijoules: number | null;
}

interface UsageFile {
  readonly version: number;
  readonly gpus: Readonly<Record<string, GpuTotals>>;
}

interface Meter {
  readonly gpus: Map<string, GpuTotals>;
  /** Monotonic moment of the last sample of each GPU in the life of this agent. */
  readonly lastMs: Map<string, number>;
}

export interface UsageMeterParts {
  /** Where to keep what is known of a task; its folder exists for as long as the task is recorded. */
  readonly fileOf: (task: TaskRef) => string;
  readonly onError: (task: TaskRef, error: unknown) => void;
  /** Between two samples; default: some seconds. */
  readonly intervalMs?: number;
}

export class UsageMeter {
  private readonly parts: UsageMeterParts;
  private readonly gapMaxMs: number;
  private readonly meters = new Map<TaskKey, Meter>();

  constructor(parts: UsageMeterParts) {
    this.parts = parts;
    this.gapMaxMs = gapMaxMs(parts.intervalMs ?? 0);
  }

  /** @param monotonicMs of the sample */
  add(task: TaskRef, sample: GpuSample, monotonicMs: number): void {
    const meter = this.meter(task);
    const totals = meter.gpus.get(sample.uuid) ?? noTotals();
    meter.gpus.set(sample.uuid, totals);
    const lastMs = meter.lastMs.get(sample.uuid);
    meter.lastMs.set(sample.uuid, monotonicMs);
    totals.memoryPeakMb = greater(totals.memoryPeakMb, sample.memoryUsedMb);

    const elapsedMs = lastMs === undefined ? 0 : monotonicMs - lastMs;
    const before = { ...sample, energyMillijoules: totals.energyMillijoules };
    const energy = energyBetween(before, sample, elapsedMs <= this.gapMaxMs ? elapsedMs : 0);
    if (energy !== null) totals.energyJoules = (totals.energyJoules ?? 0) + energy;
    totals.energyMillijoules = sample.energyMillijoules ?? totals.energyMillijoules;

    if (elapsedMs <= 0 || elapsedMs > this.gapMaxMs) return;
    const seconds = elapsedMs / 1000;
    totals.observedSeconds += seconds;
    addTo(totals.utilization, sample.utilization, seconds);
    addTo(totals.smActive, sample.activity?.smActive ?? null, seconds);
    addTo(totals.tensorActive, sample.activity?.tensorActive ?? null, seconds);
    if (sample.utilization !== null && sample.utilization < idleBelow) totals.idleSeconds += seconds;
  }

  /** The peak is that of an interval's mean: a single busy moment is not what people mean by it. */
  addReading({ task, gpuUuid, utilization }: GpuReading): void {
    if (task === null || utilization === null) return;
    const totals = this.meters.get(taskKey(task))?.gpus.get(gpuUuid);
    if (totals !== undefined) totals.utilizationPeak = greater(totals.utilizationPeak, utilization);
  }

  /** What is known of a task so far; null when none of its GPUs was ever read. */
  usageOf(task: TaskRef): GpuUsage | null {
    return mergeGpuUsage([...this.meter(task).gpus.values()].map(usageOfGpu));
  }

  /** Writes down what is known of tasks that run. */
  save(tasks: readonly TaskRef[]): void {
    for (const task of tasks) {
      const meter = this.meters.get(taskKey(task));
      if (meter === undefined) continue;
      const content = JSON.stringify({ version: 1, gpus: Object.fromEntries(meter.gpus) });
      try {
        writeFileAtomically(this.parts.fileOf(task), content, 0o600);
      } catch (error) {
        this.parts.onError(task, error);
      }
    }
  }

  /** Nothing more will be asked of a task. */
  forget(task: TaskRef): void {
    this.meters.delete(taskKey(task));
  }

  private meter(task: TaskRef): Meter {
    const key = taskKey(task);
    let meter = this.meters.get(key);
    if (meter === undefined) {
      meter = { gpus: this.load(task), lastMs: new Map() };
      this.meters.set(key, meter);
    }
    return meter;
  }

  private load(task: TaskRef): Map<string, GpuTotals> {
    try {
      // Whole or not there: it is replaced in one step.
      const text = readTaskFile(this.parts.fileOf(task), (file) => readFileSync(file, 'utf8'));
      const kept = JSON.parse(text) as UsageFile;
      return new Map(kept.version === 1 ? Object.entries(kept.gpus) : []);
    } catch {
      // None was written yet, or it is damaged: what was counted is lost, and the task keeps running.
      return new Map();
    }
  }
}

function usageOfGpu(totals: GpuTotals): GpuUsage {
  const mean = ({ sum, seconds }: Sum) => (seconds > 0 ? sum / seconds : null);
  const utilizationMean = mean(totals.utilization);
  return {
    gpus: 1,
    observedGpuSeconds: totals.observedSeconds,
    utilizationMean,
    // A run shorter than an interval has no other peak than its mean.
    utilizationPeak: totals.utilizationPeak ?? utilizationMean,
    memoryPeakMb: totals.memoryPeakMb,
    energyKwh: totals.energyJoules === null ? null : totals.energyJoules / 3_600_000,
    idleGpuSeconds: totals.utilization.seconds > 0 ? totals.idleSeconds : null,
    smActiveMean: mean(totals.smActive),
    tensorActiveMean: mean(totals.tensorActive),
  };
}

function noTotals(): GpuTotals {
  return {
    observedSeconds: 0,
    utilization: { sum: 0, seconds: 0 },
    smActive: { sum: 0, seconds: 0 },
    tensorActive: { sum: 0, seconds: 0 },
    idleSeconds: 0,
    utilizationPeak: null,
    memoryPeakMb: null,
    energyJoules: null,
    energyMillijoules: null,
  };
}

function addTo(total: Sum, value: number | null, seconds: number): void {
  if (value === null) return;
  total.sum += value * seconds;
  total.seconds += seconds;
}
