import { status } from '@grpc/grpc-js';
import { expect, test } from 'vitest';
import { uploadWaitMs } from './uploadPace.ts';

const usual = { initialMs: 200, maxMs: 1_000 };
const failed = (code: status) => Object.assign(new Error('no'), { code });

test.each([
  ['a coordinator that is away', failed(status.UNAVAILABLE), 1_000],
  ['a stream that was ended', new Error('the coordinator ended the stream'), 1_000],
  ['an agent whose node was removed', failed(status.UNAUTHENTICATED), 60_000],
  ['an agent that may not upload', failed(status.PERMISSION_DENIED), 60_000],
])('%s is tried again at its own pace', (_what, error, mostMs) => {
  expect(uploadWaitMs(usual, 100, error, 1)).toBe(mostMs);
  expect(uploadWaitMs(usual, 100, error, 0)).toBe(mostMs / 2);
});
