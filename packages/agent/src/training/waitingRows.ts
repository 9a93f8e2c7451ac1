/**
 * The rows of one task that the coordinator has not acknowledged, oldest first, and what is omitted when they are too many. Of each
 * series the first, last, least and greatest row and the first NaN stay, and every row that goes is counted where it stood: the sum up
 * to any row that is left is the number of values that the output has up to there, so that a coordinator knows how many it lacks,
 * whatever is repeated, lost or read again by another agent.
 */
import { SeriesMarks } from '@muster/common/seriesMarks';
import { type TrainingMetricName, type TrainingRow, trainingMetricNames } from '@muster/common/training';
import { excessOf, type ValueCounts, ValueTally } from '@muster/common/valueCounts';

/** What the output has, from its beginning up to a row. */
export interface PrintedValues {
  readonly printed: ValueCounts;
  /** Bytes that were never read for metrics. */
  readonly unreadBytes: number;
}

export interface RowBatch extends PrintedValues {
  readonly rows: readonly TrainingRow[];
  /** No rows wait behind these. */
  readonly isLast: boolean;
}

interface Waiting {
  readonly row: TrainingRow;
  /** Values of the rows between the one before and this one that were dropped. null: none were. */
  readonly dropped: ValueCounts | null;
  /** Bytes between the two that were not read. */
  readonly unreadBytes: number;
}

export class WaitingRows {
  private waiting: Waiting[] = [];
  /** Up to `position`. */
  private before = new ValueTally();
  private unreadBefore = 0;
  /** The coordinator has every row up to here. */
  private position = 0;
  /** Bytes behind the newest row that were not read. */
  private unreadBehind = 0;
  /** Some of the output was not read, so that an own count from its beginning is none. */
  private hasGap = false;
  private wasAcknowledged = false;
  /** Rows of the last batch: whether they have arrived is not known, so none of them may be counted as dropped. */
  private sent = 0;

  get length(): number {
    return this.waiting.length;
  }

  /** @param row behind those before. One that the coordinator has is ignored: after a restart the output is read again */
  add(row: TrainingRow): void {
    if (row.position <= this.position) return;
    this.waiting.push({ row, dropped: null, unreadBytes: this.unreadBehind });
    this.unreadBehind = 0;
  }

  /** @param bytes of the output behind the newest row that nobody reads for metrics */
  skipped(bytes: number): void {
    this.unreadBehind += bytes;
    this.hasGap = true;
  }

  /** The oldest rows, at most `rowsMax`, and what the output has up to the last of them. */
  batch(rowsMax: number): RowBatch {
    const taken = this.waiting.slice(0, rowsMax);
    this.sent = taken.length;
    const isLast = taken.length === this.waiting.length;
    const tally = new ValueTally(this.before.counts);
    let unreadBytes = this.unreadBefore + (isLast ? this.unreadBehind : 0);
    for (const each of taken) {
      count(tally, each);
      unreadBytes += each.unreadBytes;
    }
    return { rows: taken.map(({ row }) => row), printed: tally.counts, unreadBytes, isLast };
  }

  /**
   * The coordinator has the rows up to a position.
   * @param received what it knows of the output up to there. null: it is of an older release and does not say
   */
  acknowledged(position: number, received: PrintedValues | null): void {
    this.sent = 0;
    let taken = 0;
    for (const each of this.waiting) {
      if (each.row.position > position) break;
      count(this.before, each);
      this.unreadBefore += each.unreadBytes;
      taken += 1;
    }
    this.waiting.splice(0, taken);
    this.position = Math.max(this.position, position);
    if (received === null) return;
    if (!this.wasAcknowledged && position > 0) this.resumeFrom(position, received);
    this.wasAcknowledged = true;
    this.before.raiseTo(received.printed);
    this.unreadBefore = Math.max(this.unreadBefore, received.unreadBytes);
  }

  /** The coordinator took nothing. */
  refused(): void {
    this.sent = 0;
  }

  /**
   * Drops rows evenly over the output.
   * @param rowsMax how many are left at most, of those that may go: the ends and extremes of each series may be more
   * @param newest of these rows none goes
   * @returns how many went
   */
  thin(rowsMax: number, newest: number): number {
    const start = this.sent;
    const end = Math.max(start, this.waiting.length - newest);
    const candidates = this.waiting.slice(start, end);
    if (candidates.length <= rowsMax) return 0;
    const kept = placesToKeep(candidates, rowsMax);
    const left: Waiting[] = [];
    let dropped: ValueTally | null = null;
    let unreadBytes = 0;
    for (const [place, each] of candidates.entries()) {
      unreadBytes += each.unreadBytes;
      if (!kept.has(place)) {
        dropped ??= new ValueTally();
        count(dropped, each);
        continue;
      }
      if (dropped !== null && each.dropped !== null) dropped.addAll(each.dropped);
      left.push({ row: each.row, dropped: dropped === null ? each.dropped : dropped.counts, unreadBytes });
      dropped = null;
      unreadBytes = 0;
    }
    this.waiting = [...this.waiting.slice(0, start), ...left, ...this.waiting.slice(end)];
    return candidates.length - left.length;
  }

  /** An earlier agent has sent rows of this output up to `position`, and may have read more or less of it than this one. */
  private resumeFrom(position: number, { printed, unreadBytes }: PrintedValues): void {
    const [next] = this.waiting;
    if (next !== undefined) {
      const { row, dropped } = next;
      const unread = Math.min(next.unreadBytes, row.position - position);
      this.waiting[0] = { row, dropped: this.droppedAfter(dropped, printed), unreadBytes: unread };
    }
    this.before = new ValueTally(printed);
    this.unreadBefore = unreadBytes;
  }

  /** Rows on both sides of the position may have been dropped as one, before it was known: those up to it are not missing. */
  private droppedAfter(dropped: ValueCounts | null, printed: ValueCounts): ValueCounts | null {
    if (dropped === null || this.hasGap) return dropped;
    const upToNext = new ValueTally(this.before.counts);
    upToNext.addAll(dropped);
    return excessOf(upToNext.counts, printed);
  }
}

function count(tally: ValueTally, { row, dropped }: Waiting): void {
  if (dropped !== null) tally.addAll(dropped);
  tally.addRow(row);
}

/** The last is always among them: what was dropped is counted with the row behind it. */
function placesToKeep(candidates: readonly Waiting[], rowsMax: number): ReadonlySet<number> {
  const series = trainingMetricNames.map(() => new SeriesMarks());
  for (const [place, { row }] of candidates.entries()) {
    for (const [index, name] of trainingMetricNames.entries()) {
      const value = row.values[name] ?? null;
      const isNotFinite = isNaNOf(row, name);
      if (value !== null || isNotFinite) series[index]?.add(place, value, value, isNotFinite);
    }
  }
  const kept = new Set(series.flatMap((marks) => marks.places)).add(candidates.length - 1);
  const first = candidates[0]?.row.position ?? 0;
  const last = candidates.at(-1)?.row.position ?? 0;
  const stretch = (last - first) / Math.max(1, rowsMax - kept.size);
  let next = first;
  for (const [place, { row }] of candidates.entries()) {
    if (row.position < next || rowsMax <= kept.size) continue;
    kept.add(place);
    next = Math.max(next + stretch, row.position);
  }
  return kept;
}

function isNaNOf({ lossNotFinite, alsoNotFinite }: TrainingRow, name: TrainingMetricName): boolean {
  return name === 'train_loss' ? lossNotFinite : (alsoNotFinite?.includes(name) ?? false);
}
