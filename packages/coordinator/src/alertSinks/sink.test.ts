import { silentLogger } from '@muster/common/log';
import { expect, onTestFinished, test, vi } from 'vitest';
import { CommitNotifier } from '../events/notices.ts';
import type { StoredEvent } from '../model.ts';
import { someMs } from '../modelFixture.ts';
import { Memory, MemoryStore } from '../store/memory/memoryStore.ts';
import { emptyBatch } from '../store/store.ts';
import type { AlertNotification } from './notification.ts';
import { type AlertSink, type DeliveryResult, RefusedNotification, sinkCursorName } from './sink.ts';
import { startSinks } from './start.ts';

const { committed, store } = {
  committed: new CommitNotifier(),
  store: new MemoryStore(new Memory('c0ffee')),
};
let seq = 0;

async function happens(
  kind: StoredEvent['kind'],
  fields: Readonly<Record<string, unknown>> = {},
): Promise<string> {
  seq += 1;
  const data = {
    alert: 'a',
    owner: null,
    episode: 'a-1',
    of: 'node-1',
    kind: 'node',
    name: 'node-1',
    project: null,
    severity: 'info',
    message: 'm',
    labels: {},
    firedAtMs: someMs,
    silenced: false,
    ...fields,
  };
  const id = `c0ffee-${seq}`;
  const event = {
    kind,
    subject: 'cluster',
    data,
    seq,
    id,
    subjectSeq: seq,
    timeMs: someMs,
    by: '',
    peer: '',
  };
  await store.commit({ ...emptyBatch, events: [event] });
  committed.notify();
  return id;
}

/** @param answer throws what the receiver would cause */
function start(identity: string, answer: (notification: AlertNotification) => void, nowMs = someMs) {
  const delivered: string[] = [];
  const results: DeliveryResult[] = [];
  const sink: AlertSink = {
    kind: 'webhook',
    shown: 'https://receiver',
    identity,
    async deliver(notification) {
      answer(notification);
      delivered.push(notification.id);
    },
  };
  const running = startSinks([sink], {
    store,
    committed,
    log: silentLogger,
    lastEventSeq: () => seq,
    wallMs: () => nowMs,
    onDelivery: (_kind, result) => results.push(result),
  });
  onTestFinished(() => running.close());
  return { delivered, results, running };
}

const noAnswer = () => {};

// The first in this file: nothing has happened yet.
test('a sink of a new cluster gets what it did not take before the coordinator was killed', async () => {
  const cursor = sinkCursorName({ kind: 'webhook', identity: 'new' });
  const { running } = start('new', () => {
    throw new Error('503');
  });
  await vi.waitFor(async () => expect(await store.readMeta(cursor)).toBe('0'));
  const id = await happens('alert.firing');
  await running.close();
  const second = start('new', noAnswer);
  await vi.waitFor(() => expect(second.delivered).toEqual([id]));
});

test('a sink gets what happens after its first start, in order, and nothing twice over a restart', async () => {
  await happens('alert.firing');
  const first = start('order', noAnswer);
  await vi.waitFor(async () => expect(await first.running.deliveredSeq()).toBe(seq));
  const ids = [await happens('alert.firing'), await happens('alert.resolved')];
  await happens('alert.firing', { silenced: true });
  await happens('alert.acknowledged');
  await vi.waitFor(() => expect(first.delivered).toEqual(ids));
  await first.running.close();
  const later = await happens('alert.repeated');
  const second = start('order', noAnswer);
  await vi.waitFor(() => expect(second.delivered).toEqual([later]));
});

test('what a receiver does not take is tried again, and those behind it wait', async () => {
  let failures = 2;
  const { delivered, results, running } = start('retry', () => {
    if (failures-- > 0) throw new Error('503');
  });
  await vi.waitFor(async () => expect(await running.deliveredSeq()).toBe(seq));
  const before = seq;
  const ids = [await happens('alert.firing'), await happens('alert.resolved')];
  await vi.waitFor(async () => expect(await running.deliveredSeq()).toBe(before));
  await vi.waitFor(() => expect(delivered).toEqual(ids), { timeout: 60_000 });
  expect(results).toEqual(['failed', 'failed', 'delivered', 'delivered']);
  await vi.waitFor(async () => expect(await running.deliveredSeq()).toBe(seq));
});

test('what a receiver refuses for good, or has not taken for a day, is given up, and what is behind it follows', async () => {
  const { delivered, results, running } = start('refuse', ({ status }) => {
    if (status === 'firing') throw new RefusedNotification('400');
  });
  await vi.waitFor(async () => expect(await running.deliveredSeq()).toBe(seq));
  await happens('alert.firing');
  const resolved = await happens('alert.resolved');
  await vi.waitFor(() => expect(delivered).toEqual([resolved]));
  expect(results).toEqual(['given_up', 'delivered']);

  const late = start(
    'late',
    ({ status }) => {
      if (status === 'firing') throw new Error('503');
    },
    someMs + 25 * 3_600_000,
  );
  await vi.waitFor(async () => expect(await late.running.deliveredSeq()).toBe(seq));
  await happens('alert.firing');
  const end = await happens('alert.resolved');
  await vi.waitFor(() => expect(late.delivered).toEqual([end]));
  expect(late.results).toEqual(['given_up', 'delivered']);
});

test('closing does not wait for a receiver that never answers', async () => {
  const { running } = start('hangs', noAnswer);
  await expect(running.close()).resolves.toBeUndefined();
});
