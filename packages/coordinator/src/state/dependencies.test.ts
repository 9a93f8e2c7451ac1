import type { ArrayId, JobId } from '@muster/common/ids';
import { describe, expect, test } from 'vitest';
import { aSpec, jobIdOf } from '../modelFixture.ts';
import type { StoredOutcome } from '../store/store.ts';
import { dependencyState, type KnownJobs } from './dependencies.ts';

const array = 'arr_000000000001' as ArrayId;
const [one, two] = [jobIdOf(1), jobIdOf(2)];

function known(given: Partial<Record<JobId, StoredOutcome>>, rest: Partial<KnownJobs> = {}): KnownJobs {
  return {
    outcome: (id) => given[id],
    successor: () => undefined,
    array: () => ({ isActive: false, failed: null }),
    ...rest,
  };
}
const stateOf = (after: readonly string[], jobs: KnownJobs) =>
  dependencyState(jobs, { spec: aSpec({ after: [...after] }) });

test.each([
  ['', 'succeeded', 'met'],
  ['', 'failed', 'failed'],
  ['', 'cancelled', 'failed'],
  ['', 'removed', 'failed'],
  ['', undefined, 'waiting'],
  [':any', 'succeeded', 'met'],
  [':any', 'cancelled', 'met'],
  [':any', 'removed', 'met'],
  [':any', undefined, 'waiting'],
  [':fail', 'failed', 'met'],
  [':fail', 'cancelled', 'met'],
  [':fail', 'succeeded', 'failed'],
  [':fail', undefined, 'waiting'],
] as const)('JOB%s of a job that has %s is %s', (condition, outcome, kind) => {
  const jobs = known(outcome === undefined ? {} : { [one]: outcome });
  expect(stateOf([`${one}${condition}`], jobs).kind).toBe(kind);
});

test('one that cannot be met any more says so, also while others are waited for', () => {
  const jobs = known({ [two]: 'failed' });
  expect(stateOf([one, two], jobs)).toEqual({ kind: 'failed', on: two, what: 'failed' });
});

test('who runs a job again takes its place', () => {
  const successor = (id: JobId) => (id === one ? two : undefined);
  expect(stateOf([one], known({ [one]: 'failed' }, { successor }))).toEqual({
    kind: 'waiting',
    on: two,
    when: 'ok',
  });
  expect(stateOf([one], known({ [one]: 'failed', [two]: 'succeeded' }, { successor })).kind).toBe('met');
});

describe('an array', () => {
  const of = (isActive: boolean, failed: JobId | null) => known({}, { array: () => ({ isActive, failed }) });

  test.each([
    ['', true, null, 'waiting'],
    ['', true, one, 'failed'],
    ['', false, null, 'met'],
    [':any', true, one, 'waiting'],
    [':any', false, one, 'met'],
    [':fail', true, one, 'waiting'],
    [':fail', false, one, 'met'],
    [':fail', false, null, 'failed'],
  ] as const)('with %s, active %s, failed %s', (condition, isActive, failed, kind) => {
    expect(stateOf([`${array}${condition}`], of(isActive, failed)).kind).toBe(kind);
  });
});
