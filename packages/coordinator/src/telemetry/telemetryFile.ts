/**
 * Keeps the readings of the last hours in a file, so that a restart of the coordinator does not lose them. It is written every five
 * minutes and at a stop, whole or not at all, and read once before anything else comes. Nothing depends on it: a file that is
 * missing, damaged or too large costs the readings in it, and a log line.
 */
import { open, readFile, rename, rm, stat } from 'node:fs/promises';
import type { Clock } from '@muster/common/clock';
import { messageOf } from '@muster/common/errors';
import { isJobId, isNodeName } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import { clusterMetricNames } from '@muster/common/metricNames';
import { metricFields } from './chunkMemory.ts';
import { type ClusterHistory, clusterKey } from './clusterHistory.ts';
import type { RowHistory } from './rowHistory.ts';
import {
  decodeSnapshotFrame,
  decodeSnapshotHead,
  encodeSnapshotFrame,
  encodeSnapshotHead,
  type SnapshotFrame,
  snapshotHeadBytes,
} from './snapshotFormat.ts';
import { hostColumns, type TelemetryStore } from './telemetryStore.ts';

export const snapshotIntervalMs = 5 * 60_000;
/** Encoded at once: a millisecond of work, after which everybody else has the event loop. */
const chunksAtOnce = 128;
/** Beside the readings of jobs, whose budget is known. */
const otherBytesMax = 64 * 1024 * 1024;

export interface TelemetryFileParts {
  /** Absolute. */
  readonly path: string;
  readonly telemetry: TelemetryStore;
  readonly clusterHistory: ClusterHistory;
  /** Throws where the disk has no room for this many bytes. */
  readonly reserve: { requireSpace(monotonicMs: number, bytes: number): void };
  readonly clock: Clock;
  readonly log: Logger;
}

export class TelemetryFile {
  private readonly parts: TelemetryFileParts;
  private writtenMs: number;
  private writing: Promise<void> | null = null;
  /** What failed last; a change is logged, and not every try. */
  private problem: string | null = null;

  constructor(parts: TelemetryFileParts) {
    this.parts = parts;
    this.writtenMs = parts.clock.monotonicMs();
  }

  /** Puts back what was kept. Never rejects. */
  async load(): Promise<void> {
    const { path, log } = this.parts;
    try {
      const size = (await stat(path).catch(() => null))?.size ?? 0;
      if (size === 0) return;
      if (size > this.bytesMax) {
        log.warn({ path, bytes: size }, 'the file of readings is larger than their budget, and is not read');
        return;
      }
      const problem = this.restore(await readFile(path));
      if (problem !== null) log.warn({ path }, `the file of readings ${problem}`);
    } catch (error) {
      log.warn({ path, error: messageOf(error) }, 'the file of readings could not be read');
    }
  }

  /** May be called at any time; every five minutes it writes. */
  run(): Promise<void> {
    const nowMs = this.parts.clock.monotonicMs();
    if (this.writing !== null || nowMs - this.writtenMs < snapshotIntervalMs) return Promise.resolve();
    this.writtenMs = nowMs;
    return this.write();
  }

  /** Writes once more. */
  async close(): Promise<void> {
    await this.writing;
    await this.write();
  }

  private get bytesMax(): number {
    return 2 * this.parts.telemetry.usage.bytesMax + otherBytesMax;
  }

  private async write(): Promise<void> {
    this.writing = this.writeWhole();
    try {
      await this.writing;
      this.problem = null;
    } catch (error) {
      const { path, log } = this.parts;
      const problem = messageOf(error);
      if (problem !== this.problem)
        log.warn({ path, error: problem }, 'readings could not be written: a restart would lose them');
      this.problem = problem;
    } finally {
      this.writing = null;
    }
  }

  private async writeWhole(): Promise<void> {
    const { path, telemetry, reserve, clock } = this.parts;
    reserve.requireSpace(clock.monotonicMs(), telemetry.usage.bytes);
    const temporary = `${path}.tmp`;
    await rm(temporary, { force: true });
    const file = await open(temporary, 'wx', 0o600);
    try {
      try {
        for (const piece of this.pieces()) await file.writeFile(piece);
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(temporary, path);
    } catch (error) {
      await rm(temporary, { force: true }).catch(() => {});
      throw error;
    }
  }

  private *pieces(): Generator<Buffer> {
    const { telemetry, clusterHistory, clock } = this.parts;
    const wallOffsetMs = clock.wallMs() - clock.monotonicMs();
    yield encodeSnapshotHead(clock.wallMs());
    let frames = 0;
    for (const chunks of telemetry.gpuReadings.kept(chunksAtOnce)) {
      frames += chunks.length;
      yield Buffer.concat(
        chunks.map(({ task, node, gpuUuid, beganMs, columns }) =>
          encodeSnapshotFrame({
            about: {
              kind: 'gpu',
              ...task,
              node,
              gpuUuid,
              atMs: beganMs + wallOffsetMs,
              fields: metricFields,
            },
            numbers: columns,
          }),
        ),
      );
    }
    for (const node of telemetry.hosts.keys) {
      frames += 1;
      yield encodeSnapshotFrame({
        about: { kind: 'host', node, fields: hostColumns },
        numbers: numbersOf(telemetry.hosts, node, wallOffsetMs),
      });
    }
    frames += 1;
    yield encodeSnapshotFrame({
      about: { kind: 'cluster', fields: clusterMetricNames },
      numbers: numbersOf(clusterHistory.rows, clusterKey, wallOffsetMs),
    });
    yield encodeSnapshotFrame({ about: { kind: 'end', frames }, numbers: new Float32Array(0) });
  }

  /** @returns what is wrong with it; null: nothing */
  private restore(bytes: Buffer): string | null {
    const { clock } = this.parts;
    const writtenAtMs = decodeSnapshotHead(bytes);
    if (writtenAtMs === null) return 'is not one of ours, or of a later version, and is not read';
    const nowMs = clock.monotonicMs();
    // A clock that was set back since counts as one that has stood still.
    const offsetMs = nowMs - Math.max(clock.wallMs(), writtenAtMs);
    for (let at = snapshotHeadBytes; ; ) {
      const read = decodeSnapshotFrame(bytes, at);
      if (read === 'damaged')
        return `is damaged at byte ${at} of ${bytes.length}; what stands before it is used`;
      if (read.frame.about['kind'] === 'end') return null;
      this.take(read.frame, offsetMs, nowMs);
      at = read.end;
    }
  }

  /** What is not valid is ignored. */
  private take({ about, numbers }: SnapshotFrame, offsetMs: number, nowMs: number): void {
    const { telemetry, clusterHistory } = this.parts;
    const { kind, jobId, attempt, nodeRank, node, gpuUuid, atMs, fields } = about;
    if (!Array.isArray(fields)) return;
    if (kind === 'cluster')
      restoreRows(clusterHistory.rows, clusterKey, clusterMetricNames, fields, numbers, offsetMs, nowMs);
    if (typeof node !== 'string' || !isNodeName(node)) return;
    if (kind === 'host') restoreRows(telemetry.hosts, node, hostColumns, fields, numbers, offsetMs, nowMs);
    if (kind !== 'gpu' || typeof jobId !== 'string' || !isJobId(jobId)) return;
    if (typeof attempt !== 'number' || typeof nodeRank !== 'number') return;
    if (typeof gpuUuid !== 'string' || typeof atMs !== 'number') return;
    const beganMs = atMs + offsetMs;
    const columns = inOrderOf(metricFields, fields, new Float32Array(numbers));
    telemetry.gpuReadings.restore(
      { task: { jobId, attempt, nodeRank }, node, gpuUuid, beganMs, columns },
      nowMs,
    );
    telemetry.reachesBackTo(beganMs);
  }
}

/** Row by row: the time, then a value for each column. */
function numbersOf<Key extends string>(
  history: RowHistory<Key>,
  key: Key,
  wallOffsetMs: number,
): Float64Array {
  return Float64Array.from(
    history
      .rows(key)
      .flatMap(({ endMs, values }) => [endMs + wallOffsetMs, ...values.map((value) => value ?? Number.NaN)]),
  );
}

function restoreRows<Key extends string>(
  history: RowHistory<Key>,
  key: Key,
  columns: readonly string[],
  fields: readonly unknown[],
  numbers: SnapshotFrame['numbers'],
  offsetMs: number,
  nowMs: number,
): void {
  const width = fields.length + 1;
  for (let at = 0; at + width <= numbers.length; at += width) {
    const endMs = (numbers[at] ?? Number.NaN) + offsetMs;
    if (!(endMs <= nowMs)) continue;
    const values = columns.map((name) => {
      const column = fields.indexOf(name);
      const value = column < 0 ? undefined : numbers[at + 1 + column];
      return value === undefined || Number.isNaN(value) ? null : value;
    });
    history.restore(key, { endMs, values });
  }
}

/** Columns as this version has them: those that the file lacks were not read. */
function inOrderOf(
  wanted: readonly string[],
  fields: readonly unknown[],
  columns: Float32Array,
): Float32Array {
  if (fields.length === wanted.length && wanted.every((name, index) => fields[index] === name))
    return columns;
  const count = columns.length / (fields.length + 1);
  if (!Number.isInteger(count)) return new Float32Array(0);
  const values = new Float32Array(count * (wanted.length + 1)).fill(Number.NaN);
  values.set(columns.subarray(0, count));
  for (const [index, name] of wanted.entries()) {
    const column = fields.indexOf(name) + 1;
    if (column > 0) values.set(columns.subarray(column * count, (column + 1) * count), (index + 1) * count);
  }
  return values;
}
