/**
 * Memory for readings: slots of equal size in a few large buffers. A slot that is given back is used again, so hours of
 * jobs that come and go leave neither garbage nor holes behind, and the whole can never outgrow its budget.
 */
import { type GpuReading, jobMetrics } from '@muster/common/telemetry';

/** A field of a reading that can be asked for by name. */
export type MetricField = (typeof jobMetrics)[keyof typeof jobMetrics]['field'];

/** Five minutes of one GPU: small enough that short jobs waste little, large enough to be dropped in few steps. */
export const readingsPerChunk = 30;

const fields: readonly MetricField[] = Object.values(jobMetrics).map(({ field }) => field);
/** One for the time, one for each field. */
const columns = fields.length + 1;
const floatsPerChunk = readingsPerChunk * columns;
const chunksPerBuffer = 1_024;

/** Times are kept as milliseconds since the chunk began: a 32-bit float holds each of these exactly. */
export const chunkSpanMsMax = 2 ** 24 - 1;

/** What a chunk takes: its slot, and about as much again as its bookkeeping was measured to (bench/telemetry.ts). */
export const chunkBytes = floatsPerChunk * Float32Array.BYTES_PER_ELEMENT + 120;

/** Readings of one GPU for one task, in the order in which they came. */
export interface Chunk {
  readonly slot: number;
  /** Monotonic milliseconds of the first reading. */
  readonly beganMs: number;
  /** Of the last. */
  endMs: number;
  count: number;
}

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

  /** The chunk must not be used any more. */
  release(chunk: Chunk): void {
    this.freeSlots.push(chunk.slot);
  }

  /** @param chunk one with room, whose span the moment fits in */
  append(chunk: Chunk, endMs: number, reading: GpuReading): void {
    const buffer = this.bufferOf(chunk);
    let place = startOf(chunk) + chunk.count;
    buffer[place] = endMs - chunk.beganMs;
    for (const field of fields) {
      place += readingsPerChunk;
      buffer[place] = reading[field] ?? Number.NaN;
    }
    chunk.count += 1;
    chunk.endMs = endMs;
  }

  /** Monotonic milliseconds of the reading at `index`. */
  endMsAt(chunk: Chunk, index: number): number {
    return chunk.beganMs + this.at(chunk, 0, index);
  }

  valueAt(chunk: Chunk, field: MetricField, index: number): number | null {
    const value = this.at(chunk, fields.indexOf(field) + 1, index);
    // Floats of 32 bits hold seven digits; what follows them would only look like precision.
    return Number.isNaN(value) ? null : Number(value.toPrecision(7));
  }

  private at(chunk: Chunk, column: number, index: number): number {
    return this.bufferOf(chunk)[startOf(chunk) + column * readingsPerChunk + index] ?? Number.NaN;
  }

  private bufferOf(chunk: Chunk): Float32Array {
    const buffer = this.buffers[Math.floor(chunk.slot / chunksPerBuffer)];
    if (buffer === undefined) throw new Error(`there is no slot ${chunk.slot}`);
    return buffer;
  }
}

function startOf(chunk: Chunk): number {
  return (chunk.slot % chunksPerBuffer) * floatsPerChunk;
}
