import { mkdirSync, mkdtempSync, readdirSync, rmSync, statfsSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Logger, silentLogger } from '@muster/common/log';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { DiskReserve } from './diskReserve.ts';

const ballastBytes = 16 * 1024 * 1024;
/** More than any disk has. */
const tooMuch = 2 ** 60;

let directory: string;
let logged: string[];
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-reserve-'));
  logged = [];
});
afterEach(() => rmSync(directory, { recursive: true }));

function aReserve(reserveBytes: number): DiskReserve {
  const note = (_fields: object, message: string) => void logged.push(message);
  const log: Logger = { ...silentLogger, warn: note, error: note };
  return new DiskReserve(directory, reserveBytes, log);
}

test('the ballast is made, dropped once, and made again', () => {
  const reserve = aReserve(0);
  const ballast = join(directory, 'ballast');
  reserve.restoreBallast();
  expect(statSync(ballast)).toMatchObject({ size: ballastBytes, mode: 0o100600 });
  expect(statSync(ballast).blocks * 512, 'it holds space').toBeGreaterThanOrEqual(ballastBytes);
  expect([reserve.dropBallast(), reserve.dropBallast()]).toEqual([true, false]);
  expect(readdirSync(directory)).toEqual([]);
  reserve.restoreBallast();
  expect(reserve.dropBallast()).toBe(true);
});

test('a part of a ballast, as a crash leaves it, is made whole', () => {
  writeFileSync(join(directory, 'ballast'), 'part');
  aReserve(0).restoreBallast();
  expect(statSync(join(directory, 'ballast')).size).toBe(ballastBytes);
});

test('no ballast is made where it would come out of the reserve', () => {
  const reserve = aReserve(tooMuch);
  reserve.restoreBallast();
  expect(reserve.dropBallast()).toBe(false);
});

test('a ballast that cannot be written is reported, and stops nobody', () => {
  mkdirSync(join(directory, 'ballast'));
  aReserve(0).restoreBallast();
  expect(logged).toEqual(['the ballast file could not be written']);
});

test('below the reserve new work is refused with the bytes to free', () => {
  expect(() => aReserve(tooMuch).requireSpace(0)).toThrow(
    new RegExp(
      `^the disk of ${directory} has \\d+ bytes free and ${tooMuch} are kept in reserve: free at least \\d+ bytes`,
    ),
  );
  aReserve(1).requireSpace(0);
});

test('what is written between two looks at the disk counts', () => {
  const { bavail, bsize } = statfsSync(directory);
  // Far more than anybody else on this disk frees meanwhile.
  const room = 2 ** 30;
  const reserve = aReserve(Math.max(0, bavail * bsize - room));
  reserve.requireSpace(0);
  expect(() => reserve.requireSpace(1, 2 * room)).toThrow('free at least');
  reserve.noteWritten(2 * room);
  expect(() => reserve.requireSpace(999)).toThrow('free at least');
  reserve.requireSpace(1_000);
});
