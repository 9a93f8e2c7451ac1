/** nvmlDeviceGetFieldValues: many values by one call. Numbers from NVML_FI_DEV_* in NVIDIA's nvml.h. */
import type { Calls } from './calls.ts';
import { fieldValue, readFieldValue, readU64, valueTypes } from './structs.ts';

export const fields = {
  memoryTemperature: 82,
  /** KiB of data over NVLink; of all links together. */
  nvlinkTx: 138,
  nvlinkRx: 139,
  /** Bytes over PCIe. */
  pcieTx: 197,
  pcieRx: 198,
  recoveryAction: 230,
} as const;

export type FieldName = keyof typeof fields;

const allLinks = 0xffffffff;

/** A counter at the moment the driver read it. */
export interface CounterReading {
  readonly value: number;
  readonly atMicros: number;
}

export class FieldBatch {
  private readonly names: readonly FieldName[];
  private readonly buffer: Buffer;
  private isRead = false;

  constructor(names: readonly FieldName[]) {
    this.names = names;
    this.buffer = Buffer.alloc(names.length * fieldValue.size);
  }

  read(calls: Calls, handle: number): void {
    this.buffer.fill(0);
    for (const [index, name] of this.names.entries()) {
      const at = index * fieldValue.size;
      this.buffer.writeUInt32LE(fields[name], at);
      const isOfLinks = name === 'nvlinkTx' || name === 'nvlinkRx';
      this.buffer.writeUInt32LE(isOfLinks ? allLinks : 0, at + fieldValue.scope);
    }
    this.isRead = calls.run('nvmlDeviceGetFieldValues', handle, this.names.length, this.buffer);
  }

  value(name: FieldName): number | null {
    const at = this.offsetOf(name);
    return at === null ? null : readFieldValue(this.buffer, at);
  }

  /** @returns null also for a counter of 32 bits: at the speed of a bus it has wrapped nobody knows how often */
  counter(name: FieldName): CounterReading | null {
    const at = this.offsetOf(name);
    const value = at === null ? null : readFieldValue(this.buffer, at);
    if (at === null || value === null) return null;
    const valueType = this.buffer.readInt32LE(at + fieldValue.valueType);
    if (valueType !== valueTypes.u64 && valueType !== valueTypes.unsignedLong) return null;
    const atMicros = readU64(this.buffer, at + fieldValue.timestamp);
    return atMicros === null || atMicros === 0 ? null : { value, atMicros };
  }

  private offsetOf(name: FieldName): number | null {
    const index = this.names.indexOf(name);
    return this.isRead && index !== -1 ? index * fieldValue.size : null;
  }
}

/** Turns a counter that only grows into a rate. */
export class CounterRate {
  private before: CounterReading | null = null;

  /** @returns units per second since the reading before; null when there was none, or the counter started over */
  of(reading: CounterReading | null): number | null {
    const before = this.before;
    this.before = reading;
    if (before === null || reading === null) return null;
    const micros = reading.atMicros - before.atMicros;
    const grown = reading.value - before.value;
    return micros <= 0 || grown < 0 ? null : (grown / micros) * 1_000_000;
  }
}
