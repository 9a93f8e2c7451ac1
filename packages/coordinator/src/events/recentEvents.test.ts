import { expect, test } from 'vitest';
import { jobIdOf } from '../modelFixture.ts';
import { Memory, MemoryStore } from '../store/memory/memoryStore.ts';
import { anEvent } from '../store/storeFixture.ts';
import { RecentEvents } from './watch.ts';

/** Events of two jobs in turn, in a store that counts how often it is asked. */
function aLog() {
  const memory = new Memory('test');
  const store = new MemoryStore(memory);
  const log = {
    reads: 0,
    recent: new RecentEvents({
      readEvents: (...wanted) => {
        log.reads += 1;
        return store.readEvents(...wanted);
      },
    }),
    /** @param isAnnounced whether the newest events hear of the commit */
    commit(count: number, isAnnounced = true): void {
      const first = memory.events.size + 1;
      const events = Array.from({ length: count }, (_, index) =>
        anEvent(first + index, jobIdOf((first + index) % 2), first + index),
      );
      for (const event of events) memory.events.set(event.seq, event);
      if (isAnnounced) log.recent.committed(events);
    },
    /** The same as the store has it. @returns the numbers */
    async read(sinceSeq: number, limit: number, subject: string | null = null): Promise<readonly number[]> {
      const read = await log.recent.readEvents(sinceSeq, limit, subject);
      expect(read).toEqual(await store.readEvents(sinceSeq, limit, subject));
      return read.map(({ seq }) => seq);
    },
  };
  return log;
}

test('what was just committed is answered without the store, older events from it', async () => {
  const log = aLog();
  log.commit(3, false);
  log.commit(2);
  log.commit(2);
  expect(await log.read(3, 10)).toEqual([4, 5, 6, 7]);
  expect(await log.read(5, 1)).toEqual([6]);
  expect(await log.read(3, 10, jobIdOf(0))).toEqual([4, 6]);
  expect(await log.read(7, 10)).toEqual([]);
  expect(log.reads).toBe(0);
  expect(await log.read(2, 10)).toEqual([3, 4, 5, 6, 7]);
  expect(await log.read(0, 2)).toEqual([1, 2]);
  expect(log.reads).toBe(2);
});

test('a commit that was missed leaves no gap', async () => {
  const log = aLog();
  log.commit(2);
  log.commit(1, false);
  log.commit(2);
  expect(await log.read(0, 10)).toEqual([1, 2, 3, 4, 5]);
  expect(await log.read(3, 10)).toEqual([4, 5]);
  expect(log.reads).toBe(1);
});

test('only so many are kept', async () => {
  const log = aLog();
  for (let commits = 0; commits < 60; commits += 1) log.commit(10);
  expect(await log.read(600 - 512, 1_000)).toHaveLength(512);
  expect(log.reads).toBe(0);
  expect(await log.read(600 - 513, 1_000)).toHaveLength(513);
  expect(log.reads).toBe(1);
});
