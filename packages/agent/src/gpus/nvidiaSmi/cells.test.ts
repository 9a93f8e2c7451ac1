import { expect, test } from 'vitest';
import {
  faultOf,
  readAmount,
  readCelsius,
  readCount,
  readFlag,
  readMask,
  readNumber,
  readPciBusId,
  readPercent,
  readRecoveryAction,
  readText,
  readUuid,
} from './cells.ts';

const noNumbers = [
  '',
  'N/A',
  '[N/A]',
  '[Not Supported]',
  '[Unknown Error]',
  '[Insufficient Permissions]',
  '[GPU is lost]',
  '[GPU requires reset]',
  '[Not Found]',
  '[Requested functionality has been deprecated]',
  'ERR!',
  'nan',
  'inf',
  '1e5',
  '0x1B',
  '12 13',
  '1,5',
  '99999999999999999999',
  '5 apples',
];

test.each(noNumbers)('%j is no number', (cell) => {
  const readings = [readNumber, readAmount, readCount, readPercent, readCelsius].map((read) => read(cell));
  expect(readings).toEqual([null, null, null, null, null]);
});

test('numbers are read with and without their unit', () => {
  expect(['61', '97 %', '81559 MiB', '631.95 W', '-5 C', '1980 MHz'].map(readNumber)).toEqual([
    61, 97, 81_559, 631.95, -5, 1980,
  ]);
});

test('a number outside of what the quantity can be was not read', () => {
  expect([readPercent('101'), readPercent('-1'), readAmount('-3'), readCount('1.5')]).toEqual([
    null,
    null,
    null,
    null,
  ]);
  expect([readCelsius('-7'), readCelsius('4294967295'), readPercent('100')]).toEqual([-7, null, 100]);
});

test('masks are hexadecimal, and whole or absent', () => {
  expect(readMask('0x0000000000000028')).toBe(0x28);
  expect(readMask('0xFFFFFFFFFFFFFFFF')).toBeNull();
  expect([readMask('28'), readMask('[N/A]')]).toEqual([null, null]);
});

test('flags, texts and recovery actions', () => {
  expect(['Yes', 'No', 'N/A', undefined].map(readFlag)).toEqual([true, false, null, null]);
  expect(readText('NVIDIA \u001B[31mH100')).toBe('NVIDIA [31mH100');
  expect(readText('NVIDIA \u009b2J\u202eH100')).toBe('NVIDIA 2JH100');
  expect([readText('[N/A]'), readText('x'.repeat(1000))?.length]).toEqual([null, 256]);
  const actions = [
    'None',
    'Reset',
    'GPU Reset',
    'Reboot',
    'Drain P2P',
    'Drain and Reset',
    'Recover IMEX Domain',
  ];
  expect(actions.map(readRecoveryAction)).toEqual([0, 1, 1, 2, 3, 4, 5]);
  expect(['N/A', '[N/A]', '', 'Something new'].map(readRecoveryAction)).toEqual([null, null, null, null]);
});

test('identifiers are of one form, or absent', () => {
  expect(readPciBusId('0000:1B:00.0')).toBe('00000000:1b:00.0');
  expect(readPciBusId('00000000:1B:00.0')).toBe('00000000:1b:00.0');
  expect([readPciBusId('1B'), readPciBusId(null)]).toEqual([null, null]);
  expect(readUuid('MIG-GPU-aaaa/3/0')).toBe('MIG-GPU-aaaa/3/0');
  expect(['GPU-a,GPU-b', 'all', 'GPU-$(id)', 'GPU-a\nB=1', ''].map(readUuid)).toEqual(Array(5).fill(null));
});

test('faults are distinguished from absences', () => {
  expect(['[GPU is lost]', 'GPU requires reset', '[Unknown Error]', 'ERR!'].map(faultOf)).toEqual([
    'lost',
    'reset_required',
    'unknown_error',
    'unknown_error',
  ]);
  expect(['[N/A]', '', '[Insufficient Permissions]', '42'].map(faultOf)).toEqual([null, null, null, null]);
});
