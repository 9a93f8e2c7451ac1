import type { ArrayId, JobId } from '@muster/common/ids';
import { silentLogger } from '@muster/common/log';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import type { Job } from '../model.ts';
import { aCaller, aJob, aSpec, jobIdOf, someMs } from '../modelFixture.ts';
import { Memory, MemoryStore } from '../store/memory/memoryStore.ts';
import { eventBytes } from '../store/retention.ts';
import { emptyBatch } from '../store/store.ts';
import { anEvent } from '../store/storeFixture.ts';
import type { StoredTrigger } from '../store/triggers.ts';
import { Retention } from './retention.ts';

const dayMs = 86_400_000;
const keep = {
  eventsMs: 30 * dayMs,
  eventsBytes: Number.POSITIVE_INFINITY,
  jobsMs: 90 * dayMs,
  jobsMax: 1_000_000,
};

let memory: Memory;
let coordinator: TestCoordinator;
const removedLogs: JobId[] = [];
/** Jobs whose output cannot be removed, and what is logged of it. */
const stuckLogs = new Set<JobId>();
const warnings: unknown[] = [];
/** How many events, by transaction. */
const removedEvents: number[] = [];
beforeEach(() => {
  memory = new Memory('test');
  removedLogs.length = 0;
  stuckLogs.clear();
  warnings.length = 0;
  removedEvents.length = 0;
  countedMs = 0;
});
afterEach(() => coordinator.close());

async function start(jobs: readonly Job[], events: readonly ReturnType<typeof anEvent>[] = []) {
  await new MemoryStore(memory).commit({ ...emptyBatch, newJobs: jobs, events });
  coordinator = await startTestCoordinator({ memory });
}

let monotonicMs = 0;
/** Monotonic time of the runs before. */
let countedMs = 0;
let running: Retention;

/** The one of the same coordinator an hour later. */
async function nextPass() {
  monotonicMs += 3_600_000;
  for (let count = 0; count < 10; count += 1) await running.run();
}

/** A pass that begins so many days after `someMs`. */
async function pass(
  days: number,
  settings: Partial<typeof keep> & { readonly isCertain?: boolean; readonly share?: number } = {},
  publishedSeq = 1_000_000,
) {
  const { state } = coordinator;
  const store = new MemoryStore(memory);
  const { removeEvents } = store.retention;
  store.retention.removeEvents = (seqs) => {
    removedEvents.push(seqs.length);
    return removeEvents(seqs);
  };
  monotonicMs = 0;
  const retention = new Retention({
    state,
    store,
    keep: { ...keep, ...settings },
    logs: {
      async remove(id) {
        if (stuckLogs.has(id)) throw new Error(`EIO: ${id}`);
        return removedLogs.push(id);
      },
    },
    log: { ...silentLogger, warn: (fields) => void warnings.push(fields) },
    rows: { remove: async () => 0 },
    publishedSeq: async () => publishedSeq,
    onFatal: (error) => expect.unreachable(error.message),
    wallMs: () => someMs + days * dayMs,
    isCertain: () => settings.isCertain ?? true,
    monotonicMs: () => monotonicMs,
    countedMs: () => countedMs + monotonicMs,
    loop: coordinator.loop,
    share: settings.share ?? 1,
  });
  running = retention;
  await retention.run();
  await nextPass();
  return retention;
}

const over = (number: number, fields: Partial<Job> = {}) =>
  aJob(number, { state: { kind: 'succeeded', endedAtMs: someMs + number }, ...fields });
async function seqsOf(events: AsyncIterable<{ readonly seq: number }>): Promise<readonly number[]> {
  const seqs: number[] = [];
  for await (const { seq } of events) seqs.push(seq);
  return seqs;
}

const kept = () => [...memory.jobs.values()].map(({ submitSeq }) => submitSeq);

test('jobs that ended long ago go, with their output, and answers state what became of them', async () => {
  await start([over(1), over(2), aJob(3), aJob(4)]);

  await pass(89);
  expect(kept()).toEqual([1, 2, 3, 4]);
  await pass(91);
  expect(kept()).toEqual([3, 4]);
  expect(removedLogs).toEqual([jobIdOf(1), jobIdOf(2)]);
  await expect(coordinator.api.getJob(jobIdOf(1))).rejects.toThrow(/was removed by retention/);
  await expect(coordinator.api.getJob(jobIdOf(77))).rejects.toThrow(/there is no job/);
  const specJson = JSON.stringify({ name: 'late', command: ['true'], after: [jobIdOf(1)] });
  await expect(coordinator.api.submit({ specJson, requestId: 'r1' })).rejects.toThrow(/removed by retention/);
});

test('a job whose output cannot be removed stays until it can be, and keeps no other job', async () => {
  await start([over(1), over(2), over(3), aJob(4)]);
  stuckLogs.add(jobIdOf(2));
  await pass(91);
  expect(kept()).toEqual([2, 4]);
  expect(warnings).toEqual([{ jobId: jobIdOf(2), error: `EIO: ${jobIdOf(2)}` }]);
  expect(await coordinator.api.getJob(jobIdOf(2))).toMatchObject({ state: 'succeeded' });
  stuckLogs.clear();
  await nextPass();
  expect(kept()).toEqual([4]);
});

test('no more than so many ended jobs are kept, the newest', async () => {
  await start([...Array.from({ length: 250 }, (_, index) => over(index + 1)), aJob(251)]);

  await pass(1, { jobsMax: 20 });

  expect(kept()).toEqual([...Array.from({ length: 20 }, (_, index) => 231 + index), 251]);
});

test('what active jobs name is kept, and the newest number of a submission', async () => {
  const array = { id: 'arr_000000000001' as ArrayId, size: 2 };
  await start([
    over(1),
    over(2),
    over(3),
    over(4),
    over(5, { array: { ...array, index: 0 } }),
    aJob(6, { array: { ...array, index: 1 } }),
    aJob(7, { spec: aSpec({ after: [jobIdOf(1)] }), requeuedFrom: jobIdOf(2), checkpointJobId: jobIdOf(3) }),
    over(8),
  ]);

  await pass(400);

  expect(kept()).toEqual([1, 2, 3, 5, 6, 7, 8]);
});

test('old events go, but none unpublished and not the newest of who may get another', async () => {
  const events = [
    anEvent(1, jobIdOf(1), 1),
    anEvent(2, jobIdOf(2), 1),
    anEvent(3, jobIdOf(1), 2),
    anEvent(4, 'gone', 1),
    anEvent(5, 'gone', 2),
    anEvent(6, 'gone', 3),
  ];
  await start([aJob(1), over(2)], events);

  await pass(6, { eventsMs: 0 });
  expect([...memory.events.keys()]).toEqual([1, 2, 3, 4, 5, 6]);
  await pass(31, {}, 4);
  // The job waits, so its newest stays; 6 is the newest of all.
  expect([...memory.events.keys()]).toEqual([3, 5, 6]);
  await pass(31);
  expect([...memory.events.keys()]).toEqual([3, 6]);
  const watch = coordinator.api.watchEvents({ sinceSeq: 2, follow: false });
  await expect(seqsOf(watch)).rejects.toThrow(/events up to 5 were removed by retention/);
  expect(await seqsOf(coordinator.api.watchEvents({ sinceSeq: 0, follow: false }))).toEqual([3, 6]);
});

/** Of one of `severalEvents`. */
const bytesOfOne = eventBytes(Buffer.byteLength('{"seq":100}'));

/** All about a job that has ended. */
const severalEvents = (count: number) =>
  Array.from({ length: count }, (_, index) => ({
    ...anEvent(index + 1, jobIdOf(1), index + 1),
    data: { seq: 100 },
  }));

test('of too many events the oldest go, until there is some room', async () => {
  await start([over(1)], severalEvents(100));

  const asMany = await pass(8, { eventsBytes: 100 * bytesOfOne });
  expect([memory.events.size, asMany.eventBytes]).toEqual([100, 100 * bytesOfOne]);
  const tooMany = await pass(8, { eventsBytes: 90 * bytesOfOne });
  // A tenth of the limit is room for those that follow.
  expect([...memory.events.keys()]).toEqual(Array.from({ length: 81 }, (_, index) => index + 20));
  expect(tooMany.eventBytes).toBe(81 * bytesOfOne);
});

test('events of the last week stay however many there are, and those that are not published', async () => {
  await start([over(1)], severalEvents(100));

  await pass(7, { eventsBytes: bytesOfOne });
  expect(memory.events.size).toBe(100);
  await pass(8, { eventsBytes: bytesOfOne }, 30);
  expect([...memory.events.keys()]).toEqual(Array.from({ length: 70 }, (_, index) => index + 31));
  await pass(8, { eventsBytes: bytesOfOne });
  // The newest of all has the number that the next one follows.
  expect([...memory.events.keys()]).toEqual([100]);
});

test('events that a trigger has not looked at stay, unless it is paused', async () => {
  await start([over(1)], severalEvents(100));
  const specJson = JSON.stringify({ name: 'vision', steps: { train: { run: 'train' } } });
  await coordinator.api.createTrigger({ name: 'after', specJson, condition: "kind == 'job.failed'" });
  const change = (fields: Partial<StoredTrigger>) =>
    coordinator.loop.run(aCaller, (draft) => {
      const trigger = draft.pipelines.trigger('after');
      if (trigger !== undefined) draft.pipelines.putTrigger({ ...trigger, ...fields });
    });
  const oldest = () => [...memory.events.keys()][0];

  await change({ eventSeq: 40 });
  await pass(31);
  expect(oldest()).toBe(41);
  await change({ isPaused: true });
  await pass(31);
  expect(oldest()).toBeGreaterThanOrEqual(100);
});

test('what is counted once is not counted again, and new events are', async () => {
  await start([over(1)], severalEvents(5_000));
  const retention = await pass(8, { eventsBytes: 5_010 * bytesOfOne });
  expect(retention.eventBytes).toBe(5_000 * bytesOfOne);
  for (const event of severalEvents(5_020).slice(5_000)) memory.events.set(event.seq, event);

  await nextPass();

  expect(retention.eventBytes).toBe(memory.events.size * bytesOfOne);
  expect(memory.events.size).toBeLessThan(5_010);
});

test('much that is old goes a little at a time', async () => {
  const events = Array.from({ length: 1_000 }, (_, index) => anEvent(index + 1, jobIdOf(1), index + 1));
  await start([over(1)], events);

  await pass(31);

  expect(removedEvents.reduce((sum, each) => sum + each)).toBeGreaterThan(900);
  expect(Math.max(...removedEvents)).toBeLessThanOrEqual(100);
});

test('nothing goes for its age while the time is in doubt, and what is too much still does', async () => {
  await start([over(1), over(2), over(3), aJob(4)], severalEvents(100));

  await pass(400, { isCertain: false });
  expect(kept()).toEqual([1, 2, 3, 4]);
  expect(memory.events.size).toBe(100);
  await pass(400, { isCertain: false, jobsMax: 2 });
  expect(kept()).toEqual([2, 3, 4]);
  await pass(400);
  expect(kept()).toEqual([4]);
});

/** Events of that kind, without their times. */
const reports = () =>
  [...memory.events.values()].flatMap(({ kind, data }) => (kind === 'retention.removed' ? [data] : []));

test('a tenth of what there is goes for its age per day of monotonic time, and each day says how much', async () => {
  await start([...Array.from({ length: 40 }, (_, index) => over(index + 1)), aJob(41)]);

  await pass(500, { share: 0.1 });
  expect(kept()).toHaveLength(37);
  expect(reports()).toEqual([{ jobs: 4, events: 0, requests: 0, dueJobs: 36, isHeldBack: true }]);
  // A restart begins no other day, however far its clock has gone.
  countedMs += 3_600_000;
  await pass(900, { share: 0.1 });
  expect(kept()).toHaveLength(37);
  countedMs += dayMs;
  await pass(900, { share: 0.1 });
  expect(kept()).toHaveLength(34);
  for (let day = 0; day < 60; day += 1) {
    countedMs += dayMs;
    await pass(900, { share: 0.1 });
  }
  expect(kept()).toEqual([41]);
});

test('events go by a tenth of their bytes, and what is too much goes whatever its age', async () => {
  await start([over(1)], severalEvents(200));
  const ofJob = () => [...memory.events.values()].filter(({ subject }) => subject === jobIdOf(1)).length;

  await pass(31, { share: 0.1 });
  expect(ofJob()).toBe(180);
  countedMs += 3_600_000;
  await pass(31, { share: 0.1, eventsBytes: 100 * bytesOfOne });
  expect(ofJob()).toBeLessThanOrEqual(100);
});
