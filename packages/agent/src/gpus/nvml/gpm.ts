/**
 * GPU performance monitoring (Hopper and newer): activity between two samples that lie at least 100 ms apart. The second
 * of one reading is the first of the next, so nobody ever waits for the time between them.
 */
import type { GpuActivity } from '../gpuSource.ts';
import type { Calls } from './calls.ts';
import { finite, gpmMetrics, gpmSupport, writePointer } from './structs.ts';

/** NVML_GPM_METRIC_*; percent of 0 to 100, or MiB per second. */
const metrics = [
  { key: 'graphicsActive', id: 1, unit: 'percent' },
  { key: 'smActive', id: 2, unit: 'percent' },
  { key: 'smOccupancy', id: 3, unit: 'percent' },
  { key: 'tensorActive', id: 5, unit: 'percent' },
  { key: 'dramActive', id: 10, unit: 'percent' },
  { key: 'fp64Active', id: 11, unit: 'percent' },
  { key: 'fp32Active', id: 12, unit: 'percent' },
  { key: 'fp16Active', id: 13, unit: 'percent' },
  { key: 'pcieTxBytes', id: 20, unit: 'mebibytes' },
  { key: 'pcieRxBytes', id: 21, unit: 'mebibytes' },
  { key: 'nvlinkRxBytes', id: 60, unit: 'mebibytes' },
  { key: 'nvlinkTxBytes', id: 61, unit: 'mebibytes' },
] as const satisfies readonly { key: keyof GpuActivity; id: number; unit: 'percent' | 'mebibytes' }[];

/** Closer samples give no result. */
const apartMsMin = 100;

export function supportsGpm(calls: Calls, handle: number): boolean {
  const support = Buffer.alloc(gpmSupport.size);
  support.writeUInt32LE(gpmSupport.version, 0);
  return (
    calls.run('nvmlGpmQueryDeviceSupport', handle, support) &&
    support.readUInt32LE(gpmSupport.isSupported) === 1
  );
}

export interface GpmTarget {
  /** Handle of the card. */
  readonly handle: number;
  /** null: the whole card. */
  readonly gpuInstanceId: number | null;
}

export class GpmMeter {
  private readonly target: GpmTarget;
  private readonly query: Buffer;
  private before: number;
  private now: number;
  /** When `#before` was taken; null: it holds nothing yet. */
  private beforeAtMs: number | null = null;
  private activity: GpuActivity | null = null;

  private constructor(target: GpmTarget, query: Buffer, samples: readonly [number, number]) {
    this.target = target;
    this.query = query;
    [this.before, this.now] = samples;
  }

  /**
   * @param query memory for a question, `gpmMetrics.size` bytes; meters may share it
   * @returns null: the library has no samples to give
   */
  static open(calls: Calls, target: GpmTarget, query: Buffer): GpmMeter | null {
    const one = calls.pointer('nvmlGpmSampleAlloc');
    const other = calls.pointer('nvmlGpmSampleAlloc');
    return one === null || other === null ? null : new GpmMeter(target, query, [one, other]);
  }

  close(calls: Calls): void {
    calls.run('nvmlGpmSampleFree', this.before);
    calls.run('nvmlGpmSampleFree', this.now);
  }

  /** @returns what happened since the reading before; null at the first, and when it cannot be determined */
  read(calls: Calls, nowMs: number): GpuActivity | null {
    if (this.beforeAtMs !== null && nowMs - this.beforeAtMs < apartMsMin) return this.activity;
    const isTaken = this.take(calls);
    this.activity = isTaken && this.beforeAtMs !== null ? this.compare(calls) : null;
    [this.before, this.now] = [this.now, this.before];
    this.beforeAtMs = isTaken ? nowMs : null;
    return this.activity;
  }

  private take(calls: Calls): boolean {
    const { handle, gpuInstanceId } = this.target;
    return gpuInstanceId === null
      ? calls.run('nvmlGpmSampleGet', handle, this.now)
      : calls.run('nvmlGpmMigSampleGet', handle, gpuInstanceId, this.now);
  }

  private compare(calls: Calls): GpuActivity | null {
    const query = this.query;
    query.fill(0, 0, gpmMetrics.metrics + metrics.length * gpmMetrics.metricSize);
    query.writeUInt32LE(gpmMetrics.version, 0);
    query.writeUInt32LE(metrics.length, gpmMetrics.count);
    writePointer(query, gpmMetrics.sample1, this.before);
    writePointer(query, gpmMetrics.sample2, this.now);
    const offsetOf = (index: number) => gpmMetrics.metrics + index * gpmMetrics.metricSize;
    for (const [index, { id }] of metrics.entries()) query.writeUInt32LE(id, offsetOf(index));
    if (!calls.run('nvmlGpmMetricsGet', query)) return null;
    const valueOf = (index: number, unit: 'percent' | 'mebibytes') => {
      const returnCode = query.readInt32LE(offsetOf(index) + 4);
      const value = finite(query.readDoubleLE(offsetOf(index) + 8));
      if (returnCode !== 0 || value === null || value < 0) return null;
      if (unit === 'mebibytes') return Math.round(value * 1024 * 1024);
      return value > 100 ? null : value / 100;
    };
    const values = metrics.map(({ key, unit }, index) => [key, valueOf(index, unit)] as const);
    if (values.every(([, value]) => value === null)) return null;
    return Object.fromEntries(values) as unknown as GpuActivity;
  }
}
