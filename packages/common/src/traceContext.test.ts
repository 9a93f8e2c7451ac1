import { expect, test } from 'vitest';
import { parseTraceparent, spanIdOf, traceIdOf, traceparentText } from './traceContext.ts';

const traceId = '0af7651916cd43dd8448eb211c80319c';
const spanId = 'b7ad6b7169203331';
const [valid, notSampled] = [`00-${traceId}-${spanId}-01`, `00-${traceId}-${spanId}-00`];

test('a valid traceparent is read, and written as it was', () => {
  expect(parseTraceparent(valid)).toEqual({ traceId, spanId, isSampled: true });
  expect(parseTraceparent(notSampled)).toEqual({ traceId, spanId, isSampled: false });
  for (const text of [valid, notSampled])
    expect(traceparentText(parseTraceparent(text) ?? expect.fail())).toBe(text);
});

test('of a later version the known part is read, and of the flags the one that is known', () => {
  expect(parseTraceparent(`cc-${traceId}-${spanId}-03-more`)).toEqual({ traceId, spanId, isSampled: true });
  expect(parseTraceparent(`00-${traceId}-${spanId}-02`)).toMatchObject({ isSampled: false });
});

test.each([
  ['nothing', ''],
  ['another text', 'hello'],
  ['upper case', valid.toUpperCase()],
  ['a trace of zeros', `00-${'0'.repeat(32)}-${spanId}-01`],
  ['a span of zeros', `00-${traceId}-${'0'.repeat(16)}-01`],
  ['the version that is none', `ff-${traceId}-${spanId}-01`],
  ['more than version 00 has', `${valid}-more`],
  ['a short trace id', `00-${traceId.slice(1)}-${spanId}-01`],
  ['a line behind it', `${valid}\n`],
  ['a space before it', ` ${valid}`],
])('%s is no traceparent', (_, text) => {
  expect(parseTraceparent(text)).toBeNull();
});

test('a job has the trace that its submit named, else one that follows from its id', () => {
  expect(traceIdOf('job_1', valid)).toBe(traceId);
  const own = traceIdOf('job_1', null);
  expect(own).toMatch(/^[\da-f]{32}$/);
  expect(traceIdOf('job_1', undefined)).toBe(own);
  expect(traceIdOf('job_2', null)).not.toBe(own);
});

test('spans of a job have different ids, each the same whenever it is made', () => {
  const ids = ['', 'plan 1', 'attempt 1'].flatMap((what) => [
    spanIdOf('job_1', what),
    spanIdOf('job_2', what),
  ]);
  expect(new Set(ids).size).toBe(6);
  for (const id of ids) expect(id).toMatch(/^[\da-f]{16}$/);
  expect(spanIdOf('job_1', 'plan 1')).toBe(ids[2]);
});
