import type { JobId } from '@muster/common/ids';
import { afterEach, expect, test, vi } from 'vitest';
import { jobIdOf, someMs } from '../modelFixture.ts';
import { Memory, MemoryStore } from '../store/memory/memoryStore.ts';
import type { Store } from '../store/store.ts';
import { anEvent } from '../store/storeFixture.ts';
import { cloudEventOf, noticeView } from './cloudEvents.ts';
import { CommitNotifier, Notices } from './notices.ts';
import { type WatchOptions, watchEvents } from './watch.ts';

const abort = { controller: new AbortController() };
afterEach(() => {
  abort.controller.abort();
  abort.controller = new AbortController();
});

/** A log of events, and what a watch of it has yielded. */
class Log {
  private readonly memory = new Memory('test');
  readonly notifier = new CommitNotifier();
  readonly notices = new Notices(this.notifier);
  /** Events are committed at this moment of a read: before what it returns was looked up, or after. */
  beforeRead = () => {};
  afterRead = () => {};

  add(subject: JobId | string = jobIdOf(1)): void {
    const seq = this.memory.events.size + 1;
    this.memory.events.set(seq, anEvent(seq, subject, seq));
    this.notifier.notify([subject]);
  }

  events(options: Partial<WatchOptions> = {}): ReturnType<typeof watchEvents> {
    const store = new MemoryStore(this.memory);
    const readEvents: Store['readEvents'] = async (since, limit, subject) => {
      this.beforeRead();
      const events = await store.readEvents(since, limit, subject);
      this.afterRead();
      return events;
    };
    const all = { sinceSeq: 0, follow: true, subject: null, ...options };
    const { notifier, notices } = this;
    return watchEvents({ store: { readEvents }, notifier, notices }, all, abort.controller.signal);
  }

  watch(options: Partial<WatchOptions> = {}) {
    const seqs: number[] = [];
    const noticed: { readonly position: number; readonly text: unknown }[] = [];
    const done = (async () => {
      for await (const event of this.events(options)) {
        if ('seq' in event) seqs.push(event.seq);
        else noticed.push({ position: event.position, text: event.notice.data['text'] });
      }
      return seqs;
    })();
    return { seqs, noticed, done };
  }
}

test('what is stored is read in order from a position on, over pages of every length', async () => {
  for (const count of [0, 1, 500, 501, 1_000]) {
    const log = new Log();
    for (let index = 0; index < count; index += 1) log.add();
    const all = Array.from({ length: count }, (_, index) => index + 1);
    expect(await log.watch({ follow: false }).done).toEqual(all);
    expect(await log.watch({ follow: false, sinceSeq: 499 }).done).toEqual(all.slice(499));
  }
});

test('an event is not slept through, whether it comes before, during or after a look', async () => {
  const log = new Log();
  let left = 50;
  const sometimes = (remainder: number) => () => {
    if (left > 0 && left % 2 === remainder) {
      left -= 1;
      log.add();
    }
  };
  log.beforeRead = sometimes(0);
  log.afterRead = sometimes(1);
  const { seqs } = log.watch();
  await vi.waitFor(() => expect(seqs).toHaveLength(50));
  log.add();
  await vi.waitFor(() => expect(seqs).toEqual(Array.from({ length: 51 }, (_, index) => index + 1)));
});

test('a watch of one subject shows its events only, and others do not even wake it', async () => {
  const log = new Log();
  log.add('node-1');
  const { seqs } = log.watch({ subject: 'node-1' });
  await vi.waitFor(() => expect(seqs).toEqual([1]));
  const read = vi.fn<() => void>();
  log.beforeRead = read;
  log.add('node-2');
  await new Promise((resolve) => setImmediate(resolve));
  expect(read).not.toHaveBeenCalled();
  log.add('node-1');
  await vi.waitFor(() => expect(seqs).toEqual([1, 3]));
});

const lineOf = (subject: string, text: string) => ({
  kind: 'training.stats' as const,
  subject,
  data: { text },
});

test('a notice is sent to those who follow its subject or all, once, and takes no number', async () => {
  const log = new Log();
  log.add('node-1');
  log.notices.publish([lineOf('node-1', 'before')], someMs);
  const all = log.watch();
  const one = log.watch({ subject: 'node-1' });
  const other = log.watch({ subject: 'node-2' });
  await vi.waitFor(() => expect([all.seqs, one.seqs]).toEqual([[1], [1]]));
  log.notices.publish([lineOf('node-1', 'a'), lineOf('node-2', 'b')], someMs);
  await vi.waitFor(() => expect(other.noticed).toEqual([{ position: 0, text: 'b' }]));
  log.add('node-1');
  await vi.waitFor(() =>
    expect([all.seqs, one.seqs]).toEqual([
      [1, 2],
      [1, 2],
    ]),
  );

  expect(all.noticed).toEqual([
    { position: 1, text: 'a' },
    { position: 1, text: 'b' },
  ]);
  expect(one.noticed).toEqual([{ position: 1, text: 'a' }]);
  expect(await log.watch({ follow: false }).done, 'no watch of the past has them').toEqual([1, 2]);
});

test('of notices that nobody took the newest of each subject is kept', async () => {
  const log = new Log();
  for (let index = 0; index < 1_000; index += 1) log.notices.publish([lineOf('node-1', `${index}`)], someMs);
  expect(log.notices.after(0, null).map(({ data }) => data['text'])).toEqual(['999']);
  log.notices.publish([lineOf('node-2', 'the other is over')], someMs);
  expect(log.notices.after(0, 'node-1')).toEqual([]);
});

test('a slow reader makes nobody read ahead for it', async () => {
  const log = new Log();
  for (let index = 0; index < 1_200; index += 1) log.add();
  const read = vi.fn<() => void>();
  log.beforeRead = read;
  const events = log.events();
  for (let count = 0; count < 200; count += 1) await events.next();
  expect(read).toHaveBeenCalledTimes(1);
});

test('a watch from the beginning of a long log yields between its pages', async () => {
  const log = new Log();
  for (let index = 0; index < 4_000; index += 1) log.add();
  let rounds = 0;
  let isOver = false;
  const others = () => {
    rounds += 1;
    if (!isOver) setImmediate(others);
  };
  others();

  expect(await log.watch({ follow: false }).done).toHaveLength(4_000);
  isOver = true;
  expect(rounds).toBeGreaterThanOrEqual(20);
});

test('a watch ends when its reader goes away', async () => {
  const { done } = new Log().watch();
  await new Promise((resolve) => setImmediate(resolve));
  abort.controller.abort();
  expect(await done).toEqual([]);
});

test('a notification wakes those who wait for its subject or for any, once', async () => {
  const notifier = new CommitNotifier();
  const { signal } = abort.controller;
  const woken: string[] = [];
  for (const subject of [null, 'a', 'b'])
    void notifier.next(signal, subject).then(() => woken.push(subject ?? 'any'));
  notifier.notify(['a', 'a', 'c']);
  await new Promise((resolve) => setImmediate(resolve));
  expect(woken).toEqual(['any', 'a']);
  notifier.notify();
  await new Promise((resolve) => setImmediate(resolve));
  expect(woken).toEqual(['any', 'a', 'b']);
});

test('an event as a CloudEvent', () => {
  expect(cloudEventOf('c1', anEvent(7, 'job_1', 3))).toEqual({
    specversion: '1.0',
    id: 'cluster-7',
    source: '/muster/c1',
    type: 'muster.job.submitted',
    subject: 'job_1',
    time: new Date(someMs + 7).toISOString(),
    datacontenttype: 'application/json',
    sequence: '7',
    subjectsequence: '3',
    by: 'admin',
    peer: '127.0.0.1',
    data: { seq: 7 },
  });
});

test('an event without a caller has neither caller nor address as a CloudEvent', () => {
  const event = cloudEventOf('c1', { ...anEvent(7, 'job_1', 3), by: '', peer: '' });
  expect(event).toMatchObject({ type: 'muster.job.submitted' });
  expect(event).not.toHaveProperty('by');
  expect(event).not.toHaveProperty('peer');
});

test('a notice as an event shows where its watch goes on, and as a CloudEvent no sequence', () => {
  const notice = { ...lineOf('job_1', 'a'), number: 3, timeMs: someMs };
  const { cloudEvent, ...event } = noticeView('c1', { notice, position: 41 });
  expect(event).toMatchObject({ seq: 41, subjectSeq: 0, kind: 'training.stats', subject: 'job_1' });
  expect(cloudEvent).toEqual({
    specversion: '1.0',
    id: event.id,
    source: '/muster/c1',
    type: 'muster.training.stats',
    subject: 'job_1',
    time: new Date(someMs).toISOString(),
    datacontenttype: 'application/json',
    data: { text: 'a' },
  });
});
