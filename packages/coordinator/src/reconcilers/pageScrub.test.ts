import { expect, test } from 'vitest';
import { PageScrub, type ScrubbedStore } from './pageScrub.ts';

/** A scrub of a store of this many pages. `end` resolves when it has found damage, or at its third pause of a day. */
function aScrub(pages: number, options: { readonly nextPage: number | null; readonly damagedPage?: number }) {
  const looked: number[] = [];
  const pauses: number[] = [];
  const damage: string[] = [];
  const ended = Promise.withResolvers<void>();
  const store: ScrubbedStore = {
    nextPage: options.nextPage,
    comparePages: async (first) => {
      looked.push(first);
      const next = first + 10 > pages ? null : first + 10;
      return { damage: first === options.damagedPage ? `page ${first}` : null, next };
    },
  };
  const scrub = new PageScrub({
    store,
    onDamage: (what) => {
      damage.push(what);
      ended.resolve();
    },
    onFailed: ended.reject,
    pause: async (ms, signal) => {
      pauses.push(ms);
      if (pauses.filter((each) => each > 1_000).length < 3 || signal.aborted) return;
      ended.resolve();
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
    },
  });
  return { looked, pauses, damage, end: () => ended.promise.then(() => scrub.close()) };
}

test('what there was no time for at the start is looked at first, then everything once a day', async () => {
  const { looked, damage, end } = aScrub(30, { nextPage: 11 });
  await end();
  expect(looked).toEqual([11, 21, 1, 11, 21, 1, 11, 21]);
  expect(damage).toEqual([]);
});

test('a store that was looked at whole is next looked at a day later', async () => {
  const { looked, pauses, end } = aScrub(10, { nextPage: null });
  await end();
  expect(pauses[0]).toBe(24 * 60 * 60_000);
  expect(looked).toEqual([1, 1]);
});

test('damage is reported once, and ends it', async () => {
  const { looked, damage, end } = aScrub(30, { nextPage: 1, damagedPage: 11 });
  await end();
  expect(damage).toEqual(['page 11']);
  expect(looked).toEqual([1, 11]);
});
