/**
 * Values at a steady pace, such as those of a node or of the queue, of the last six hours: a ring of rows for each name. All rings are
 * of one size and share a budget, so that nobody can fill memory with names. Times here are monotonic.
 */
import type { MetricPoint } from '@muster/common/telemetry';

/** Between two rows: what comes faster becomes its mean. */
export const historyIntervalMs = 30_000;
/** Six hours. */
export const historyRowsMax = 720;

/** Row by row, oldest first; `null` was not read. */
export interface HistoryRow {
  readonly endMs: number;
  readonly values: readonly (number | null)[];
}

interface Ring {
  readonly times: Float64Array;
  readonly values: Float32Array;
  /** Where the oldest row is. */
  start: number;
  count: number;
  /** Of the row that is being collected. */
  readonly sums: Float64Array;
  readonly counts: Uint32Array;
}

export class RowHistory<Key extends string> {
  private readonly columns: number;
  private readonly ringsMax: number;
  private readonly rings = new Map<Key, Ring>();

  /** @param bytesMax for all rings together; there is room for one at least */
  constructor(columns: number, bytesMax: number) {
    this.columns = columns;
    this.ringsMax = Math.max(1, Math.floor(bytesMax / ringBytes(columns)));
  }

  get keys(): readonly Key[] {
    return [...this.rings.keys()];
  }

  get bytes(): number {
    return this.rings.size * ringBytes(this.columns);
  }

  /** @param values one for each column @param endMs values that are not later than the row before are ignored */
  add(key: Key, endMs: number, values: readonly (number | null)[]): void {
    const ring = this.rings.get(key) ?? this.open(key);
    const lastMs = newestMs(ring);
    if (endMs <= lastMs) return;
    for (const [column, value] of values.entries()) {
      if (value === null) continue;
      ring.sums[column] = (ring.sums[column] ?? 0) + value;
      ring.counts[column] = (ring.counts[column] ?? 0) + 1;
    }
    // Half an interval early: what comes every ten seconds shall not wait for a fourth value.
    if (endMs - lastMs < historyIntervalMs * 0.9) return;
    const row = this.columnsOf(({ sums, counts }, column) => meanOf(sums[column], counts[column]), ring);
    ring.sums.fill(0);
    ring.counts.fill(0);
    this.push(ring, endMs, row);
  }

  /** Puts back what was kept elsewhere. A row that is not later than the one before is ignored. */
  restore(key: Key, { endMs, values }: HistoryRow): void {
    const ring = this.rings.get(key) ?? this.open(key);
    if (endMs > newestMs(ring)) this.push(ring, endMs, values);
  }

  rows(key: Key): readonly HistoryRow[] {
    const ring = this.rings.get(key);
    if (ring === undefined) return [];
    return placesOf(ring).map((place) => ({
      endMs: ring.times[place] ?? 0,
      values: this.columnsOf((_, column) => this.valueAt(ring, place, column), ring),
    }));
  }

  /** Oldest first. @param wallOffsetMs wall clock less monotonic clock */
  points(key: Key, column: number, fromMs: number, toMs: number, wallOffsetMs: number): MetricPoint[] {
    const ring = this.rings.get(key);
    if (ring === undefined) return [];
    return placesOf(ring).flatMap((place) => {
      const endMs = ring.times[place] ?? 0;
      if (endMs < fromMs || endMs > toMs) return [];
      return [{ atMs: Math.round(endMs + wallOffsetMs), value: this.valueAt(ring, place, column) }];
    });
  }

  /** What came after a moment, oldest first. */
  after(
    key: Key,
    column: number,
    afterMs: number,
  ): readonly { readonly endMs: number; readonly value: number | null }[] {
    const ring = this.rings.get(key);
    if (ring === undefined || newestMs(ring) <= afterMs) return [];
    return placesOf(ring).flatMap((place) => {
      const endMs = ring.times[place] ?? 0;
      return endMs > afterMs ? [{ endMs, value: this.valueAt(ring, place, column) }] : [];
    });
  }

  /** Lets go of names of which nothing was heard since then. */
  sweep(fromMs: number): void {
    for (const [key, ring] of this.rings) if (newestMs(ring) < fromMs) this.rings.delete(key);
  }

  private open(key: Key): Ring {
    if (this.rings.size >= this.ringsMax) this.dropQuietest();
    const { columns } = this;
    const ring = {
      times: new Float64Array(historyRowsMax),
      values: new Float32Array(historyRowsMax * columns),
      start: 0,
      count: 0,
      sums: new Float64Array(columns),
      counts: new Uint32Array(columns),
    };
    this.rings.set(key, ring);
    return ring;
  }

  private dropQuietest(): void {
    let quietest: readonly [Key, number] | null = null;
    for (const [key, ring] of this.rings) {
      const lastMs = newestMs(ring);
      if (quietest === null || lastMs < quietest[1]) quietest = [key, lastMs];
    }
    if (quietest !== null) this.rings.delete(quietest[0]);
  }

  private push(ring: Ring, endMs: number, values: readonly (number | null)[]): void {
    const place = (ring.start + ring.count) % historyRowsMax;
    if (ring.count < historyRowsMax) ring.count += 1;
    else ring.start = (ring.start + 1) % historyRowsMax;
    ring.times[place] = endMs;
    for (let column = 0; column < this.columns; column += 1)
      ring.values[place * this.columns + column] = values[column] ?? Number.NaN;
  }

  private valueAt({ values }: Ring, place: number, column: number): number | null {
    const value = values[place * this.columns + column] ?? Number.NaN;
    // What follows the seven digits of 32 bits would only look like precision.
    return Number.isNaN(value) ? null : Number(value.toPrecision(7));
  }

  private columnsOf(value: (ring: Ring, column: number) => number | null, ring: Ring): (number | null)[] {
    return Array.from({ length: this.columns }, (_, column) => value(ring, column));
  }
}

function ringBytes(columns: number): number {
  return historyRowsMax * (Float64Array.BYTES_PER_ELEMENT + columns * Float32Array.BYTES_PER_ELEMENT);
}

/** Where its rows are, oldest first. */
function placesOf({ start, count }: Ring): readonly number[] {
  return Array.from({ length: count }, (_, index) => (start + index) % historyRowsMax);
}

function newestMs({ times, start, count }: Ring): number {
  if (count === 0) return Number.NEGATIVE_INFINITY;
  return times[(start + count - 1) % historyRowsMax] ?? Number.NEGATIVE_INFINITY;
}

function meanOf(sum: number | undefined, count: number | undefined): number | null {
  return sum === undefined || count === undefined || count === 0 ? null : sum / count;
}
