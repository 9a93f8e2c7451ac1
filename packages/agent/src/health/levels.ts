/** What one sample means for a GPU: each check is bad, well, or was not read. Pure. */
import type { GpuSample } from '../gpus/gpuSource.ts';
import type { HealthThresholds } from './conditionTable.ts';
import type { LevelKind } from './levelRows.ts';
import type { DeviceCounters, Growth } from './state.ts';

export interface LevelVerdict {
  readonly kind: LevelKind;
  readonly bad: boolean;
  /** For the message. */
  readonly detail: string;
  readonly evidence: string;
}

export interface SampleJudgement {
  readonly verdicts: readonly LevelVerdict[];
  readonly counters: DeviceCounters;
  /** The driver has started this GPU again since the last sample: the GPU was reset, or the driver reloaded. */
  readonly restarted: boolean;
}

const clockBits = { hardwareSlowdown: 0x8, softwareThermal: 0x20, hardwareThermal: 0x40, powerBrake: 0x80 };

/** @param before counters at the last sample of this device in this boot; null: this is the first */
export function judgeSample(
  sample: GpuSample,
  before: DeviceCounters | null,
  thresholds: HealthThresholds,
  uptimeMs: number,
): SampleJudgement {
  const { ecc, rows, retiredPages: pages } = sample;
  const grow = (growth: Growth | null | undefined, value: number | null) =>
    grown(growth ?? null, value, thresholds.growthWindowMs, uptimeMs);
  const corrected = grow(before?.corrected, ecc?.correctedVolatile ?? null);
  const nvlink = grow(before?.nvlink, nvlinkErrors(sample));
  const pcie = grow(before?.pcie, sample.pcieReplays);
  const counters: DeviceCounters = {
    energyMillijoules: sample.energyMillijoules ?? before?.energyMillijoules ?? null,
    uncorrectedVolatile: ecc?.uncorrectedVolatile ?? before?.uncorrectedVolatile ?? null,
    uncorrectedAggregate: ecc?.uncorrectedAggregate ?? before?.uncorrectedAggregate ?? null,
    rowRemapPending: rows?.pending ?? before?.rowRemapPending ?? null,
    retirementPending: pages?.pending ?? before?.retirementPending ?? null,
    corrected: corrected.growth,
    nvlink: nvlink.growth,
    pcie: pcie.growth,
  };
  const minutes = `in ${Math.round(thresholds.growthWindowMs / 60_000)} minutes`;
  const verdicts = [
    uncorrectable(sample, before),
    storm('ecc_corrected_storm', corrected, thresholds.eccCorrected, `corrected ECC errors ${minutes}`),
    flag('row_remap_pending', rows?.pending, 'remapped_rows.pending is set'),
    flag('row_remap_failed', rows?.failed, 'remapped_rows.failure is set'),
    flag('retired_pages_pending', pages?.pending, 'retired_pages.pending is set'),
    retirement(sample, thresholds.retiredPages),
    flag('sram_threshold_exceeded', ecc?.sramThresholdExceeded, 'the SRAM threshold flag is set'),
    storm('nvlink_errors', nvlink, thresholds.nvlinkErrors, `NVLink errors ${minutes}`),
    storm('pcie_replays', pcie, thresholds.pcieReplays, `PCIe replays ${minutes}`),
    ...throttling(sample.clockEventReasons),
  ];
  return {
    verdicts: verdicts.filter((verdict) => verdict !== null),
    counters,
    restarted: before !== null && wasRestarted(before, counters),
  };
}

function uncorrectable({ ecc }: GpuSample, before: DeviceCounters | null): LevelVerdict | null {
  const current = ecc?.uncorrectedVolatile ?? null;
  const life = ecc?.uncorrectedAggregate ?? null;
  if (current === null && life === null) return null;
  // The volatile counter starts at 0 with the driver; of the card's life, only growth is new.
  const recent = rise(before?.uncorrectedVolatile ?? 0, current);
  const more = Math.max(recent, rise(before?.uncorrectedAggregate ?? null, life));
  return {
    kind: 'ecc_uncorrectable',
    bad: more > 0,
    detail: count(more, 'new error'),
    evidence: `uncorrected ECC errors: ${current ?? 'unknown'} since the driver was loaded, ${life ?? 'unknown'} in all`,
  };
}

function rise(before: number | null, now: number | null): number {
  return before === null || now === null ? 0 : Math.max(0, now - before);
}

function retirement({ retiredPages: pages }: GpuSample, limit: number): LevelVerdict | null {
  if (pages === null || (pages.singleBit === null && pages.doubleBit === null)) return null;
  const total = (pages.singleBit ?? 0) + (pages.doubleBit ?? 0);
  const parts = `${pages.singleBit ?? 'unknown'} for single bit errors, ${pages.doubleBit ?? 'unknown'} for double bit errors`;
  const detail = count(total, 'page');
  return { kind: 'retired_pages_limit', bad: total >= limit, detail, evidence: `retired pages: ${parts}` };
}

function flag(kind: LevelKind, value: boolean | null | undefined, evidence: string): LevelVerdict | null {
  return value === null || value === undefined ? null : { kind, bad: value, detail: '', evidence };
}

function throttling(reasons: number | null): readonly LevelVerdict[] {
  if (reasons === null) return [];
  const has = (bit: number) => (reasons & bit) !== 0;
  const evidence = `clock event reasons 0x${reasons.toString(16)}`;
  const hot = has(clockBits.softwareThermal) || has(clockBits.hardwareThermal);
  const by = has(clockBits.hardwareThermal) ? 'slowed down by the hardware' : 'slowed down by the driver';
  // The slowdown bit is set by heat as well; alone it means power.
  const braked =
    has(clockBits.powerBrake) || (has(clockBits.hardwareSlowdown) && !has(clockBits.hardwareThermal));
  const cause = has(clockBits.powerBrake) ? 'power brake' : 'hardware slowdown';
  return [
    { kind: 'thermal_throttling', bad: hot, detail: by, evidence },
    { kind: 'power_brake', bad: braked, detail: cause, evidence },
  ];
}

// ---- Counters that grow

interface Grown {
  readonly growth: Growth | null;
  /** Since the window began; null: not read. */
  readonly inWindow: number | null;
  readonly sinceLast: number;
}

function grown(before: Growth | null, value: number | null, windowMs: number, uptimeMs: number): Grown {
  if (value === null) return { growth: before, inWindow: null, sinceLast: 0 };
  // A counter that fell was started over with the driver.
  if (before === null || value < before.last) {
    return { growth: { startedAtMs: uptimeMs, base: value, last: value }, inWindow: 0, sinceLast: 0 };
  }
  const over = uptimeMs - before.startedAtMs >= windowMs;
  const base = over ? before.last : before.base;
  const startedAtMs = over ? uptimeMs : before.startedAtMs;
  return {
    growth: { startedAtMs, base, last: value },
    inWindow: value - base,
    sinceLast: value - before.last,
  };
}

/** Bad each time that it grows beyond the limit; a counter above the limit that does not grow gives no verdict. */
function storm(
  kind: LevelKind,
  { inWindow, sinceLast }: Grown,
  limit: number,
  what: string,
): LevelVerdict | null {
  if (inWindow === null) return null;
  const bad = inWindow >= limit;
  if (bad && sinceLast === 0) return null;
  return { kind, bad, detail: `${inWindow} ${what}`, evidence: `${inWindow} ${what}; the limit is ${limit}` };
}

function nvlinkErrors({ nvlinkErrors: errors }: GpuSample): number | null {
  const known = [errors?.replay, errors?.recovery, errors?.crc].filter((value) => value != null);
  return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0);
}

/**
 * Energy is counted from when the driver started the GPU; pending repairs of the memory go away only by a reset. A halved
 * counter is demanded because some drivers' counters waver.
 */
function wasRestarted(before: DeviceCounters, now: DeviceCounters): boolean {
  return (
    (now.energyMillijoules ?? 0) < (before.energyMillijoules ?? 0) / 2 ||
    (before.rowRemapPending === true && now.rowRemapPending === false) ||
    (before.retirementPending === true && now.retirementPending === false)
  );
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}
