import { expect, test } from 'vitest';
import type { Job } from '../model.ts';
import { aJob, aSpec } from '../modelFixture.ts';
import { specSizes } from '../spec/ownSpec.ts';
import { QueuedSize } from './queuedSize.ts';

const spec = aSpec({ command: 'true', env: { BIG: 'x'.repeat(10_000) } });
const { size } = specSizes(spec);

function aQueue(specs: number): QueuedSize {
  const queue = new QueuedSize();
  queue.limits = { storedBytes: specs * size, memoryBytes: Number.MAX_SAFE_INTEGER };
  return queue;
}

const ofUser = (number: number, user: string): Job => aJob(number, { spec, user });
const ended = (job: Job): Job => ({ ...job, state: { kind: 'cancelled' } as Job['state'] });

test('one user may queue half of what all may, and is told the limit', () => {
  const queue = aQueue(4);
  for (const number of [1, 2]) {
    queue.requireRoom('ann', spec);
    queue.note(ofUser(number, 'ann'));
  }
  expect(() => queue.requireRoom('ann', spec)).toThrow(
    `the queued jobs of ann take ${2 * size} bytes of the store, and this one would take ${size} more: the limit is ${2 * size} bytes`,
  );
  queue.requireRoom('bob', spec);
});

test('all users together have a limit, too', () => {
  const queue = aQueue(4);
  for (const [number, user] of ['ann', 'bob', 'cat', 'dan'].entries()) queue.note(ofUser(number + 1, user));
  expect(() => queue.requireRoom('eve', spec)).toThrow(
    expect.objectContaining({ code: 'resource_exhausted', message: expect.stringContaining('of all users') }),
  );
});

test('a job that has started or ended makes room, however often its state is noted', () => {
  const queue = aQueue(2);
  const job = ofUser(1, 'ann');
  for (let time = 0; time < 3; time += 1) queue.note(job);
  expect(() => queue.requireRoom('ann', spec)).toThrow('the limit is');
  for (let time = 0; time < 3; time += 1) queue.note(ended(job));
  queue.requireRoom('ann', spec);
  queue.note(ofUser(2, 'ann'));
  expect(() => queue.requireRoom('ann', spec)).toThrow('the limit is');
});

test('the jobs of an array count their spec once', () => {
  const queue = aQueue(4);
  const members = [0, 1, 2].map((index) =>
    aJob(index + 1, { spec, user: 'ann', array: { id: 'a-1', index, size: 3 } as never }),
  );
  for (const member of members) queue.note(member);
  queue.requireRoom('ann', spec);
  for (const member of members) queue.note(ended(member));
  for (const number of [11, 12]) queue.note(ofUser(number, 'ann'));
  expect(() => queue.requireRoom('ann', spec)).toThrow(`take ${2 * size} bytes`);
});

test('memory has a limit of its own, for many small jobs', () => {
  const queue = aQueue(1_000);
  queue.limits = { ...queue.limits, memoryBytes: 6 * (size + 1_024) };
  for (const number of [1, 2, 3]) queue.note(ofUser(number, 'ann'));
  expect(() => queue.requireRoom('ann', spec)).toThrow('bytes of memory');
});
