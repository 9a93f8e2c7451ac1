import { MusterError } from '@muster/common/errors';
import { describe, expect, test } from 'vitest';
import type { CronSource } from '../store/triggers.ts';
import { checkCron, dueTime, timeAfter } from './schedule.ts';

const berlin = 'Europe/Berlin';
const ms = (iso: string) => Date.parse(iso);

function timesAfter(cron: string, iso: string, count: number, timeZone = berlin): readonly string[] {
  const times: string[] = [];
  for (let at: number | null = ms(iso); times.length < count && at !== null; ) {
    at = timeAfter({ cron, timeZone }, at);
    if (at !== null) times.push(new Date(at).toISOString().slice(0, 16));
  }
  return times;
}

describe('changes of the clock', () => {
  test('a time that is left out in spring is due when the clock goes on', () => {
    expect(timesAfter('30 2 * * *', '2026-03-28T12:00Z', 2)).toEqual([
      '2026-03-29T01:00',
      '2026-03-30T00:30',
    ]);
  });

  test('a time that comes twice in autumn is due once, and what is due each half hour stays so', () => {
    expect(timesAfter('30 2 * * *', '2026-10-24T12:00Z', 2)).toEqual([
      '2026-10-25T00:30',
      '2026-10-26T01:30',
    ]);
    expect(timesAfter('*/30 * * * *', '2026-10-25T00:00Z', 4)).toEqual([
      '2026-10-25T00:30',
      '2026-10-25T01:00',
      '2026-10-25T01:30',
      '2026-10-25T02:00',
    ]);
  });

  test('the time that was left out is found as due, and once', () => {
    const source: CronSource = { kind: 'cron', cron: '30 2 * * *', timeZone: berlin, missed: 'run_once' };
    const nextAtMs = ms('2026-03-29T01:00Z');
    const due = dueTime({ source, nextAtMs }, nextAtMs);
    expect(due).toEqual({ dueAtMs: nextAtMs, nextAtMs: ms('2026-03-30T00:30Z'), missed: 0, isLate: false });
  });
});

describe('what is due', () => {
  const source: CronSource = { kind: 'cron', cron: '*/10 * * * *', timeZone: 'UTC', missed: 'run_once' };
  const nextAtMs = ms('2026-05-01T12:00Z');
  const at = (iso: string) => {
    const due = dueTime({ source, nextAtMs }, ms(iso));
    return due === null ? null : [new Date(due.dueAtMs).toISOString().slice(11, 16), due.missed, due.isLate];
  };

  test('nothing before the time, and then the newest time that has come', () => {
    expect(at('2026-05-01T11:59:59.999Z')).toBeNull();
    expect(at('2026-05-01T12:00:00.000Z')).toEqual(['12:00', 0, false]);
    expect(at('2026-05-01T12:01:00.000Z')).toEqual(['12:00', 0, false]);
    expect(at('2026-05-01T12:01:00.001Z')).toEqual(['12:00', 1, true]);
    expect(at('2026-05-01T12:20:03.000Z')).toEqual(['12:20', 2, false]);
    expect(at('2026-05-01T12:25:00.000Z')).toEqual(['12:20', 3, true]);
  });

  test('years of missed times are not counted one by one', () => {
    expect(at('2036-05-01T12:05:00.000Z')).toEqual(['12:00', 101, true]);
    const due = dueTime({ source, nextAtMs }, ms('2036-05-01T12:05Z'));
    expect(due?.nextAtMs).toBe(ms('2036-05-01T12:10Z'));
  });
});

describe('what is refused, with the field', () => {
  test.each([
    ['61 * * * *', 'UTC', /^cron: "61 \* \* \* \*": .*minute.*expected five fields/],
    ['* * *', 'UTC', /^cron: "\* \* \*" has 3 fields; expected five fields/],
    ['* * * * * *', 'UTC', /^cron: .*expected five fields/],
    ['', 'UTC', /^cron: "" has 0 fields; expected five fields/],
    ['0 0 30 2 *', 'UTC', /^cron: "0 0 30 2 \*" is never due/],
    ['2020-01-01T00:00:00', 'UTC', /^cron: /],
    ['a b c d e', 'UTC', /^cron: /],
    ['*'.repeat(201), 'UTC', /^cron: 201 characters/],
    ['0 3 * * *', 'Mars/Olympus', /^time_zone: unknown time zone "Mars\/Olympus"; expected one of the IANA/],
    ['0 3 * * *', '', /^time_zone: /],
  ])('%s in %s', (cron, timeZone, message) => {
    expect(() => checkCron({ cron, timeZone }, ms('2026-05-01T12:00Z'))).toThrow(message);
  });

  test('texts at random', () => {
    let seed = 7;
    const next = (below: number) => {
      seed = (seed * 48_271) % 2_147_483_647;
      return seed % below;
    };
    const alphabet = '0123456789*/,-?LW# @MONJANx\n\0';
    for (let round = 0; round < 300; round += 1) {
      const cron = Array.from({ length: next(24) }, () => alphabet[next(alphabet.length)]).join('');
      try {
        checkCron({ cron, timeZone: 'UTC' }, ms('2026-05-01T12:00Z'));
      } catch (error) {
        expect(error).toBeInstanceOf(MusterError);
        expect((error as MusterError).message).toMatch(/^cron: /);
      }
    }
  });
});
