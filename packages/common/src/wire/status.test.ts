import type { ServiceError } from '@grpc/grpc-js';
import { Metadata, status } from '@grpc/grpc-js';
import { expect, test } from 'vitest';
import { type ErrorCode, MusterError } from '../errors.ts';
import { fromServiceError, toServiceError } from './status.ts';

const codes: Record<ErrorCode, status> = {
  invalid: status.INVALID_ARGUMENT,
  not_found: status.NOT_FOUND,
  already_exists: status.ALREADY_EXISTS,
  failed_precondition: status.FAILED_PRECONDITION,
  resource_exhausted: status.RESOURCE_EXHAUSTED,
  unauthenticated: status.UNAUTHENTICATED,
  permission_denied: status.PERMISSION_DENIED,
  unavailable: status.UNAVAILABLE,
  deadline_exceeded: status.DEADLINE_EXCEEDED,
  internal: status.INTERNAL,
};

test.each(Object.entries(codes))('%s travels as status %i and back', (code, wireCode) => {
  const wire = toServiceError(new MusterError(code as ErrorCode, 'because'));
  expect(wire).toMatchObject({ code: wireCode, details: 'because' });
  expect(fromServiceError(wire as ServiceError)).toMatchObject({ code, message: 'because' });
});

test.each([
  [status.UNKNOWN, 'internal'],
  [status.UNIMPLEMENTED, 'internal'],
  [999, 'internal'],
])('status %i, which we never send, is %s', (code, known) => {
  const error = Object.assign(new Error('text'), { code, details: '', metadata: new Metadata() });
  expect(fromServiceError(error)).toMatchObject({ code: known, message: 'text', cause: error });
});

test.each([
  [status.CANCELLED, 'Call cancelled'],
  [status.INTERNAL, 'Received RST_STREAM with code 0 (Call ended without gRPC status)'],
])('a call that a coordinator cuts off when it stops, status %i, is unavailable', (code, details) => {
  const error = Object.assign(new Error('text'), { code, details, metadata: new Metadata() });
  const expected = { code: 'unavailable', message: 'the coordinator stopped during the call' };
  expect(fromServiceError(error)).toMatchObject(expected);
});

test('a deadline is reported without the phases of the call inside of the library', () => {
  const details =
    'Deadline exceeded after 15.448s,name resolution: 2.854s,LB pick: 3.601s,remote_addr=127.0.0.1:7070';
  const error = Object.assign(new Error('text'), {
    code: status.DEADLINE_EXCEEDED,
    details,
    metadata: new Metadata(),
  });
  const expected = { code: 'deadline_exceeded', message: 'the coordinator did not answer in time' };
  expect(fromServiceError(error)).toMatchObject(expected);
});

const problem = { path: 'resources.gpus', message: 'not a number', expected: 'a number', suggestion: null };

function roundTrip(problems: readonly (typeof problem)[]): MusterError {
  const wire = toServiceError(new MusterError('invalid', 'the spec is wrong', { problems }));
  const [bytes] = wire.metadata?.get('muster-problems-bin') ?? [];
  expect(bytes?.length ?? 0, 'fits into metadata').toBeLessThanOrEqual(6_000);
  return fromServiceError(wire as ServiceError);
}

test('problems of a spec travel field by field, as many as fit', () => {
  expect(roundTrip([problem]).problems).toEqual([problem]);
  const { problems } = roundTrip(Array.from({ length: 1_000 }, () => problem));
  expect(problems.length).toBeGreaterThan(10);
  expect(problems[0]).toEqual(problem);
  expect(roundTrip([{ ...problem, path: 'k'.repeat(100_000) }]).problems).toEqual([]);
});

test('a message that quotes a flood, or half a character, still travels', () => {
  expect(toServiceError(new MusterError('invalid', 'x'.repeat(100_000))).details).toHaveLength(1_002);
  const halves = ['\ud800', `${'x'.repeat(999)}😀`];
  for (const text of halves) {
    const { details = '' } = toServiceError(new MusterError('invalid', text));
    expect(() => encodeURI(details)).not.toThrow();
  }
});
