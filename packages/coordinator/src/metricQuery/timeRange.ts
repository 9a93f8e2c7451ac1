/** Times as people and programs write them in a question. Pure: now is an argument. */
import { MusterError } from '@muster/common/errors';
import { parseDurationMs } from '@muster/common/spec/duration';

const isoTime = /^\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)?)?$/;
/** The year 9999: what is later was meant in microseconds. */
const msMax = 253_402_300_799_999;
const shownMax = 40;

/**
 * @param field of the request, for the message
 * @param nowMs wall clock
 * @returns wall clock
 * @throws {MusterError} `invalid`
 */
export function timeOf(field: string, text: string, nowMs: number): number {
  const written = text.trim();
  if (written === 'now') return nowMs;
  if (written.startsWith('-')) {
    const agoMs = parseDurationMs(written.slice(1));
    if (agoMs !== null) return nowMs - agoMs;
  }
  if (/^\d{9,15}$/.test(written) && Number(written) <= msMax) return Number(written);
  if (isoTime.test(written)) {
    // Without a zone it would be read in that of the coordinator's machine.
    const hasZone = /(?:Z|[+-]\d\d:\d\d)$/.test(written) || written.length === 10;
    const atMs = Date.parse(hasZone ? written.replace(' ', 'T') : `${written.replace(' ', 'T')}Z`);
    if (!Number.isNaN(atMs)) return atMs;
  }
  const shown = text.length > shownMax ? `${text.slice(0, shownMax)} …` : text;
  throw new MusterError(
    'invalid',
    `${field}: got "${shown}"; expected a time such as -30m, now, 2026-01-02T03:04:05Z or milliseconds since 1970`,
  );
}
