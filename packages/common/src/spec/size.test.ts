import { expect, test } from 'vitest';
import { parseSizeMb } from './size.ts';

test.each([
  ['64G', 65_536],
  ['64g', 65_536],
  ['64GB', 65_536],
  ['64GiB', 65_536],
  ['64 GB', 65_536],
  ['1.5G', 1_536],
  ['2T', 2_097_152],
  ['512M', 512],
  ['2048K', 2],
])('%j is %i MB', (text, megabytes) => {
  expect(parseSizeMb(text)).toBe(megabytes);
});

test.each([
  '',
  'G',
  '0',
  '-1G',
  '512K',
  '0.1M',
  '1.0000001G',
  '64X',
  '64Gbit',
  '1e3',
  '4',
  '65536',
  '64B',
  '9'.repeat(400),
])('%j is refused', (text) => {
  expect(parseSizeMb(text)).toBeNull();
});
