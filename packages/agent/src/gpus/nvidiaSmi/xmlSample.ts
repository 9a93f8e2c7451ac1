/**
 * A reading from `nvidia-smi -q -x`. It costs far more than the CSV (0.4 s and more of a CPU, against some ms), but it
 * is the only one that knows the instances of a card in MIG mode: their memory, and which process runs on which.
 */
import {
  type EccCounters,
  emptySample,
  type GpuProcess,
  type GpuSample,
  type RetiredPages,
  type RowRemaps,
  unlessAllAbsent,
} from '../gpuSource.ts';
import { readAmount, readCelsius, readCount, readFlag, readPercent, readRecoveryAction } from './cells.ts';
import { elementAt, elementsAt, textAt, type XmlCard, type XmlElement, type XmlMigDevice } from './xml.ts';

export function sampleOfCard(card: XmlCard, uuid: string): GpuSample {
  const { element } = card;
  const sample: GpuSample = {
    uuid,
    utilization: readPercent(textAt(element, 'utilization', 'gpu_util')),
    memoryUtilization: readPercent(textAt(element, 'utilization', 'memory_util')),
    encoderUtilization: readPercent(textAt(element, 'utilization', 'encoder_util')),
    decoderUtilization: readPercent(textAt(element, 'utilization', 'decoder_util')),
    ...memoryOf(element),
    temperature: readCelsius(textAt(element, 'temperature', 'gpu_temp')),
    memoryTemperature: readCelsius(textAt(element, 'temperature', 'memory_temp')),
    ...powerOf(element),
    energyMillijoules: null,
    smClockMhz: readAmount(textAt(element, 'clocks', 'sm_clock')),
    memoryClockMhz: readAmount(textAt(element, 'clocks', 'mem_clock')),
    clockEventReasons: clockEventReasonsOf(element),
    pcieReplays: readCount(textAt(element, 'pci', 'replay_counter')),
    nvlinkErrors: null,
    ecc: eccOf(element),
    rows: rowsOf(element),
    retiredPages: retiredPagesOf(element),
    recoveryAction: recoveryActionOf(element),
    activity: null,
    processes: processesOf(element, () => true),
  };
  return card.isVgpuGuest ? withoutGuestZeros(sample) : sample;
}

/**
 * What concerns the card as a whole (temperature, clocks, errors) is reported for each of its instances. Power is not: a sum
 * over instances would count it once for each.
 */
export function sampleOfMigDevice(card: XmlCard, device: XmlMigDevice, uuid: string): GpuSample {
  const whole = sampleOfCard(card, uuid);
  return {
    ...emptySample(uuid),
    ...memoryOf(device.element),
    temperature: whole.temperature,
    memoryTemperature: whole.memoryTemperature,
    smClockMhz: whole.smClockMhz,
    memoryClockMhz: whole.memoryClockMhz,
    clockEventReasons: whole.clockEventReasons,
    pcieReplays: whole.pcieReplays,
    ecc: whole.ecc,
    rows: whole.rows,
    retiredPages: whole.retiredPages,
    recoveryAction: whole.recoveryAction,
    processes: processesOf(
      card.element,
      (process) =>
        readCount(textAt(process, 'gpu_instance_id')) === device.gpuInstanceId &&
        readCount(textAt(process, 'compute_instance_id')) === device.computeInstanceId,
    ),
  };
}

/** A virtual GPU answers 0 for the temperature and the clocks of the card that it has not. */
export function withoutGuestZeros(sample: GpuSample): GpuSample {
  return {
    ...sample,
    temperature: sample.temperature === 0 ? null : sample.temperature,
    smClockMhz: sample.smClockMhz === 0 ? null : sample.smClockMhz,
    memoryClockMhz: sample.memoryClockMhz === 0 ? null : sample.memoryClockMhz,
  };
}

function memoryOf(
  element: XmlElement,
): Pick<GpuSample, 'memoryTotalMb' | 'memoryUsedMb' | 'memoryFreeMb' | 'memoryReservedMb'> {
  return {
    memoryTotalMb: readAmount(textAt(element, 'fb_memory_usage', 'total')),
    memoryUsedMb: readAmount(textAt(element, 'fb_memory_usage', 'used')),
    memoryFreeMb: readAmount(textAt(element, 'fb_memory_usage', 'free')),
    memoryReservedMb: readAmount(textAt(element, 'fb_memory_usage', 'reserved')),
  };
}

/** Of the GPU; `module_power_readings` has the same names for a GPU together with its CPU. */
function powerOf(element: XmlElement): Pick<GpuSample, 'powerWatts' | 'powerLimitWatts'> {
  const readings = elementAt(element, 'gpu_power_readings') ?? elementAt(element, 'power_readings') ?? {};
  const first = (names: readonly string[]): number | null =>
    names.map((name) => readAmount(textAt(readings, name))).find((watts) => watts !== null) ?? null;
  return {
    // The average first: it is what `power.draw` and NVML mean where there are both.
    powerWatts: first(['average_power_draw', 'power_draw', 'instant_power_draw']),
    powerLimitWatts: first(['current_power_limit', 'enforced_power_limit', 'power_limit']),
  };
}

const clockEventBits: Readonly<Record<string, number>> = {
  gpu_idle: 0x1,
  applications_clocks_setting: 0x2,
  sw_power_cap: 0x4,
  hw_slowdown: 0x8,
  sync_boost: 0x10,
  sw_thermal_slowdown: 0x20,
  hw_thermal_slowdown: 0x40,
  hw_power_brake_slowdown: 0x80,
  display_clocks_setting: 0x100,
};

function clockEventReasonsOf(element: XmlElement): number | null {
  const reasons =
    elementAt(element, 'clocks_event_reasons') ?? elementAt(element, 'clocks_throttle_reasons') ?? {};
  const states = Object.entries(clockEventBits).flatMap(([name, bit]) => {
    const state =
      textAt(reasons, `clocks_event_reason_${name}`) ?? textAt(reasons, `clocks_throttle_reason_${name}`);
    if (state === 'Active') return [bit];
    return state === 'Not Active' ? [0] : [];
  });
  return states.length === 0 ? null : states.reduce((mask, bit) => mask | bit, 0);
}

function eccOf(element: XmlElement): EccCounters | null {
  const errors = elementAt(element, 'ecc_errors');
  if (errors === null) return null;
  return unlessAllAbsent({
    correctedVolatile: eccTotal(errors, 'volatile', 'correctable'),
    uncorrectedVolatile: eccTotal(errors, 'volatile', 'uncorrectable'),
    correctedAggregate: eccTotal(errors, 'aggregate', 'correctable'),
    uncorrectedAggregate: eccTotal(errors, 'aggregate', 'uncorrectable'),
    sramThresholdExceeded: readFlag(textAt(errors, 'aggregate', 'sram_threshold_exceeded')),
  });
}

/** Before Turing a `total` stands there; since then SRAM and DRAM are counted apart, SRAM later by parity and SEC-DED. */
function eccTotal(
  errors: XmlElement,
  period: 'volatile' | 'aggregate',
  kind: 'correctable' | 'uncorrectable',
): number | null {
  const count = (...path: readonly string[]): number | null => readCount(textAt(errors, period, ...path));
  const total = count(kind === 'correctable' ? 'single_bit' : 'double_bit', 'total');
  if (total !== null) return total;
  const sram = count(`sram_${kind}`) ?? sumOf(count(`sram_${kind}_parity`), count(`sram_${kind}_secded`));
  return sumOf(sram, count(`dram_${kind}`));
}

/**
 * Some cards tell one part and print `N/A` for the other: errors that were counted are reported, as a lower bound. Where none
 * were counted the sum is not known, and not 0.
 */
function sumOf(a: number | null, b: number | null): number | null {
  if (a !== null && b !== null) return a + b;
  const part = a ?? b ?? 0;
  return part > 0 ? part : null;
}

function rowsOf(element: XmlElement): RowRemaps | null {
  return unlessAllAbsent({
    correctable: readCount(textAt(element, 'remapped_rows', 'remapped_row_corr')),
    uncorrectable: readCount(textAt(element, 'remapped_rows', 'remapped_row_unc')),
    pending: readFlag(textAt(element, 'remapped_rows', 'remapped_row_pending')),
    failed: readFlag(textAt(element, 'remapped_rows', 'remapped_row_failure')),
  });
}

function retiredPagesOf(element: XmlElement): RetiredPages | null {
  const pages = elementAt(element, 'retired_pages') ?? {};
  return unlessAllAbsent({
    singleBit: readCount(textAt(pages, 'multiple_single_bit_retirement', 'retired_count')),
    doubleBit: readCount(textAt(pages, 'double_bit_retirement', 'retired_count')),
    pending: readFlag(textAt(pages, 'pending_retirement')) ?? readFlag(textAt(pages, 'pending_blacklist')),
  });
}

/** Before R570 a pair of flags stood for it; two times No there is not yet the answer `none`. */
function recoveryActionOf(element: XmlElement): number | null {
  const action = readRecoveryAction(textAt(element, 'gpu_recovery_action'));
  if (action !== null) return action;
  if (readFlag(textAt(element, 'gpu_reset_status', 'drain_and_reset_recommended')) === true) return 4;
  return readFlag(textAt(element, 'gpu_reset_status', 'reset_required')) === true ? 1 : null;
}

/** Those that compute; a display server is no job. null: this card or driver does not report them. */
function processesOf(
  element: XmlElement,
  belongs: (process: XmlElement) => boolean,
): readonly GpuProcess[] | null {
  const list = element['processes'];
  if (list !== '' && elementAt(element, 'processes') === null) return null;
  return elementsAt(element, 'processes', 'process_info').flatMap((process) => {
    const pid = readCount(textAt(process, 'pid'));
    const computes = textAt(process, 'type')?.includes('C') === true;
    if (pid === null || pid === 0 || !computes || !belongs(process)) return [];
    return [{ pid, memoryMb: readAmount(textAt(process, 'used_memory')) }];
  });
}
