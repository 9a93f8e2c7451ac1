import { expect, test } from 'vitest';
import { Memory, MemoryStore } from '../store/memory/memoryStore.ts';
import { fencedAfterMs } from './leases.ts';
import { Maintenance } from './maintenance.ts';

const settings = { leaseMs: 6_000, fenceMs: 2_000, marginMs: 2_000, clockRateError: 0.005 };
const hourMs = 3_600_000;

/** The disk outlives the coordinators that are started on it; each begins at the time it is given. */
function aDisk() {
  const memory = new Memory('test');
  const clock = { nowMs: 0 };
  return {
    clock,
    stored: () => JSON.parse(memory.meta.get('maintenance') ?? 'null') as unknown,
    start: () => Maintenance.open(new MemoryStore(memory), settings, clock.nowMs),
    now: () => clock.nowMs,
  };
}

test('there is none at first, and none before', async () => {
  const maintenance = await aDisk().start();
  expect(maintenance.leftMs(0)).toBe(0);
  expect(maintenance.fencedSinceStartAtMs).toBe(0);
  expect(maintenance.run(0)).toEqual([]);
});

test('it is stored before it takes effect', async () => {
  const order: string[] = [];
  const store = {
    readMeta: async () => null,
    writeMeta: async () => {
      order.push(`stored while ${maintenance.leftMs(0)} ms are left`);
    },
  };
  const maintenance = await Maintenance.open(store, settings, 0);
  await maintenance.set(hourMs, () => 0);
  expect(order).toEqual(['stored while 0 ms are left']);
  expect(maintenance.leftMs(60_000)).toBe(hourMs - 60_000);
});

test('one that cannot be stored never begins', async () => {
  const store = { readMeta: async () => null, writeMeta: async () => Promise.reject(new Error('disk full')) };
  const maintenance = await Maintenance.open(store, settings, 0);
  await expect(maintenance.set(hourMs, () => 0)).rejects.toThrow('disk full');
  expect(maintenance.leftMs(0)).toBe(0);
});

test('after a restart it goes on, and counts as granted in full until that has run out', async () => {
  const { start, now, clock, stored } = aDisk();
  await (await start()).set(2 * hourMs, now);
  clock.nowMs = 10_000;
  const again = await start();
  expect(again.leftMs(10_000)).toBe(2 * hourMs);
  expect(again.fencedSinceStartAtMs).toBe(10_000 + fencedAfterMs(settings, 2 * hourMs));
  clock.nowMs = again.fencedSinceStartAtMs;
  await Promise.all(again.run(clock.nowMs));
  expect(stored()).toEqual({ leftMs: 0, grantedMs: 0 });
  expect((await start()).fencedSinceStartAtMs).toBe(0);
});

test('ended early, its leases are still remembered over a restart', async () => {
  const { start, now, clock } = aDisk();
  const first = await start();
  await first.set(2 * hourMs, now);
  clock.nowMs = 60_000;
  await first.set(0, now);
  expect(first.leftMs(clock.nowMs)).toBe(0);
  const again = await start();
  expect(again.leftMs(clock.nowMs)).toBe(0);
  expect(again.fencedSinceStartAtMs).toBe(60_000 + fencedAfterMs(settings, 2 * hourMs));
});

test('what is left is written now and then, and the lease that was granted stays in full', async () => {
  const { start, now, clock, stored } = aDisk();
  const maintenance = await start();
  await maintenance.set(hourMs, now);
  expect(maintenance.run(59_999)).toEqual([]);
  clock.nowMs = 60_000;
  await Promise.all(maintenance.run(clock.nowMs));
  expect(stored()).toEqual({ leftMs: hourMs - 60_000, grantedMs: hourMs });
});

test('a pass that meets the beginning of another one does not make the store forget it', async () => {
  const { start, now, clock, stored } = aDisk();
  const maintenance = await start();
  await maintenance.set(10_000, now);
  clock.nowMs = fencedAfterMs(settings, 10_000);
  const begun = maintenance.set(hourMs, now);
  await Promise.all([begun, ...maintenance.run(clock.nowMs)]);
  expect(stored()).toEqual({ leftMs: hourMs, grantedMs: hourMs });
});
