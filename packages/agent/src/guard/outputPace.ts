/** How fast a task may write its output, and how much of it is kept. Plain functions of sizes and time. */

export interface OutputLimits {
  /** Bytes kept of one task's output; null: an eighth of the disk, from 16 MiB to 1 GiB. */
  readonly capBytes: number | null;
  /** Bytes a second in the long run. */
  readonly rateBytes: number;
  /** Bytes that output leaves free on the disk; null: a twentieth of it, 512 MiB at most. */
  readonly reserveBytes: number | null;
}

const mebibyte = 1024 * 1024;

export const outputDefaults: OutputLimits = { capBytes: null, rateBytes: 32 * mebibyte, reserveBytes: null };

/** The limits of one task at one moment. */
export interface OutputAllowance {
  readonly capBytes: number;
  readonly rateBytes: number;
  /** How much may be written at once by a task that wrote nothing before. */
  readonly burstBytes: number;
}

export interface Disk {
  readonly sizeBytes: number;
  readonly freeBytes: number;
}

/** What output may not take, bytes. */
export function reserveOf({ reserveBytes }: OutputLimits, { sizeBytes }: Disk): number {
  return reserveBytes ?? Math.min(512 * mebibyte, sizeBytes / 20);
}

const burstMax = 256 * mebibyte;
/** Of a disk that is nearly full, and of output that grows beyond its cap because none of it can be dropped. */
const slowly: Omit<OutputAllowance, 'capBytes'> = { rateBytes: 256 * 1024, burstBytes: 256 * 1024 };

/** @param isOverCap more than the cap is on disk, and nothing of it can be dropped */
export function allowanceOn(disk: Disk, limits: OutputLimits, isOverCap: boolean): OutputAllowance {
  const { rateBytes } = limits;
  const capBytes = limits.capBytes ?? Math.min(1024 * mebibyte, Math.max(16 * mebibyte, disk.sizeBytes / 8));
  const isLow = disk.freeBytes < reserveOf(limits, disk);
  if (isLow || isOverCap) return { ...slowly, capBytes: isLow ? capBytes / 4 : capBytes };
  return { capBytes, rateBytes, burstBytes: Math.min(burstMax, capBytes) };
}

export interface OutputPace {
  /** How much may be written now; less than nothing: more was written than may be. */
  readonly roomBytes: number;
  /** Size of the file at the last look. */
  readonly seenBytes: number;
  /** Of the last look, monotonic. */
  readonly atMs: number;
}

/** A task is stopped for no longer at a time: it has peers that wait for it, and may get a signal to save. */
const heldMsMax = 1_000;

export function firstPace(seenBytes: number, atMs: number): OutputPace {
  return { roomBytes: Number.POSITIVE_INFINITY, seenBytes, atMs };
}

/** Takes one look at the size of the file. The task must be held while `roomBytes` is negative. */
export function nextPace(
  pace: OutputPace,
  sizeBytes: number,
  nowMs: number,
  allowance: OutputAllowance,
): OutputPace {
  const { rateBytes, burstBytes } = allowance;
  const refilled = Math.min(burstBytes, pace.roomBytes + ((nowMs - pace.atMs) / 1_000) * rateBytes);
  const roomBytes = refilled - Math.max(0, sizeBytes - pace.seenBytes);
  const debtMax = (rateBytes * heldMsMax) / 1_000;
  return { roomBytes: Math.max(roomBytes, -debtMax), seenBytes: sizeBytes, atMs: nowMs };
}

/** No disk takes more than this of one machine; by it the next look comes before the room is used up. */
const fastestBytesPerMs = 8_000_000;
const lookMs = { least: 10, most: 100 };

/** @param headroomBytes what may be written before a limit is passed */
export function nextLookMs(headroomBytes: number): number {
  return Math.min(lookMs.most, Math.max(lookMs.least, headroomBytes / fastestBytesPerMs));
}

/** Whole pages: less than one is not given back. */
const alignment = 64 * 1024;

/**
 * What must be dropped of a file that holds more than its cap: all but a quarter of the cap at the beginning and half of
 * it at the end. null: nothing, or too little to be worth it.
 * @param storedBytes that the file takes on disk
 */
export function rangeToDrop(
  sizeBytes: number,
  storedBytes: number,
  capBytes: number,
): { readonly from: number; readonly to: number } | null {
  if (storedBytes <= capBytes) return null;
  const from = Math.ceil(capBytes / 4 / alignment) * alignment;
  const to = Math.floor((sizeBytes - capBytes / 2) / alignment) * alignment;
  return from < to ? { from, to } : null;
}
