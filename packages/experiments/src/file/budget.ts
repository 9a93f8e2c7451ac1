/** The budget of a sweep file. */
import { formatDuration, parseDurationMs, suggestDuration } from '@muster/common/spec/duration';
import type { FileReader } from './findings.ts';

/** Once one of them is used up, no more trials are started. null: there is no such limit. */
export interface SweepBudget {
  readonly gpuHours: number | null;
  readonly usd: number | null;
  /** Since the sweep was created. */
  readonly wallClockMs: number | null;
}

const path = ['budget'];
const amountMax = 1e9;

/** @returns null: the file names none, or none but of trials */
export function readBudget(reader: FileReader, value: unknown): SweepBudget | null {
  if (value === undefined) return null;
  const form = 'a mapping such as {gpu_hours: 100, wall_clock: 12h}';
  const file = reader.mapping(path, value, ['gpu_hours', 'usd', 'wall_clock', 'trials'], form);
  if (file === null) return null;
  const amount = (key: 'gpu_hours' | 'usd') => {
    const given = file[key];
    if (given === undefined) return null;
    if (typeof given === 'number' && given > 0 && given <= amountMax) return given;
    reader.wrong([...path, key], given, 'a number above 0');
    return null;
  };
  const budget = {
    gpuHours: amount('gpu_hours'),
    usd: amount('usd'),
    wallClockMs: readWallClock(reader, file),
  };
  return Object.values(budget).every((limit) => limit === null) ? null : budget;
}

function readWallClock(
  reader: FileReader,
  { wall_clock: given }: { readonly wall_clock?: unknown },
): number | null {
  if (given === undefined) return null;
  const isText = typeof given === 'string' || typeof given === 'number';
  const ms = isText ? parseDurationMs(given) : null;
  if (ms !== null && ms > 0) return ms;
  const meant = typeof given === 'string' ? suggestDuration(given) : null;
  reader.wrong([...path, 'wall_clock'], given, 'a duration such as 90m or 12h', meant);
  return null;
}

export function budgetToFile({ gpuHours, usd, wallClockMs }: SweepBudget): Readonly<Record<string, unknown>> {
  return {
    ...(gpuHours === null ? {} : { gpu_hours: gpuHours }),
    ...(usd === null ? {} : { usd }),
    ...(wallClockMs === null ? {} : { wall_clock: formatDuration(wallClockMs) }),
  };
}
