import { expect, test } from 'vitest';
import {
  asListOf,
  asMapOf,
  asNullable,
  asNumber,
  asObject,
  asOneOf,
  asText,
  isTrue,
  orNull,
} from './decoders.ts';

const item = asObject<{ name: string; size: number | null; mode: 'a' | 'b' | null; on: boolean }>({
  name: asText,
  size: orNull(asNumber),
  mode: asNullable(asOneOf(['a', 'b'])),
  on: isTrue,
});

test('an object has its fields and no others', () => {
  const whole = { name: 'x', size: 1, mode: 'a', on: true };
  expect(item({ ...whole, more: 2 })).toEqual(whole);
  expect(item({ name: 'x', mode: null })).toEqual({ name: 'x', size: null, mode: null, on: false });
});

test.each([
  ['a field is missing', { mode: 'a' }],
  ['a field is not understood', { name: 3, mode: 'a' }],
  ['a word is unknown', { name: 'x', mode: 'c' }],
  ['a list', []],
  ['null', null],
  ['text', 'x'],
])('it is not understood: %s', (_, value) => {
  expect(item(value)).toBeUndefined();
});

test('lists and mappings leave out what is not understood', () => {
  expect(asListOf(asNumber)([1, 'x', Number.NaN, null, 2])).toEqual([1, 2]);
  expect(asListOf(asNumber)({ length: 2 })).toEqual([]);
  expect(asMapOf(asNumber)({ a: 1, b: 'x' })).toEqual(new Map([['a', 1]]));
  expect(asMapOf(asNumber)([1])).toEqual(new Map());
});
