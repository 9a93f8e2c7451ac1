/**
 * The readings of the GPUs of jobs in the last hours, by job, attempt, rank and GPU. They share one budget of bytes: when it is
 * used up, the readings of jobs that ended a while ago are dropped first, then the oldest. Times here are monotonic.
 */
import type { JobId, NodeName, TaskRef } from '@muster/common/ids';
import type { MetricPoint, MetricSeries } from '@muster/common/telemetry';
import {
  type Chunk,
  ChunkMemory,
  chunkColumns,
  chunkSpanMsMax,
  type MetricField,
  type ReadingValues,
  readingChunkBytes,
  readingsPerChunk,
} from './chunkMemory.ts';

/** Readings older than this are dropped. */
export const readingAgeMsMax = 6 * 3_600_000;

/** Of one page of what follows a moment. */
const pageSpanMs = 5 * 60_000;

/** When room is needed, what ended longer ago than this goes before anything of a job that runs. */
export const endedKeepMs = 3_600_000;

/** Names, map entries and lists of a series, as measured (bench/telemetry.ts). */
export const seriesBytes = 600;

/** One GPU of one rank of one attempt. */
interface Series {
  readonly jobId: JobId;
  readonly key: string;
  readonly attempt: number;
  readonly nodeRank: number;
  readonly node: NodeName;
  readonly gpuUuid: string;
  /** Oldest first. */
  readonly chunks: SeriesChunk[];
}

interface SeriesChunk extends Chunk {
  readonly series: Series;
  /** Neighbours in the order in which all chunks began. A list, because chunks also leave from its middle. */
  older: SeriesChunk | null;
  newer: SeriesChunk | null;
  /** Its memory belongs to somebody else. */
  isDropped: boolean;
}

/** Readings of one GPU of a task, as they are kept elsewhere. Times are milliseconds since the first one. */
export interface KeptReadings {
  readonly task: TaskRef;
  readonly node: NodeName;
  readonly gpuUuid: string;
  /** Monotonic. */
  readonly beganMs: number;
  /** A row of values for each column: the time, then one for each of `metricFields`. */
  readonly columns: Float32Array;
}

export interface MetricRange {
  readonly jobId: JobId;
  /** Only readings of the last `sinceMs` milliseconds. */
  readonly sinceMs: number;
  /** null: every attempt. */
  readonly attempt: number | null;
}

export interface MetricQuery extends MetricRange {
  readonly field: MetricField;
}

export interface PageQuery {
  readonly jobIds: Iterable<JobId>;
  readonly node: NodeName;
  readonly field: MetricField;
  /** null: every attempt. */
  readonly attempt: number | null;
}

export interface ReadingsPage {
  /** Monotonic: the newest that is in it. */
  readonly endMs: number;
  readonly series: readonly (MetricSeries & { readonly jobId: JobId })[];
}

export class JobReadings {
  private readonly bytesMax: number;
  private readonly memory = new ChunkMemory();
  private readonly jobs = new Map<JobId, Map<string, Series>>();
  /** When each job was first seen to have ended, longest ago first. */
  private readonly endedAtMs = new Map<JobId, number>();
  private oldest: SeriesChunk | null = null;
  private newest: SeriesChunk | null = null;
  private chunkCount = 0;
  private seriesCount = 0;
  /** Dropped before their time, because the memory was full. */
  evictedReadings = 0;

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax;
  }

  get bytes(): number {
    return this.chunkCount * readingChunkBytes + this.seriesCount * seriesBytes;
  }

  get series(): number {
    return this.seriesCount;
  }

  get jobIds(): readonly JobId[] {
    return [...this.jobs.keys()];
  }

  /**
   * @param task the one that ran, or held the GPU, on this node
   * @param endMs end of the reading's interval; moved behind the series' last one where it is not
   */
  append(
    task: TaskRef,
    node: NodeName,
    reading: ReadingValues & { readonly gpuUuid: string },
    endMs: number,
    nowMs: number,
  ): void {
    const existing = this.find(task, reading.gpuUuid)?.chunks.at(-1);
    const moment = existing === undefined ? endMs : Math.max(endMs, existing.endMs + 1);
    const hasRoom =
      existing !== undefined &&
      existing.count < readingsPerChunk &&
      moment - existing.beganMs <= chunkSpanMsMax;
    const chunk = hasRoom ? existing : this.openChunk(task, node, reading.gpuUuid, moment, nowMs);
    this.memory.append(chunk, moment, reading);
  }

  /** Whether this task of this node has reported this GPU before. */
  knows(task: TaskRef, node: NodeName, gpuUuid: string): boolean {
    return this.find(task, gpuUuid)?.node === node;
  }

  /** By attempt, rank and GPU, each oldest first. */
  query({ jobId, field, sinceMs, attempt }: MetricQuery, nowMs: number, wallMs: number): MetricSeries[] {
    const fromMs = nowMs - Math.min(sinceMs, readingAgeMsMax);
    const wallOffsetMs = wallMs - nowMs;
    return [...(this.jobs.get(jobId)?.values() ?? [])]
      .filter((series) => attempt === null || series.attempt === attempt)
      .sort(bySeries)
      .map(({ chunks, ...series }) => ({
        attempt: series.attempt,
        nodeRank: series.nodeRank,
        node: series.node,
        gpuUuid: series.gpuUuid,
        points: chunks.flatMap((chunk) => this.pointsOf(chunk, field, fromMs, wallOffsetMs)),
      }))
      .filter(({ points }) => points.length > 0);
  }

  /** Where there are readings: each job on each of its nodes, at least once. */
  *places(): Generator<{ readonly node: NodeName; readonly jobId: JobId }> {
    for (const [jobId, ofJob] of this.jobs) for (const { node } of ofJob.values()) yield { node, jobId };
  }

  /**
   * What the GPUs of a node did after a moment: some minutes of it, so that nobody has to wait for all of it.
   * @param wallOffsetMs wall clock less monotonic clock
   * @returns null: nothing is there
   */
  pageAfter(
    { jobIds, node, field, attempt }: PageQuery,
    afterMs: number,
    wallOffsetMs: number,
  ): ReadingsPage | null {
    const found = Array.from(jobIds).flatMap((jobId) =>
      Array.from(this.jobs.get(jobId)?.values() ?? []).filter(
        (series) => series.node === node && (attempt === null || series.attempt === attempt),
      ),
    );
    let firstMs = Number.POSITIVE_INFINITY;
    for (const series of found) {
      const [first] = this.readingsAfter(series, afterMs);
      if (first !== undefined) firstMs = Math.min(firstMs, first.endMs);
    }
    if (firstMs === Number.POSITIVE_INFINITY) return null;
    // The same time of each GPU: else readings of one GPU would count as sent because those of another were.
    const untilMs = firstMs + pageSpanMs;
    let lastMs = firstMs;
    const series = found.flatMap((each) => {
      const points: MetricPoint[] = [];
      for (const { endMs, chunk, index } of this.readingsAfter(each, afterMs)) {
        if (endMs > untilMs) break;
        const value = this.memory.valueAt(chunk, field, index);
        points.push({ atMs: Math.round(endMs + wallOffsetMs), value });
        lastMs = Math.max(lastMs, endMs);
      }
      const { jobId, attempt: number, nodeRank, gpuUuid } = each;
      return points.length === 0 ? [] : [{ jobId, attempt: number, nodeRank, node, gpuUuid, points }];
    });
    return { endMs: lastMs, series };
  }

  /** From the first chunk on that reaches beyond the moment: for what has just arrived, that is the last one. */
  private *readingsAfter({ chunks }: Series, afterMs: number) {
    let from = chunks.length;
    while ((chunks[from - 1]?.endMs ?? Number.NEGATIVE_INFINITY) > afterMs) from -= 1;
    for (const chunk of chunks.slice(from)) {
      for (let index = 0; index < chunk.count; index += 1) {
        const endMs = this.memory.endMsAt(chunk, index);
        if (endMs > afterMs) yield { endMs, chunk, index };
      }
    }
  }

  /** The number of points that a query would return, to a chunk: cheap enough to be called before it. */
  countReadings(jobId: JobId, sinceMs: number, attempt: number | null, nowMs: number): number {
    const fromMs = nowMs - sinceMs;
    let count = 0;
    for (const series of this.jobs.get(jobId)?.values() ?? []) {
      if (attempt !== null && series.attempt !== attempt) continue;
      for (const chunk of series.chunks) if (chunk.endMs >= fromMs) count += chunk.count;
    }
    return count;
  }

  /** Drops readings that are too old, and records which jobs have ended. Called about once a minute. */
  sweep(nowMs: number, isActive: (jobId: JobId) => boolean): void {
    const fromMs = nowMs - readingAgeMsMax;
    // A chunk that began long ago may still be the open one of a GPU that seldom reports.
    for (let chunk = this.oldest; chunk !== null && chunk.beganMs < fromMs; ) {
      const { newer } = chunk;
      if (chunk.endMs < fromMs) this.drop(chunk);
      chunk = newer;
    }
    for (const jobId of this.jobs.keys())
      if (!this.endedAtMs.has(jobId) && !isActive(jobId)) this.endedAtMs.set(jobId, nowMs);
  }

  /**
   * Everything, oldest first, in pieces between which the caller may wait: what is dropped meanwhile is omitted.
   * @param size chunks of a piece
   */
  *kept(size: number): Generator<readonly KeptReadings[]> {
    const chunks: SeriesChunk[] = [];
    for (let chunk = this.oldest; chunk !== null; chunk = chunk.newer) chunks.push(chunk);
    for (let from = 0; from < chunks.length; from += size) {
      const alive = chunks.slice(from, from + size).filter(({ isDropped }) => !isDropped);
      yield alive.map((chunk) => {
        const { jobId, attempt, nodeRank, node, gpuUuid } = chunk.series;
        const task = { jobId, attempt, nodeRank };
        return { task, node, gpuUuid, beganMs: chunk.beganMs, columns: this.memory.columnsOf(chunk) };
      });
    }
  }

  /** Puts back what `kept` gave, in the same order and before anything else comes. What is too old or malformed is ignored. */
  restore({ task, node, gpuUuid, beganMs, columns: values }: KeptReadings, nowMs: number): void {
    const count = values.length / chunkColumns;
    if (!Number.isInteger(count) || count < 1 || count > readingsPerChunk) return;
    const spanMs = values[count - 1] ?? Number.NaN;
    const previousMs = this.find(task, gpuUuid)?.chunks.at(-1)?.endMs ?? Number.NEGATIVE_INFINITY;
    const isInOrder = spanMs >= 0 && spanMs <= chunkSpanMsMax && beganMs > previousMs;
    const endMs = beganMs + spanMs;
    if (!isInOrder || endMs < nowMs - readingAgeMsMax || endMs > nowMs) return;
    const chunk = this.openChunk(task, node, gpuUuid, beganMs, nowMs);
    this.memory.fill(chunk, values, count);
    chunk.endMs = endMs;
  }

  private find(task: TaskRef, gpuUuid: string): Series | undefined {
    return this.jobs.get(task.jobId)?.get(seriesKey(task, gpuUuid));
  }

  private openChunk(
    task: TaskRef,
    node: NodeName,
    gpuUuid: string,
    beganMs: number,
    nowMs: number,
  ): SeriesChunk {
    this.makeRoom(readingChunkBytes + seriesBytes, nowMs);
    // Looked up only now: making room may have dropped it.
    const series = this.find(task, gpuUuid) ?? this.addSeries(task, node, gpuUuid);
    const opened = this.memory.open(beganMs);
    const chunk: SeriesChunk = { ...opened, series, older: this.newest, newer: null, isDropped: false };
    if (this.newest === null) this.oldest = chunk;
    else this.newest.newer = chunk;
    this.newest = chunk;
    series.chunks.push(chunk);
    this.chunkCount += 1;
    return chunk;
  }

  private addSeries(task: TaskRef, node: NodeName, gpuUuid: string): Series {
    const { jobId, attempt, nodeRank } = task;
    const key = seriesKey(task, gpuUuid);
    const series = { jobId, key, attempt, nodeRank, node, gpuUuid, chunks: [] };
    const ofJob = this.jobs.get(jobId);
    if (ofJob === undefined) this.jobs.set(jobId, new Map([[key, series]]));
    else ofJob.set(key, series);
    this.seriesCount += 1;
    return series;
  }

  private makeRoom(neededBytes: number, nowMs: number): void {
    while (this.oldest !== null && this.bytes + neededBytes > this.bytesMax) {
      const victim = this.longEnded(nowMs) ?? this.oldest;
      this.evictedReadings += victim.count;
      this.drop(victim);
    }
  }

  /** The oldest chunk of the job that ended longest ago, when that was long enough ago. */
  private longEnded(nowMs: number): SeriesChunk | null {
    const [first] = this.endedAtMs;
    if (first === undefined || nowMs - first[1] < endedKeepMs) return null;
    const [series] = this.jobs.get(first[0])?.values() ?? [];
    return series?.chunks[0] ?? null;
  }

  private drop(chunk: SeriesChunk): void {
    const { series, older, newer } = chunk;
    if (older === null) this.oldest = newer;
    else older.newer = newer;
    if (newer === null) this.newest = older;
    else newer.older = older;
    this.memory.release(chunk);
    chunk.isDropped = true;
    this.chunkCount -= 1;
    // Of one series the oldest goes first, but for a reading that was moved in time.
    series.chunks.splice(series.chunks.indexOf(chunk), 1);
    if (series.chunks.length > 0) return;
    this.seriesCount -= 1;
    const ofJob = this.jobs.get(series.jobId);
    ofJob?.delete(series.key);
    if (ofJob?.size !== 0) return;
    this.jobs.delete(series.jobId);
    this.endedAtMs.delete(series.jobId);
  }

  private pointsOf(chunk: Chunk, field: MetricField, fromMs: number, wallOffsetMs: number): MetricPoint[] {
    if (chunk.endMs < fromMs) return [];
    const points: MetricPoint[] = [];
    for (let index = 0; index < chunk.count; index += 1) {
      const endMs = this.memory.endMsAt(chunk, index);
      if (endMs < fromMs) continue;
      points.push({
        atMs: Math.round(endMs + wallOffsetMs),
        value: this.memory.valueAt(chunk, field, index),
      });
    }
    return points;
  }
}

function seriesKey({ attempt, nodeRank }: TaskRef, gpuUuid: string): string {
  return `${attempt}.${nodeRank}.${gpuUuid}`;
}

function bySeries(a: Series, b: Series): number {
  return a.attempt - b.attempt || a.nodeRank - b.nodeRank || (a.gpuUuid < b.gpuUuid ? -1 : 1);
}
