import { expect, test } from 'vitest';
import { skewRefusal, tooOld } from './version.ts';

test.each([
  ['0.1.0', '0.1.9', null],
  ['0.1.0', '0.2.0', null],
  ['0.2.0-rc.1', '0.1.0', null],
  ['0.1.0', '0.3.0', 'one'],
  ['0.10.0', '0.8.5', 'other'],
  ['1.0.0', '0.9.0', 'other'],
  ['0.9.0', '1.0.0', 'one'],
  // Of another maker, or older than this rule.
  ['', '0.3.0', null],
  ['1', '0.3.0', null],
])('%s beside %s: %s is too old', (one, other, expected) => {
  expect(tooOld(one, other)).toBe(expected);
});

test('a refusal names both versions and the one to upgrade', () => {
  expect(skewRefusal('this client', '0.2.0', '0.3.0')).toBeNull();
  expect(skewRefusal('this client', '0.1.0', '0.3.0')).toBe(
    'this client has version 0.1.0, and this coordinator 0.3.0; they may differ by one minor version: upgrade this client',
  );
  expect(skewRefusal('the agent of gpu-1', '0.5.0', '0.3.0')).toMatch(/: upgrade the coordinator$/);
});
