/** One reading of a card: what is cheap and changes quickly, and what is dear and changes slowly. */
import {
  type EccCounters,
  type GpuProcess,
  type NvlinkErrors,
  type RetiredPages,
  type RowRemaps,
  unlessAllAbsent,
} from '../gpuSource.ts';
import type { Calls } from './calls.ts';
import type { FieldBatch } from './fieldValues.ts';
import { insufficientSize, success } from './returnCodes.ts';
import {
  memoryV1,
  memoryV2,
  percent,
  processInfo,
  readU32,
  readU64,
  sramStatus,
  temperatureV1,
  toMebibytes,
} from './structs.ts';

// ---- At each sample

const clockTypes = { sm: 1, memory: 2 } as const;

/** @param batch has been read for this card */
export function readQuickValues(calls: Calls, handle: number, batch: FieldBatch) {
  const hasRates = calls.run('nvmlDeviceGetUtilizationRates', handle, calls.out);
  const utilization = hasRates ? percent(readU32(calls.out, 0)) : null;
  const memoryUtilization = hasRates ? percent(readU32(calls.out, 4)) : null;
  const milliwatts = calls.u32('nvmlDeviceGetPowerUsage', handle);
  return {
    utilization,
    memoryUtilization,
    temperature: readTemperature(calls, handle),
    memoryTemperature: degrees(batch.value('memoryTemperature')),
    powerWatts: milliwatts === null ? null : milliwatts / 1000,
    energyMillijoules: calls.u64('nvmlDeviceGetTotalEnergyConsumption', handle),
    smClockMhz: calls.u32('nvmlDeviceGetClockInfo', handle, clockTypes.sm),
    memoryClockMhz: calls.u32('nvmlDeviceGetClockInfo', handle, clockTypes.memory),
    clockEventReasons: calls.u64(
      calls.library.has('nvmlDeviceGetCurrentClocksEventReasons')
        ? 'nvmlDeviceGetCurrentClocksEventReasons'
        : 'nvmlDeviceGetCurrentClocksThrottleReasons',
      handle,
    ),
    recoveryAction: batch.value('recoveryAction'),
  };
}

function readCoder(
  calls: Calls,
  name: 'nvmlDeviceGetEncoderUtilization' | 'nvmlDeviceGetDecoderUtilization',
  handle: number,
): number | null {
  // The second value is the length of the window, which nobody asks for.
  return calls.run(name, handle, calls.out, calls.ignored) ? readU32(calls.out, 0) : null;
}

function readTemperature(calls: Calls, handle: number): number | null {
  const gpuSensor = 0;
  if (!calls.library.has('nvmlDeviceGetTemperatureV')) {
    return degrees(calls.u32('nvmlDeviceGetTemperature', handle, gpuSensor));
  }
  calls.out.writeUInt32LE(temperatureV1.version, 0);
  calls.out.writeUInt32LE(gpuSensor, temperatureV1.sensor);
  const isRead = calls.run('nvmlDeviceGetTemperatureV', handle, calls.out);
  return isRead ? degrees(calls.out.readInt32LE(temperatureV1.temperature)) : null;
}

/** A virtual machine's share of a GPU reports 0 °C where it has no sensor. */
function degrees(value: number | null): number | null {
  return value !== null && value > 0 && value < 250 ? value : null;
}

/** Of a card or of a MIG instance. */
export function readMemory(calls: Calls, handle: number) {
  const { out } = calls;
  const sizeAt = (offset: number) => toMebibytes(readU64(out, offset));
  out.writeUInt32LE(memoryV2.version, 0);
  if (calls.run('nvmlDeviceGetMemoryInfo_v2', handle, out)) {
    return {
      memoryTotalMb: sizeAt(memoryV2.total),
      memoryUsedMb: sizeAt(memoryV2.used),
      memoryFreeMb: sizeAt(memoryV2.free),
      memoryReservedMb: sizeAt(memoryV2.reserved),
    };
  }
  const isRead = calls.run('nvmlDeviceGetMemoryInfo', handle, out);
  return {
    memoryTotalMb: isRead ? sizeAt(memoryV1.total) : null,
    memoryUsedMb: isRead ? sizeAt(memoryV1.used) : null,
    memoryFreeMb: isRead ? sizeAt(memoryV1.free) : null,
    memoryReservedMb: null,
  };
}

// ---- Now and then

/** @param nvlinkErrors read by `readNvlinkErrors` */
export function readSlowValues(calls: Calls, handle: number, nvlinkErrors: NvlinkErrors | null) {
  const milliwatts = calls.u32('nvmlDeviceGetEnforcedPowerLimit', handle);
  return {
    // Training has little to encode or decode.
    encoderUtilization: percent(readCoder(calls, 'nvmlDeviceGetEncoderUtilization', handle)),
    decoderUtilization: percent(readCoder(calls, 'nvmlDeviceGetDecoderUtilization', handle)),
    powerLimitWatts: milliwatts === null ? null : milliwatts / 1000,
    pcieReplays: calls.u32('nvmlDeviceGetPcieReplayCounter', handle),
    nvlinkErrors,
    ecc: readEcc(calls, handle),
    rows: readRows(calls, handle),
    retiredPages: readRetiredPages(calls, handle),
  };
}

const linkCounters = { replay: 0, recovery: 1, crc: 2 } as const;
const linkCounterNames = ['replay', 'recovery', 'crc'] as const;

/**
 * A call per link and counter, of which a card has dozens: one counter at a time, and all of them only at first.
 * @param links numbers of the NVLinks in use
 * @param turn counts these readings
 */
export function readNvlinkErrors(
  calls: Calls,
  handle: number,
  links: readonly number[],
  before: NvlinkErrors | null,
  turn: number,
): NvlinkErrors | null {
  const sum = (name: keyof NvlinkErrors) => sumOverLinks(calls, handle, links, linkCounters[name]);
  if (turn === 0)
    return unlessAllAbsent({ replay: sum('replay'), recovery: sum('recovery'), crc: sum('crc') });
  const name = linkCounterNames[turn % linkCounterNames.length];
  return before === null || name === undefined ? before : { ...before, [name]: sum(name) };
}

function sumOverLinks(
  calls: Calls,
  handle: number,
  links: readonly number[],
  counter: number,
): number | null {
  let sum: number | null = null;
  for (const link of links) {
    const value = calls.u64('nvmlDeviceGetNvLinkErrorCounter', handle, link, counter);
    // A card whose first link does not count has none that does.
    if (value === null) return null;
    sum = (sum ?? 0) + value;
  }
  return sum;
}

function readEcc(calls: Calls, handle: number): EccCounters | null {
  const [corrected, uncorrected, volatile, aggregate] = [0, 1, 0, 1];
  const total = (type: number, counter: number) =>
    calls.u64('nvmlDeviceGetTotalEccErrors', handle, type, counter);
  const status = Buffer.alloc(sramStatus.size);
  status.writeUInt32LE(sramStatus.version, 0);
  const hasStatus = calls.run('nvmlDeviceGetSramEccErrorStatus', handle, status);
  return unlessAllAbsent({
    correctedVolatile: total(corrected, volatile),
    uncorrectedVolatile: total(uncorrected, volatile),
    correctedAggregate: total(corrected, aggregate),
    uncorrectedAggregate: total(uncorrected, aggregate),
    sramThresholdExceeded: hasStatus ? status.readUInt32LE(sramStatus.thresholdExceeded) !== 0 : null,
  });
}

function readRows(calls: Calls, handle: number): RowRemaps | null {
  const { out } = calls;
  const places = [out.subarray(0), out.subarray(8), out.subarray(16), out.subarray(24)];
  if (!calls.run('nvmlDeviceGetRemappedRows', handle, ...places)) return null;
  return {
    correctable: readU32(out, 0),
    uncorrectable: readU32(out, 8),
    pending: out.readUInt32LE(16) !== 0,
    failed: out.readUInt32LE(24) !== 0,
  };
}

const pageCauses = { multipleSingleBit: 0, doubleBit: 1 } as const;

function readRetiredPages(calls: Calls, handle: number): RetiredPages | null {
  const count = (cause: number) => {
    // Without room for the addresses it answers how many there are.
    calls.out.writeUInt32LE(0, 0);
    const code = calls.code('nvmlDeviceGetRetiredPages', handle, cause, calls.out, null);
    return code === success || code === insufficientSize ? readU32(calls.out, 0) : null;
  };
  const pending = calls.u32('nvmlDeviceGetRetiredPagesPendingStatus', handle);
  return unlessAllAbsent({
    singleBit: count(pageCauses.multipleSingleBit),
    doubleBit: count(pageCauses.doubleBit),
    pending: pending === null ? null : pending !== 0,
  });
}

// ---- Processes

/** More than any card can hold contexts for. */
const processesMax = 4096;

/** Grows with the longest list seen. */
export class ProcessReader {
  private readonly exists: (pid: number) => boolean;
  private buffer = Buffer.alloc(32 * processInfo.size);

  constructor(exists: (pid: number) => boolean) {
    this.exists = exists;
  }

  /** @returns null: cannot be determined */
  read(calls: Calls, handle: number): readonly GpuProcess[] | null {
    const count = Buffer.alloc(4);
    for (let attempt = 0; attempt < 3; attempt += 1) {
      const room = this.buffer.length / processInfo.size;
      count.writeUInt32LE(room, 0);
      const code = calls.code('nvmlDeviceGetComputeRunningProcesses_v3', handle, count, this.buffer);
      const found = count.readUInt32LE(0);
      if (code === success) return found <= room ? this.decode(found) : null;
      if (code !== insufficientSize || found > processesMax) return null;
      // Room for those that start before the next call.
      this.buffer = Buffer.alloc((found * 2 + 8) * processInfo.size);
    }
    return null;
  }

  /**
   * Some drivers of the 535 line wrote entries of another size, and a container sees pids of another namespace; both
   * show as processes that do not exist.
   */
  private decode(found: number): readonly GpuProcess[] | null {
    const processes = Array.from({ length: found }, (_, index) => {
      const at = index * processInfo.size;
      return {
        pid: this.buffer.readUInt32LE(at + processInfo.pid),
        memoryMb: toMebibytes(readU64(this.buffer, at + processInfo.usedMemory)),
      };
    });
    return processes.every(({ pid }) => pid > 0 && this.exists(pid)) ? processes : null;
  }
}
