import { expect, test } from 'vitest';
import { seededChance } from '../../../../test/support/chance.ts';
import { numberIn, secondsIn } from './numbers.ts';

test.each<[string, number | null | undefined]>([
  ['2.0123', 2.0123],
  ['-7', -7],
  ['+.5', 0.5],
  ['5.', 5],
  ['-0.0', -0],
  ['4.17e-05', 0.0000417],
  ['123456789012345678', 123456789012345680],
  ['11,023', 11023],
  ['nan', null],
  ['-inf', null],
  ['1e999', null],
  ['', undefined],
  ['-', undefined],
  ['.', undefined],
  ['1.2.3', undefined],
  ['1-2', undefined],
  ['1e', undefined],
  ['1e-', undefined],
  ['1e5.0', undefined],
  ['0x10', undefined],
])('%j is %s', (text, value) => {
  expect(numberIn(text)).toBe(value);
});

test('numbers are read to the last bit as JavaScript reads them, milliseconds with their point moved', () => {
  const chance = seededChance(5);
  for (let trial = 0; trial < 20_000; trial += 1) {
    const digits = Array.from({ length: chance.integer(1, 18) }, () => chance.integer(0, 9)).join('');
    const point = chance.integer(0, digits.length);
    const text = `${chance.pick(['', '-', '+'])}${digits.slice(0, point)}.${digits.slice(point)}`;
    const exponent = chance.pick(['e-05', 'E+2', 'e3', 'e22', 'e-30']);
    expect(numberIn(text), text).toBe(Number(text));
    expect(numberIn(text + exponent), text + exponent).toBe(Number(text + exponent));
    expect(secondsIn(text), text).toBe(Number(`${text}e-3`));
  }
});
