/**
 * Whether the GPUs of a task compute, by what they did while the task made progress. Pure.
 *
 * A kernel that waits for another rank keeps the SMs it runs on busy and computes nothing: the driver reports full
 * utilisation, and the power falls to little more than that of an idle card. For each GPU
 *
 *     idle   = utilisation 0 %
 *     pinned = utilisation ≥ 95 %, and
 *              power < 0.4 × its mean power while productive,
 *              or, with power unknown or < 0.7 × that mean, SM activity ≤ 0.05 with a productive mean ≥ 0.25,
 *              or tensor activity ≤ 0.01 with a productive mean ≥ 0.05
 *
 * where productive are the samples with utilisation ≥ 5 % between two signs of progress. A GPU that never worked for the
 * task is not waited for; one whose values nobody can read shows nothing, and then it is not known.
 */
import type { gpuStillnesses } from '@muster/common/training';
import type { GpuSample } from '../gpus/gpuSource.ts';

export type Stillness = (typeof gpuStillnesses)[number];

/** What a sample shows of one GPU; null: not read. */
export interface GpuFacts {
  /** Percent, 0 to 100. */
  readonly utilization: number | null;
  readonly powerWatts: number | null;
  /** Ratios, 0 to 1. */
  readonly smActive: number | null;
  readonly tensorActive: number | null;
}

/** Instances in MIG mode have no utilisation; how long anything ran on them is the same. */
export function gpuFacts({ utilization, powerWatts, activity }: GpuSample): GpuFacts {
  const active = activity?.graphicsActive ?? null;
  return {
    utilization: utilization ?? (active === null ? null : active * 100),
    powerWatts,
    smActive: activity?.smActive ?? null,
    tensorActive: activity?.tensorActive ?? null,
  };
}

const workingPercent = 5;
const pinnedPercent = 95;
const collapsedPower = 0.4;
const computingPower = 0.7;
const stillSm = 0.05;
const workingSm = 0.25;
const stillTensor = 0.01;
const workingTensor = 0.05;
/** Older than any source is slow: beyond, nobody looks at the GPU any longer. */
const staleMs = 30_000;
/** One reading may be wrong. */
const samplesMin = 3;

class Mean {
  private sum = 0;
  private count = 0;

  add(value: number | null): void {
    if (value === null) return;
    this.sum += value;
    this.count += 1;
  }

  addAll(other: Mean): void {
    this.sum += other.sum;
    this.count += other.count;
  }

  /** null: nothing was added */
  get value(): number | null {
    return this.count === 0 ? null : this.sum / this.count;
  }
}

class MeanUsage {
  readonly power = new Mean();
  readonly sm = new Mean();
  readonly tensor = new Mean();
  samples = 0;

  add({ powerWatts, smActive, tensorActive }: GpuFacts): void {
    this.power.add(powerWatts);
    this.sm.add(smActive);
    this.tensor.add(tensorActive);
    this.samples += 1;
  }

  addAll(other: MeanUsage): void {
    this.power.addAll(other.power);
    this.sm.addAll(other.sm);
    this.tensor.addAll(other.tensor);
    this.samples += other.samples;
  }
}

interface GpuHistory {
  readonly productive: MeanUsage;
  /** Since the last sign of progress: productive if there is another one. */
  pending: MeanUsage;
  lastMs: number;
  still: { readonly sinceMs: number; samples: number; kind: Stillness } | null;
}

export class GpuStillness {
  private readonly gpus = new Map<string, GpuHistory>();

  /** @param nowMs monotonic */
  sample(gpuUuid: string, facts: GpuFacts, nowMs: number): void {
    const history = this.history(gpuUuid);
    history.lastMs = nowMs;
    if (facts.utilization !== null && facts.utilization >= workingPercent) history.pending.add(facts);
    const kind = stillnessOf(facts, history.productive);
    if (kind === null) history.still = null;
    else if (history.still === null) history.still = { sinceMs: nowMs, samples: 1, kind };
    else {
      history.still.samples += 1;
      history.still.kind = kind;
    }
  }

  /** The task has made progress: what its GPUs did until now was work. */
  progressed(): void {
    for (const history of this.gpus.values()) {
      history.productive.addAll(history.pending);
      history.pending = new MeanUsage();
    }
  }

  /**
   * @param gpuUuids all GPUs of the task
   * @param sinceMs they have been still since then or longer
   * @returns null: one of them computes, or it cannot be determined. Where some wait and others do nothing: `pinned`
   */
  of(gpuUuids: readonly string[], sinceMs: number, nowMs: number): Stillness | null {
    const kinds: Stillness[] = [];
    for (const uuid of gpuUuids) {
      const history = this.gpus.get(uuid);
      if (history === undefined || nowMs - history.lastMs > staleMs) return null;
      const hasWorked = history.productive.samples > 0;
      if (!hasWorked && history.still?.kind === 'idle') continue;
      const { still } = history;
      if (still === null || still.sinceMs > sinceMs || still.samples < samplesMin) return null;
      kinds.push(still.kind);
    }
    if (kinds.length === 0) return null;
    return kinds.includes('pinned') ? 'pinned' : 'idle';
  }

  private history(gpuUuid: string): GpuHistory {
    let history = this.gpus.get(gpuUuid);
    if (history === undefined) {
      history = { productive: new MeanUsage(), pending: new MeanUsage(), lastMs: 0, still: null };
      this.gpus.set(gpuUuid, history);
    }
    return history;
  }
}

function stillnessOf(facts: GpuFacts, productive: MeanUsage): Stillness | null {
  const { utilization, powerWatts, smActive, tensorActive } = facts;
  if (utilization === 0) return 'idle';
  if (utilization === null || utilization < pinnedPercent) return null;
  const meanPower = productive.power.value;
  const powerShare = powerWatts === null || meanPower === null ? null : powerWatts / meanPower;
  if (powerShare !== null && powerShare < collapsedPower) return 'pinned';
  if (powerShare !== null && powerShare >= computingPower) return null;
  const hasFallen = (value: number | null, still: number, mean: number | null, working: number) =>
    value !== null && value <= still && mean !== null && mean >= working;
  const computesNothing =
    hasFallen(smActive, stillSm, productive.sm.value, workingSm) ||
    hasFallen(tensorActive, stillTensor, productive.tensor.value, workingTensor);
  return computesNothing ? 'pinned' : null;
}
