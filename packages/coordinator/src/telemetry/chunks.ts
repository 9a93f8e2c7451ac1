/**
 * Memory for readings: slots of equal size in a few large buffers. A slot that is given back is used again, so hours of
 * jobs that come and go leave neither garbage nor holes behind, and the whole can never outgrow its budget.
 */
import { jobMetrics } from '@muster/common/telemetry';

/** A field of a GPU's reading that can be asked for by name. */
export type MetricField = (typeof jobMetrics)[keyof typeof jobMetrics]['field'];

/** What one reading holds, in 32 bits each, which hold seven digits. */
export interface ReadingLayout<Field extends string> {
  readonly fields: readonly Field[];
}

export const gpuLayout: ReadingLayout<MetricField> = {
  fields: Object.values(jobMetrics).map(({ field }) => field),
};

/** Values by field; one that is missing or null was not read. */
export type ReadingValues<Field extends string> = Readonly<Partial<Record<Field, number | null>>>;

/** Five minutes of one GPU: small enough that short jobs waste little, large enough to be dropped in few steps. */
export const readingsPerChunk = 30;

const chunksPerBuffer = 1_024;

/** Times are kept as milliseconds since the chunk began: a 32-bit float holds each of these exactly. */
export const chunkSpanMsMax = 2 ** 24 - 1;

/** What a chunk takes: its slot, and about as much again as its bookkeeping was measured to (bench/telemetry.ts). */
export function chunkBytesOf({ fields }: ReadingLayout<string>): number {
  return floatsPerChunk(fields.length) * Float32Array.BYTES_PER_ELEMENT + 120;
}

/** One column for the time, one for each field. */
function floatsPerChunk(fieldCount: number): number {
  return readingsPerChunk * (fieldCount + 1);
}

/** Readings of one task, and of one GPU of it where they are of GPUs, in the order in which they came. */
export interface Chunk {
  readonly slot: number;
  /** Monotonic milliseconds of the first reading. */
  readonly beganMs: number;
  /** Of the last. */
  endMs: number;
  count: number;
}

export class ChunkMemory<Field extends string> {
  private readonly layout: ReadingLayout<Field>;
  private readonly floatsPerChunk: number;
  private readonly buffers: Float32Array[] = [];
  private readonly freeSlots: number[] = [];
  private slots = 0;

  constructor(layout: ReadingLayout<Field>) {
    this.layout = layout;
    this.floatsPerChunk = floatsPerChunk(layout.fields.length);
  }

  /** An empty chunk that begins at this moment. */
  open(beganMs: number): Chunk {
    let slot = this.freeSlots.pop();
    if (slot === undefined) {
      slot = this.slots;
      this.slots += 1;
      if (slot % chunksPerBuffer === 0) this.buffers.push(this.newBuffer());
    }
    return { slot, beganMs, endMs: beganMs, count: 0 };
  }

  /** The chunk must not be used any more. */
  release(chunk: Chunk): void {
    this.freeSlots.push(chunk.slot);
  }

  /** @param chunk one with room, whose span the moment fits in */
  append(chunk: Chunk, endMs: number, reading: ReadingValues<Field>): void {
    const buffer = this.bufferOf(chunk);
    let place = this.startOf(chunk) + chunk.count;
    buffer[place] = endMs - chunk.beganMs;
    for (const field of this.layout.fields) {
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

  valueAt(chunk: Chunk, field: Field, index: number): number | null {
    const value = this.at(chunk, this.layout.fields.indexOf(field) + 1, index);
    if (Number.isNaN(value)) return null;
    // What follows the seven digits of 32 bits would only look like precision.
    return Number(value.toPrecision(7));
  }

  private at(chunk: Chunk, column: number, index: number): number {
    return this.bufferOf(chunk)[this.startOf(chunk) + column * readingsPerChunk + index] ?? Number.NaN;
  }

  private newBuffer(): Float32Array {
    return new Float32Array(this.floatsPerChunk * chunksPerBuffer);
  }

  private startOf(chunk: Chunk): number {
    return (chunk.slot % chunksPerBuffer) * this.floatsPerChunk;
  }

  private bufferOf(chunk: Chunk): Float32Array {
    const buffer = this.buffers[Math.floor(chunk.slot / chunksPerBuffer)];
    if (buffer === undefined) throw new Error(`there is no slot ${chunk.slot}`);
    return buffer;
  }
}
