/** What it costs to preempt an attempt, and sums of that: whole numbers, so that equal sums are equal. */
import type { Holder } from './view.ts';

/** Compared from the first to the last; less is better. Everything costs something: no choice is cheaper than a part of it. */
export interface Cost {
  readonly gpuSeconds: number;
  /** Of two that lose as much, fewer jobs and those of lower priority; */
  readonly priority: number;
  /** and then those that were submitted later. */
  readonly seniority: number;
}

export const nothing: Cost = { gpuSeconds: 0, priority: 0, seniority: 0 };

/** @param youngest the highest `submitSeq` of all that are compared */
export function costOf({ lostGpuSeconds, priority, submitSeq }: Holder, youngest: number): Cost {
  return { gpuSeconds: lostGpuSeconds, priority: priority + 1, seniority: youngest + 1 - submitSeq };
}

export function plus(a: Cost, b: Cost): Cost {
  return {
    gpuSeconds: a.gpuSeconds + b.gpuSeconds,
    priority: a.priority + b.priority,
    seniority: a.seniority + b.seniority,
  };
}

/** Negative when `a` is cheaper. */
export function compareCosts(a: Cost, b: Cost): number {
  return a.gpuSeconds - b.gpuSeconds || a.priority - b.priority || a.seniority - b.seniority;
}

export function isCheaper(a: Cost, b: Cost): boolean {
  return compareCosts(a, b) < 0;
}
