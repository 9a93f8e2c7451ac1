/** Reads times that agents give. Pure. */
import { MusterError } from '@muster/common/errors';
import { parseDurationMs } from '@muster/common/spec/duration';
import { brief } from './size.ts';

/**
 * @param text `-30m`, `-2h`, or an ISO 8601 moment
 * @returns milliseconds of the wall clock
 * @throws {MusterError} `invalid`, naming the parameter
 */
export function momentOf(parameter: string, text: string, nowMs: number): number {
  const back = /^-(.+)$/.exec(text)?.[1];
  const durationMs = back === undefined ? null : parseDurationMs(back);
  if (durationMs !== null && durationMs >= 0) return nowMs - durationMs;
  const atMs = /^\d{4}-\d\d-\d\d(?:T[\d:.]+(?:Z|[+-]\d\d:\d\d)?)?$/.test(text)
    ? Date.parse(text)
    : Number.NaN;
  if (Number.isFinite(atMs)) return atMs;
  throw new MusterError(
    'invalid',
    `${parameter}: got "${brief(text, 40)}"; expected a time before now such as -30m, or a moment such as 2026-11-24T05:00:00Z`,
  );
}
