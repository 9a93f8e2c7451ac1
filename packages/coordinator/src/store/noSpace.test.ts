import { MusterError } from '@muster/common/errors';
import { expect, test } from 'vitest';
import { isRefusal, NoSpaceError } from './noSpace.ts';
import { StoreError } from './store.ts';

test.each([
  [new MusterError('resource_exhausted', 'the budget is used up'), true],
  [new MusterError('invalid', ''), true],
  [new NoSpaceError(new StoreError('full', 'the disk is full')), false],
  [new MusterError('unavailable', ''), false],
  [new MusterError('internal', ''), false],
  [new Error('a bug'), false],
])('%s is a refusal: %s', (error, expected) => {
  expect(isRefusal(error)).toBe(expected);
});
