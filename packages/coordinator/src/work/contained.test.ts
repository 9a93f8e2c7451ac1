import { type Logger, silentLogger } from '@muster/common/log';
import { expect, test, vi } from 'vitest';
import { jobIdOf } from '../modelFixture.ts';
import { Contained, namedFailure, StoppingError } from './contained.ts';

function aContained() {
  const clock = { nowMs: 0 };
  const error = vi.fn<Logger['error']>();
  return { clock, error, contained: new Contained({ ...silentLogger, error }, () => clock.nowMs) };
}

test.each([
  ['throws', () => fail()],
  ['rejects', () => Promise.reject(new Error('poison'))],
  ['has one among its promises that rejects', () => [Promise.resolve(), Promise.reject(new Error('poison'))]],
])('what %s is counted and logged by its name, and reaches nobody', async (_, work) => {
  const { contained, error } = aContained();
  await contained.run('drains', work);
  expect(contained.failures.get('drains')).toBe(1);
  expect(error).toHaveBeenCalledExactlyOnceWith(
    expect.objectContaining({ part: 'drains', error: 'poison' }),
    expect.stringContaining('the others keep running'),
  );
});

test('work that is refused because the coordinator stops has not failed', async () => {
  const { contained, error } = aContained();
  await contained.run('leases', () => Promise.reject(new StoppingError()));
  expect(contained.failures.size).toBe(0);
  expect(error).not.toHaveBeenCalled();
});

test('what fails of one job is logged with its name, and where it failed', async () => {
  const { contained, error } = aContained();
  const cause = new Error('poison');
  await contained.run('phases', () => Promise.reject(namedFailure(jobIdOf(7), cause)));
  const logged = { error: `a pass over ${jobIdOf(7)} has failed: poison`, stack: cause.stack };
  expect(error).toHaveBeenCalledExactlyOnceWith(expect.objectContaining(logged), expect.anything());
  await contained.run('phases', () => Promise.reject(namedFailure(jobIdOf(7), new StoppingError())));
  expect(contained.failures.get('phases')).toBe(1);
});

test('every failed promise of one pass counts, and the others are waited for', async () => {
  const { contained } = aContained();
  let done = false;
  const late = new Promise<void>((resolve) =>
    setImmediate(() => {
      done = true;
      resolve();
    }),
  );
  await contained.run('leases', () => [Promise.reject(new Error('a')), late, Promise.reject(new Error('b'))]);
  expect(done).toBe(true);
  expect(contained.failures.get('leases')).toBe(2);
});

test('what fails at every tick is logged once a minute, and each part by itself', async () => {
  const { contained, error, clock } = aContained();
  for (let second = 0; second < 120; second += 1) {
    clock.nowMs = second * 1_000;
    await contained.run('a', fail);
  }
  await contained.run('b', fail);
  expect(error.mock.calls.map(([fields]) => fields)).toMatchObject([
    { part: 'a', failures: 1 },
    { part: 'a', failures: 61 },
    { part: 'b', failures: 1 },
  ]);
});

function fail(): never {
  throw new Error('poison');
}
