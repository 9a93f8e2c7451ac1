/** Memory for the readings of GPUs, in chunks. Times here are monotonic. */
import { jobMetrics } from '@muster/common/telemetry';

/** A field of a GPU's reading that can be asked for by name. */
export type MetricField = (typeof jobMetrics)[keyof typeof jobMetrics]['field'];

/** The values of one reading, in 32 bits each, which hold seven digits. */
export const metricFields: readonly MetricField[] = Object.values(jobMetrics).map(({ field }) => field);
/** One column for the time, one for each field. */
export const chunkColumns = metricFields.length + 1;

/** Values by field; one that is missing or null was not read. */
export type ReadingValues = Readonly<Partial<Record<MetricField, number | null>>>;

/** Five minutes of one GPU: small enough that short jobs waste little, large enough to be dropped in few steps. */
export const readingsPerChunk = 30;

const chunksPerBuffer = 1_024;

/** Times are kept as milliseconds since the chunk began: a 32-bit float holds each of these exactly. */
export const chunkSpanMsMax = 2 ** 24 - 1;

const floatsPerChunk = readingsPerChunk * chunkColumns;
/** The memory of a chunk: its slot, and its bookkeeping as it was measured (bench/telemetry.ts). */
export const readingChunkBytes = floatsPerChunk * Float32Array.BYTES_PER_ELEMENT + 120;

/** Readings of one GPU of a task, in the order of their arrival. */
export interface Chunk {
  readonly slot: number;
  /** Monotonic milliseconds of the first reading. */
  readonly beganMs: number;
  /** Of the last. */
  endMs: number;
  count: number;
}

/**
 * Memory for readings: slots of equal size in a few large buffers. A slot that is released is used again, so hours of jobs
 * leave neither garbage nor holes behind, and the whole can never exceed its budget.
 */
export class ChunkMemory {
  private readonly buffers: Float32Array[] = [];
  private readonly freeSlots: number[] = [];
  private slots = 0;

  /** An empty chunk that begins at this moment. */
  open(beganMs: number): Chunk {
    let slot = this.freeSlots.pop();
    if (slot === undefined) {
      slot = this.slots;
      this.slots += 1;
      if (slot % chunksPerBuffer === 0) this.buffers.push(new Float32Array(floatsPerChunk * chunksPerBuffer));
    }
    return { slot, beganMs, endMs: beganMs, count: 0 };
  }

  /** The chunk must no longer be used. */
  release(chunk: Chunk): void {
    this.freeSlots.push(chunk.slot);
  }

  /** @param chunk one with room, whose span the moment fits in */
  append(chunk: Chunk, endMs: number, reading: ReadingValues): void {
    const buffer = this.bufferOf(chunk);
    let place = this.startOf(chunk) + chunk.count;
    buffer[place] = endMs - chunk.beganMs;
    for (const field of metricFields) {
      place += readingsPerChunk;
      buffer[place] = reading[field] ?? Number.NaN;
    }
    chunk.count += 1;
    chunk.endMs = endMs;
  }

  /** Its readings, column by column without what is still empty. */
  columnsOf(chunk: Chunk): Float32Array {
    const { count } = chunk;
    const buffer = this.bufferOf(chunk);
    const start = this.startOf(chunk);
    const values = new Float32Array(count * chunkColumns);
    for (let column = 0; column < chunkColumns; column += 1) {
      const from = start + column * readingsPerChunk;
      values.set(buffer.subarray(from, from + count), column * count);
    }
    return values;
  }

  /** The inverse. @param chunk an empty one */
  fill(chunk: Chunk, values: Float32Array, count: number): void {
    const buffer = this.bufferOf(chunk);
    const start = this.startOf(chunk);
    for (let column = 0; column < chunkColumns; column += 1)
      buffer.set(values.subarray(column * count, (column + 1) * count), start + column * readingsPerChunk);
    chunk.count = count;
  }

  /** Monotonic milliseconds of the reading at `index`. */
  endMsAt(chunk: Chunk, index: number): number {
    return chunk.beganMs + this.at(chunk, 0, index);
  }

  valueAt(chunk: Chunk, field: MetricField, index: number): number | null {
    const value = this.at(chunk, metricFields.indexOf(field) + 1, index);
    if (Number.isNaN(value)) return null;
    // What follows the seven digits of 32 bits would only look like precision.
    return Number(value.toPrecision(7));
  }

  private at(chunk: Chunk, column: number, index: number): number {
    return this.bufferOf(chunk)[this.startOf(chunk) + column * readingsPerChunk + index] ?? Number.NaN;
  }

  private startOf(chunk: Chunk): number {
    return (chunk.slot % chunksPerBuffer) * floatsPerChunk;
  }

  private bufferOf(chunk: Chunk): Float32Array {
    const buffer = this.buffers[Math.floor(chunk.slot / chunksPerBuffer)];
    if (buffer === undefined) throw new Error(`there is no slot ${chunk.slot}`);
    return buffer;
  }
}
