import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { repositoryDir } from '../../../../../test/support/command.ts';
import { profileOf } from './enumerate.ts';
import { CounterRate } from './fieldValues.ts';
import { functionNames } from './functions.ts';
import { nvmlProblem, problemKindOf } from './returnCodes.ts';
import { fieldValue, maskToList, percent, readFieldValue, readString, readU32, readU64 } from './structs.ts';

test('all ones is no number', () => {
  const bytes = Buffer.alloc(8, 0xff);
  expect(readU32(bytes, 0)).toBeNull();
  expect(readU64(bytes, 0)).toBeNull();
  bytes.writeBigUInt64LE(2n ** 53n - 1n);
  expect(readU64(bytes, 0)).toBe(2 ** 53 - 1);
  bytes.writeBigUInt64LE(2n ** 53n);
  expect(readU64(bytes, 0)).toBeNull();
});

test.for([
  { type: 0, write: (b: Buffer) => b.writeDoubleLE(1.5, fieldValue.value), value: 1.5 },
  { type: 0, write: (b: Buffer) => b.writeDoubleLE(Number.NaN, fieldValue.value), value: null },
  { type: 1, write: (b: Buffer) => b.writeUInt32LE(7, fieldValue.value), value: 7 },
  { type: 3, write: (b: Buffer) => b.writeBigUInt64LE(2n ** 40n, fieldValue.value), value: 2 ** 40 },
  { type: 4, write: (b: Buffer) => b.writeBigInt64LE(-3n, fieldValue.value), value: -3 },
  { type: 5, write: (b: Buffer) => b.writeInt32LE(-4, fieldValue.value), value: -4 },
  { type: 6, write: (b: Buffer) => b.writeUInt16LE(9, fieldValue.value), value: 9 },
  { type: 42, write: (b: Buffer) => b.writeUInt32LE(7, fieldValue.value), value: null },
])('a field of type $type is $value', ({ type, write, value }) => {
  const bytes = Buffer.alloc(fieldValue.size);
  bytes.writeInt32LE(type, fieldValue.valueType);
  write(bytes);
  expect(readFieldValue(bytes, 0)).toBe(value);
  bytes.writeInt32LE(3, fieldValue.returnCode);
  expect(readFieldValue(bytes, 0)).toBeNull();
});

test('masks become lists', () => {
  const mask = Buffer.alloc(24);
  expect(maskToList(mask)).toBeNull();
  mask[0] = 0b1011;
  mask[8] = 0xff;
  mask[23] = 0x80;
  expect(maskToList(mask)).toBe('0-1,3,64-71,191');
});

test('text ends at its zero and holds nothing that a terminal obeys', () => {
  const bytes = Buffer.from('ab\u001b[2Jc\0hidden', 'latin1');
  expect(readString(bytes, 0, bytes.length)).toBe('ab[2Jc');
  expect(readString(Buffer.from('endless'), 0, 3)).toBe('end');
});

test('what is no percentage is no value', () => {
  expect([percent(0), percent(100), percent(101), percent(null)]).toEqual([0, 100, null, null]);
});

test('profiles are named after slices and memory', () => {
  expect(profileOf(1, 1, 9_728)).toBe('1g.10gb');
  expect(profileOf(2, 1, 20_096)).toBe('1c.2g.20gb');
  expect(profileOf(7, 7, null)).toBe('7g');
});

test('a rate needs two readings and a counter that grows', () => {
  const rate = new CounterRate();
  expect(rate.of({ value: 1_000, atMicros: 1_000_000 })).toBeNull();
  expect(rate.of({ value: 3_000, atMicros: 1_500_000 })).toBe(4_000);
  expect(rate.of({ value: 3_000, atMicros: 1_500_000 })).toBeNull();
  expect(rate.of({ value: 10, atMicros: 2_500_000 })).toBeNull();
  expect(rate.of(null)).toBeNull();
  expect(rate.of({ value: 20, atMicros: 3_500_000 })).toBeNull();
});

test('return codes are absences or problems', () => {
  const kinds = [0, 2, 3, 6, 13, 21, 26].map(problemKindOf);
  expect(kinds).toEqual([null, null, null, null, null, null, null]);
  expect(problemKindOf(15)).toBe('lost');
  expect(problemKindOf(12345)).toBe('unknown_error');
  const card = { index: 2, uuid: 'GPU-2', pciBusId: null };
  expect(nvmlProblem({ kind: 'driver_mismatch', code: 18, call: 'f' }, card).gpuUuid).toBeNull();
  expect(nvmlProblem({ kind: 'reset_required', code: 16, call: 'f' }, card)).toMatchObject({
    gpuUuid: 'GPU-2',
    message: expect.stringMatching(/^GPU 2 needs a reset/),
    evidence: 'f returned 16',
  });
});

/** Lists of what real libraries export, where this checkout has them. */
const symbolLists = ['h100-80g-r590.txt', 'rtx2080s-r610.txt']
  .map((name) => join(repositoryDir, '../shared/fixtures/nvidia/nvml-symbols', name))
  .filter((path) => existsSync(path));

test('every function that is used is exported by real libraries', () => {
  for (const path of symbolLists) {
    const exported = new Set(readFileSync(path, 'utf8').split('\n'));
    expect(functionNames.filter((name) => !exported.has(name))).toEqual([]);
  }
});
