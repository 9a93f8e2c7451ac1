/** Kinds of fields that several parts of the job file have. Their error texts say what was expected. */
import * as z from 'zod';
import { durationPattern, formatDuration, parseDurationMs } from './duration.ts';
import { argumentBytesMax } from './limits.ts';

export const secondMs = 1_000;
export const hourMs = 3_600_000;
export const dayMs = 24 * hourMs;

export function wholeNumber(min: number, max: number) {
  const error = `a whole number from ${min} to ${max}`;
  return z.int({ error }).min(min, { error }).max(max, { error });
}

export function patterned(pattern: RegExp, error: string) {
  return z.string({ error }).regex(pattern, { error });
}

export function duration(minMs: number, maxMs: number) {
  const range = `from ${formatDuration(minMs)} to ${formatDuration(maxMs)}`;
  const error = `a duration ${range}, such as "24h", "1h30m", "90s", "500ms" or a number of seconds`;
  const inRange = (written: string | number) => {
    const ms = parseDurationMs(written);
    return ms !== null && ms >= minMs && ms <= maxMs;
  };
  return z
    .union([patterned(durationPattern, error), z.number({ error }).min(0, { error })], { error })
    .refine(inRange, { error });
}

/** Text that becomes one argument or environment value of a program. */
export function argument() {
  const error = `text of at most ${argumentBytesMax} bytes without NUL characters`;
  return z
    .string({ error })
    .refine((text) => Buffer.byteLength(text) <= argumentBytesMax && !text.includes('\0'), {
      error,
    });
}

const absolutePathPattern = /^\/\P{Cc}{0,4095}$/u;

export const absolutePath = (example: string) =>
  patterned(absolutePathPattern, `an absolute path, such as ${example}`);
