import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { StoredEvent } from '../model.ts';
import { jobIdOf } from '../modelFixture.ts';
import { Memory, MemoryStore } from '../store/memory/memoryStore.ts';
import { anEvent } from '../store/storeFixture.ts';
import { positionOfNewest } from './newest.ts';

const signal = new AbortController().signal;

test('exactly the newest wanted events follow the position, whatever the log holds', async () => {
  const log = fc.array(fc.record({ isOfOne: fc.boolean(), isWanted: fc.boolean() }), { maxLength: 1_500 });
  await fc.assert(
    fc.asyncProperty(
      log,
      fc.integer({ min: 1, max: 40 }),
      fc.nat(100),
      fc.boolean(),
      async (events, count, since, ofOne) => {
        const memory = new Memory('test');
        for (const [index, { isOfOne }] of events.entries())
          memory.events.set(index + 1, anEvent(index + 1, jobIdOf(isOfOne ? 1 : 2), index + 1));
        const isWanted = async ({ seq }: StoredEvent) => events[seq - 1]?.isWanted === true;
        const subject = ofOne ? jobIdOf(1) : null;
        const sinceSeq = Math.min(since, events.length);
        const position = await positionOfNewest(
          new MemoryStore(memory),
          events.length,
          { count, sinceSeq, subject, isWanted },
          signal,
        );
        const wanted = events.flatMap(({ isOfOne, isWanted: is }, index) =>
          is && index + 1 > sinceSeq && (!ofOne || isOfOne) ? [index + 1] : [],
        );
        expect(wanted.filter((seq) => seq > position)).toEqual(wanted.slice(-count));
        expect(position).toBeGreaterThanOrEqual(sinceSeq);
      },
    ),
    { numRuns: 60 },
  );
});

test('events at the end of a long log are found without reading its beginning', async () => {
  const reads: number[] = [];
  const readEvents = async (sinceSeq: number, limit: number) => {
    reads.push(sinceSeq);
    return Array.from({ length: Math.min(limit, 1_000_000 - sinceSeq) }, (_, index) =>
      anEvent(sinceSeq + index + 1, jobIdOf(1), sinceSeq + index + 1),
    );
  };
  const wanted = { count: 20, sinceSeq: 0, subject: null, isWanted: async () => true };
  expect(await positionOfNewest({ readEvents }, 1_000_000, wanted, signal)).toBe(999_980);
  expect(Math.min(...reads)).toBeGreaterThanOrEqual(999_800);
});
