/**
 * The values of a stream, one for each step as `metricQuery/aggregate.ts` makes them. A step is told once, when it is closed: its end
 * is so long ago that what belongs to it has arrived. Pure: now is an argument.
 */
import { MusterError } from '@muster/common/errors';
import type { MetricPoint, MetricSeries } from '@muster/common/telemetry';
import { aggregated, type Shape } from '../metricQuery/aggregate.ts';
import type { ValueUpdate } from './followValues.ts';

/** Agents report every 10 s, each at its own moment. */
export const stepGraceMs = 10_000;
/** Some 10 MB. */
const openPointsMax = 250_000;

export class ClosedSteps {
  private readonly shape: Shape & { readonly stepMs: number };
  /** Wall clock. What is not later than this belongs to a step that was told, or is not wanted. */
  private sentUntilMs: number;
  /** By what each is of. */
  private readonly open = new Map<string, { readonly series: MetricSeries; points: MetricPoint[] }>();
  private openPoints = 0;

  constructor(shape: Omit<Shape, 'stepMs' | 'toMs'> & { readonly stepMs: number }, fromMs: number) {
    this.shape = { ...shape, toMs: Number.POSITIVE_INFINITY };
    this.sentUntilMs = fromMs;
  }

  /** @throws {MusterError} `resource_exhausted` */
  add(series: readonly MetricSeries[]): void {
    for (const { points, ...of } of series) {
      const later = points.filter(({ atMs }) => atMs > this.sentUntilMs);
      if (later.length === 0) continue;
      const key = JSON.stringify([of.jobId, of.attempt, of.nodeRank, of.node, of.gpuUuid]);
      const known = this.open.get(key);
      if (known === undefined) this.open.set(key, { series: { ...of, points: [] }, points: later });
      else known.points = known.points.concat(later);
      this.openPoints += later.length;
    }
    if (this.openPoints > openPointsMax)
      throw new MusterError(
        'resource_exhausted',
        `more than ${openPointsMax} values wait for the end of their step: use a shorter step_ms, a later start_time, or ask for ` +
          'one job or node',
      );
  }

  /** Called when all that has arrived was added. @returns null: no step with values has been closed since */
  take(nowMs: number): ValueUpdate | null {
    const { stepMs } = this.shape;
    const closedUntilMs = Math.floor((nowMs - stepGraceMs) / stepMs) * stepMs;
    if (closedUntilMs <= this.sentUntilMs) return null;
    this.sentUntilMs = closedUntilMs;
    const closed: MetricSeries[] = [];
    for (const [key, each] of this.open) {
      const points = each.points.filter(({ atMs }) => atMs <= closedUntilMs);
      if (points.length === 0) continue;
      closed.push({ ...each.series, points });
      this.openPoints -= points.length;
      each.points = each.points.filter(({ atMs }) => atMs > closedUntilMs);
      if (each.points.length === 0) this.open.delete(key);
    }
    if (closed.length === 0) return null;
    return { series: aggregated(closed, this.shape), position: String(closedUntilMs) };
  }

  /** Until the next step with values is closed; null: none has any. */
  waitMs(nowMs: number): number | null {
    if (this.open.size === 0) return null;
    const { stepMs } = this.shape;
    let firstMs = Number.POSITIVE_INFINITY;
    for (const { points } of this.open.values())
      for (const { atMs } of points) firstMs = Math.min(firstMs, atMs);
    return Math.max(0, Math.ceil(firstMs / stepMs) * stepMs + stepGraceMs - nowMs);
  }
}
