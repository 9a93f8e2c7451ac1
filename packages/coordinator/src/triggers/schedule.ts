/**
 * When a cron trigger is due, by croner, which knows time zones and their changes of the clock. Pure: nothing here waits, and the
 * timers of the library are not used.
 */
import { MusterError } from '@muster/common/errors';
import { Cron } from 'croner';
import type { CronSource, StoredTrigger } from '../store/triggers.ts';

/** A fire that is carried out within this time is not late: a restart of the coordinator loses none. */
const onTimeMs = 60_000;
/** More missed times than that are not counted. */
const countedMax = 100;
const textLengthMax = 200;

type Times = Pick<CronSource, 'cron' | 'timeZone'>;

/** @throws {MusterError} `invalid`, with the field */
export function checkCron({ cron, timeZone }: Times, nowMs: number): void {
  // A place that is not in the database, but looks like one, would be reported as a problem of the expression.
  if (!isTimeZone(timeZone))
    throw invalid(
      'time_zone',
      `unknown time zone "${timeZone.slice(0, 60)}"`,
      'one of the IANA database, such as Europe/Berlin',
    );
  const form = 'five fields, such as "0 3 * * 1-5": minute, hour, day of the month, month, day of the week';
  if (cron.length > textLengthMax) throw invalid('cron', `${cron.length} characters`, form);
  // What the library says of this names forms that are not taken here.
  const fields = cron.split(/\s+/).filter((field) => field !== '').length;
  if (fields !== 5 && !cron.trim().startsWith('@'))
    throw invalid('cron', `"${cron}" has ${fields} field${fields === 1 ? '' : 's'}`, form);
  let nextAtMs: number | null;
  try {
    nextAtMs = timeAfter({ cron, timeZone }, nowMs);
  } catch (error) {
    const why = error instanceof Error ? error.message.replace(/^\w+: /, '') : 'invalid';
    throw invalid('cron', `"${cron}": ${why}`, form);
  }
  if (nextAtMs === null) throw invalid('cron', `"${cron}" is never due`, form);
}

function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== '';
  } catch {
    return false;
  }
}

function invalid(path: string, message: string, expected: string): MusterError {
  const problem = { path, message, expected, suggestion: null };
  return new MusterError('invalid', `${path}: ${message}; expected ${expected}`, { problems: [problem] });
}

const parsed = new Map<string, Cron>();
const parsedMax = 1_000;

function cronOf({ cron, timeZone }: Times): Cron {
  const key = `${timeZone} ${cron}`;
  const known = parsed.get(key);
  if (known !== undefined) return known;
  const made = new Cron(cron, { timezone: timeZone, mode: '5-part', paused: true });
  if (parsed.size >= parsedMax) parsed.clear();
  parsed.set(key, made);
  return made;
}

/** @returns null: never again */
export function timeAfter(times: Times, ms: number): number | null {
  return cronOf(times).nextRun(new Date(ms))?.getTime() ?? null;
}

export interface DueTime {
  /** The newest time that has come. */
  readonly dueAtMs: number;
  readonly nextAtMs: number | null;
  /** Times that have come and are not this one, or all of them when it is late: nobody was there. Counted up to a hundred. */
  readonly missed: number;
  /** It is too late for it. */
  readonly isLate: boolean;
}

/** @returns null: it is not due yet */
export function dueTime(
  { source, nextAtMs }: Pick<StoredTrigger, 'source' | 'nextAtMs'>,
  nowMs: number,
): DueTime | null {
  if (source.kind !== 'cron' || nextAtMs === null || nextAtMs > nowMs) return null;
  const [before] = cronOf(source).previousRuns(1, new Date(nowMs));
  const found = Math.max(before?.getTime() ?? nextAtMs, nextAtMs);
  // The moment itself is not among the times before it.
  const after = timeAfter(source, found);
  const dueAtMs = after !== null && after <= nowMs ? after : found;
  let earlier = 0;
  for (let ms: number | null = nextAtMs; ms !== null && ms < dueAtMs && earlier < countedMax; earlier += 1)
    ms = timeAfter(source, ms);
  const isLate = nowMs - dueAtMs > onTimeMs;
  return { dueAtMs, nextAtMs: timeAfter(source, nowMs), missed: earlier + (isLate ? 1 : 0), isLate };
}
