/** ValueSource from the output of a job, row by row. */
import { MusterError } from '@muster/common/errors';
import { type JobId, type TaskRef, taskKey } from '@muster/common/ids';
import type { MetricPoint, MetricSeries } from '@muster/common/telemetry';
import type { TrainingMetricName } from '@muster/common/training';
import type { Positions } from '../metricQuery/positions.ts';
import { pointOf } from '../rows/curve.ts';
import type { Frame } from '../rows/rowFormat.ts';
import type { RowStore } from '../rows/rowStore.ts';
import type { Arrivals } from './arrivals.ts';
import type { ValueSource } from './followValues.ts';

export interface OutputValueParts {
  readonly rows: Pick<RowStore, 'lookAt'>;
  readonly arrivals: Pick<Arrivals, 'follow'>;
  /** @returns empty: it is not known */
  readonly nodeOf: (task: TaskRef) => Promise<string>;
}

export interface OutputValuesOf {
  readonly jobId: JobId;
  readonly name: TrainingMetricName;
  readonly attempt: number | null;
}

/** What waits for a slow reader; of one that is slower still, the file is read again. */
const waitingPointsMax = 20_000;

/** Of one task, up to a position of its output. */
interface Piece {
  readonly task: TaskRef;
  readonly bytes: number;
  readonly atMs: number;
  readonly points: readonly MetricPoint[];
}

export class OutputValues implements ValueSource {
  private readonly parts: OutputValueParts;
  private readonly of: OutputValuesOf;
  private readonly positions: Positions;
  /** In the order in which they are sent. */
  private waiting: Piece[] = [];
  private waitingPoints = 0;
  /** The file has rows that do not wait here. */
  private isBehind = false;
  private readonly nodes = new Map<string, string>();

  constructor(parts: OutputValueParts, of: OutputValuesOf, positions: Positions) {
    this.parts = parts;
    this.of = of;
    this.positions = positions;
  }

  follow(onNew: (source: string) => void): () => void {
    const { jobId } = this.of;
    return this.parts.arrivals.follow((arrival) => {
      if (arrival.kind !== 'rows' || arrival.jobId !== jobId) return;
      for (const frame of arrival.frames) {
        if (this.isBehind || this.waitingPoints >= waitingPointsMax) this.isBehind = true;
        else if (this.isNew(frame)) this.add(frame, 0);
      }
      onNew(jobId);
    });
  }

  earlierSources(): Promise<readonly string[]> {
    this.isBehind = true;
    return Promise.resolve([this.of.jobId]);
  }

  async next(_source: string, abort: AbortSignal): Promise<readonly MetricSeries[] | null> {
    while (!abort.aborted) {
      if (this.waiting.length === 0 && this.isBehind) await this.catchUp();
      const series = await this.nextWaiting();
      if (series !== null || !this.isBehind) return series;
    }
    return null;
  }

  private async nextWaiting(): Promise<readonly MetricSeries[] | null> {
    for (let piece = this.waiting.shift(); piece !== undefined; piece = this.waiting.shift()) {
      const { task, bytes, atMs, points } = piece;
      this.waitingPoints -= points.length;
      const source = sourceOf(task);
      if (bytes <= (this.positions.bytesOf(source) ?? 0)) continue;
      this.positions.advance(source, atMs, bytes);
      if (points.length === 0) continue;
      const { attempt, nodeRank } = task;
      return [{ attempt, nodeRank, node: await this.nodeOf(task), gpuUuid: '', points }];
    }
    return null;
  }

  /** What arrives while the file is read waits behind what is read. @throws {MusterError} `not_found`: nothing is left of it */
  private async catchUp(): Promise<void> {
    this.isBehind = false;
    const read: Frame[] = [];
    let isAll = true;
    let points = 0;
    const looked = await this.parts.rows.lookAt(this.of.jobId, async ({ read: readFrames }) => {
      await readFrames((frame) => {
        if (!this.isNew(frame)) return;
        isAll &&= points < waitingPointsMax;
        points += frame.rows.length;
        if (isAll) read.push(frame);
      });
      return true;
    });
    if (looked === null && this.positions.hasBytes)
      throw new MusterError('not_found', `the metrics of ${this.of.jobId} were removed while they were read`);
    const arrived = this.waiting;
    this.waiting = [];
    this.waitingPoints = 0;
    for (const frame of read) this.add(frame, this.positions.fromMs);
    if (!isAll) this.isBehind = true;
    if (this.isBehind) return;
    this.waiting.push(...arrived);
    this.waitingPoints += arrived.reduce((sum, piece) => sum + piece.points.length, 0);
  }

  private isNew({ attempt, nodeRank, position }: Frame): boolean {
    if (this.of.attempt !== null && attempt !== this.of.attempt) return false;
    return position > (this.positions.bytesOf(sourceOf({ attempt, nodeRank })) ?? 0);
  }

  /** @param fromMs of a task of which nothing was sent yet, rows up to this time are excluded */
  private add({ attempt, nodeRank, position, rows }: Frame, fromMs: number): void {
    const { jobId, name } = this.of;
    const isSent = this.positions.bytesOf(sourceOf({ attempt, nodeRank })) !== null;
    const points = rows.flatMap((row) => {
      const point = isSent || row.atMs > fromMs ? pointOf(row, name) : null;
      return point === null ? [] : [point];
    });
    const task = { jobId, attempt, nodeRank };
    this.waiting.push({ task, bytes: position, atMs: rows.at(-1)?.atMs ?? 0, points });
    this.waitingPoints += points.length;
  }

  private async nodeOf(task: TaskRef): Promise<string> {
    const key = taskKey(task);
    const node = this.nodes.get(key) ?? (await this.parts.nodeOf(task));
    this.nodes.set(key, node);
    return node;
  }
}

/** As it is in a position. */
function sourceOf({ attempt, nodeRank }: Pick<TaskRef, 'attempt' | 'nodeRank'>): string {
  return `${attempt}.${nodeRank}`;
}
