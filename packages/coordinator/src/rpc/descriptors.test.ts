import { expect, test } from 'vitest';
import { descriptorsMax } from './descriptors.ts';

const limits = (value: string) => `Limit                     Soft Limit           Hard Limit           Units
Max processes             95849                95849                processes
Max open files            ${value}              1048576              files
`;

test('the soft limit counts', () => {
  expect(descriptorsMax(() => limits('300'))).toBe(300);
  expect(descriptorsMax(() => limits('unlimited'))).toBe(Number.MAX_SAFE_INTEGER);
  expect(descriptorsMax(() => 'Max something 5')).toBe(1_024);
  expect(
    descriptorsMax(() => {
      throw new Error('no /proc here');
    }),
  ).toBe(1_024);
});

test('this process has one', () => {
  expect(descriptorsMax()).toBeGreaterThan(16);
});
