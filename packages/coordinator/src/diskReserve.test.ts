import { mkdtempSync, readdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Logger, silentLogger } from '@muster/common/log';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { DiskReserve, fillersFor, type HeldSpace, inodesKeptOf } from './diskReserve.ts';

const fillerBytes = 1024 * 1024;
/** More than any disk has. */
const tooMuch = 2 ** 60;

let directory: string;
let logged: string[];
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-reserve-'));
  logged = [];
});
afterEach(() => rmSync(directory, { recursive: true }));

/** A store's own space of so many fillers, of which some are there. */
function aSpace(fillers: number, held: number): HeldSpace & { held: number } {
  return {
    held,
    fullBytes: fillers * fillerBytes,
    get heldBytes() {
      return this.held * fillerBytes;
    },
    get isWhole() {
      return this.held >= fillers;
    },
    addFiller() {
      this.held += 1;
    },
  };
}

function aReserve(reserveBytes: number, space?: HeldSpace): DiskReserve {
  const note = (_fields: object, message: string) => void logged.push(message);
  const log: Logger = { ...silentLogger, warn: note, error: note };
  return new DiskReserve(directory, reserveBytes, log, space);
}

test('the store gets its space in steps, and the file of earlier releases goes', () => {
  const space = aSpace(5, 0);
  const reserve = aReserve(tooMuch, space);
  writeFileSync(join(directory, 'ballast'), 'of an earlier release');
  const held: number[] = [];
  for (let call = 0; call < 4; call += 1) {
    reserve.restore();
    held.push(space.held);
  }
  expect(held).toEqual([2, 4, 5, 5]);
  expect({ logged, left: readdirSync(directory) }).toEqual({ logged: [], left: [] });
});

test('a store that cannot get its space is reported, and stops nobody', () => {
  const addFiller = () => {
    throw new Error('EIO');
  };
  aReserve(0, { ...aSpace(4, 0), isWhole: false, addFiller }).restore();
  expect(logged).toEqual(['the store could not get more space of its own']);
});

test('nothing is paused while the disk has room, however little the store holds', () => {
  const reserve = aReserve(tooMuch, aSpace(4, 0));
  reserve.restore();
  expect([reserve.paused(), logged]).toEqual([null, []]);
});

test.each([
  [0, 4],
  [64, 4],
  [256, 8],
  [512, 16],
  [8_192, 16],
])('with a reserve of %i MiB the store holds %i MiB', (reserveMb, fillers) => {
  expect(fillersFor(reserveMb * 2 ** 20)).toBe(fillers);
});

test.each([
  [0, 0],
  [2_000, 200],
  [10_000_000, 4_096],
])('of %i inodes %i are kept free', (total, kept) => {
  expect(inodesKeptOf(total)).toBe(kept);
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
