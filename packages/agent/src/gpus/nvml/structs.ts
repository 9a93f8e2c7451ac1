/**
 * Memory layouts of NVML, decoded by offset. Sizes and offsets are those of NVIDIA's nvml.h (API 13) on 64-bit Linux,
 * little endian. A versioned struct starts with `size | version << 24`, by which the library knows what it may write.
 */

const versioned = (size: number, version: number) => size + version * 0x1000000;

export const uuidSize = 96;
export const nameSize = 96;
export const serialSize = 30;
export const versionSize = 80;

/** nvmlMemory_v2_t: version@0 total@8 reserved@16 free@24 used@32. */
export const memoryV2 = { size: 40, version: versioned(40, 2), total: 8, reserved: 16, free: 24, used: 32 };
/** nvmlMemory_t: total@0 free@8 used@16. */
export const memoryV1 = { size: 24, total: 0, free: 8, used: 16 };
/** nvmlPciInfo_t: domain@16 bus@20 device@24 busId@36[32]. */
export const pciInfo = { size: 68, domain: 16, bus: 20, device: 24, busId: 36, busIdSize: 32 };
/** nvmlTemperature_v1_t: version@0 sensor@4 temperature@8. */
export const temperatureV1 = { size: 12, version: versioned(12, 1), sensor: 4, temperature: 8 };
/** nvmlEccSramErrorStatus_v1_t: version@0, eleven counters of 8 bytes from 8 on, bThresholdExceeded@96. */
export const sramStatus = { size: 104, version: versioned(104, 1), thresholdExceeded: 96 };
/** nvmlProcessInfo_t: pid@0 usedGpuMemory@8 gpuInstanceId@16 computeInstanceId@20. */
export const processInfo = { size: 24, pid: 0, usedMemory: 8 };
/** nvmlDeviceAttributes_t: gpuInstanceSliceCount@24 computeInstanceSliceCount@28 memorySizeMB@32. */
export const attributes = { size: 40, gpuSlices: 24, computeSlices: 28, memoryMb: 32 };
/** nvmlEventData_t: device@0 eventType@8 eventData@16 gpuInstanceId@24 computeInstanceId@28. */
export const eventData = { size: 32, device: 0, type: 8, data: 16 };
/** nvmlGpmSupport_t: version@0 (1, not versioned by size) isSupportedDevice@4. */
export const gpmSupport = { size: 8, version: 1, isSupported: 4 };
/**
 * nvmlGpmMetricsGet_t: version@0 numMetrics@4 sample1@8 sample2@16 metrics@24, each metricId@0 nvmlReturn@4 value@8 and
 * three strings. The bound of the array has grown to 333 while the version stayed 1; newer libraries may touch all of it.
 */
export const gpmMetrics = {
  size: 24 + 333 * 40,
  version: 1,
  count: 4,
  sample1: 8,
  sample2: 16,
  metrics: 24,
  metricSize: 40,
};
/** nvmlFieldValue_t: fieldId@0 scopeId@4 timestamp@8 (µs) latencyUsec@16 valueType@24 nvmlReturn@28 value@32. */
export const fieldValue = { size: 40, scope: 4, timestamp: 8, valueType: 24, returnCode: 28, value: 32 };

/** All ones means "not available". */
const allOnes = 0xffffffff;

/** @returns null for a value past 2^53, which nothing counted here reaches: it means "not available" */
export function u64Of(high = allOnes, low = allOnes): number | null {
  return high > 0x1fffff ? null : high * 0x100000000 + low;
}

export function u32Of(value = allOnes): number | null {
  return value === allOnes ? null : value;
}

export function readU64(buffer: Buffer, offset: number): number | null {
  return u64Of(buffer.readUInt32LE(offset + 4), buffer.readUInt32LE(offset));
}

export function readU32(buffer: Buffer, offset: number): number | null {
  return u32Of(buffer.readUInt32LE(offset));
}

/** A handle: 0 where the library wrote none. */
export function readPointer(buffer: Buffer, offset: number): number {
  return Number(buffer.readBigUInt64LE(offset));
}

export function writePointer(buffer: Buffer, offset: number, pointer: number): void {
  buffer.writeBigUInt64LE(BigInt(pointer), offset);
}

/** Up to the first zero byte, printable characters only: it ends up on people's terminals. */
export function readString(buffer: Buffer, offset: number, size: number): string {
  const end = buffer.indexOf(0, offset);
  const until = end === -1 || end > offset + size ? offset + size : end;
  return buffer
    .toString('latin1', offset, until)
    .replace(/[^\x20-\x7e]/g, '')
    .trim();
}

export const valueTypes = { double: 0, u32: 1, unsignedLong: 2, u64: 3, i64: 4, i32: 5, u16: 6 } as const;

/** @param offset of the nvmlFieldValue_t. @returns null: no value, or one of a type we do not know */
export function readFieldValue(buffer: Buffer, offset: number): number | null {
  if (buffer.readInt32LE(offset + fieldValue.returnCode) !== 0) return null;
  const at = offset + fieldValue.value;
  switch (buffer.readInt32LE(offset + fieldValue.valueType)) {
    case valueTypes.double:
      return finite(buffer.readDoubleLE(at));
    case valueTypes.u32:
      return readU32(buffer, at);
    case valueTypes.unsignedLong:
    case valueTypes.u64:
      return readU64(buffer, at);
    case valueTypes.i64:
      return Number(buffer.readBigInt64LE(at));
    case valueTypes.i32:
      return buffer.readInt32LE(at);
    case valueTypes.u16:
      return buffer.readUInt16LE(at);
    default:
      return null;
  }
}

export function finite(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}

/** @returns null for what is no percentage */
export function percent(value: number | null): number | null {
  return value !== null && value >= 0 && value <= 100 ? value : null;
}

const mebibyte = 1024 * 1024;

export function toMebibytes(bytes: number | null): number | null {
  return bytes === null ? null : Math.round(bytes / mebibyte);
}

/** Bits of a mask of 64-bit words as a list: `0-31,64-95`. @returns null for a mask without bits */
export function maskToList(mask: Buffer): string | null {
  const isSet = (bit: number) => ((mask[bit >> 3] ?? 0) & (1 << (bit & 7))) !== 0;
  const ranges: string[] = [];
  for (let bit = 0; bit < mask.length * 8; bit += 1) {
    if (!isSet(bit)) continue;
    const first = bit;
    while (isSet(bit + 1)) bit += 1;
    ranges.push(first === bit ? `${first}` : `${first}-${bit}`);
  }
  return ranges.length === 0 ? null : ranges.join(',');
}
