import { expect, test } from 'vitest';
import { countingBytes } from '../coordinatorFixture.ts';
import { problemOfEvent } from '../events/eventSchemaFixture.ts';
import { aJob } from '../modelFixture.ts';
import { ClusterState } from '../state/state.ts';
import { Memory, MemoryStore } from '../store/memory/memoryStore.ts';
import { type Restored, restoredMeta } from '../store/restored.ts';
import { emptyBatch } from '../store/store.ts';
import { anEvent, attemptsOf, started } from '../store/storeFixture.ts';
import { goOnAfterRestore } from './afterRestore.ts';
import { Terms } from './terms.ts';
import { someProofs } from './testimonyFixture.ts';

const note: Restored = {
  how: 'restored',
  takenAtMs: 1,
  atMs: 2,
  lostEvents: 40,
  lostJobs: 3,
  eventSeqMin: 1_042,
};

async function aRestoredCluster(how: Restored['how'] = 'restored') {
  const memory = new Memory('test');
  const store = new MemoryStore(memory);
  const running = started(aJob(2), 7);
  const newJobs = [aJob(1, { lastAttempt: 3 }), running];
  const events = [anEvent(1, aJob(1).id, 1), anEvent(2, running.id, 1)];
  await store.commit({ ...emptyBatch, newJobs, attempts: attemptsOf(running), events });
  const parts = {
    proofs: someProofs,
    random: countingBytes(),
    monotonicMs: () => 0,
    onWriteFailed: () => {},
  };
  await Terms.begin({ ...parts, store, state: new ClusterState(await store.load()) });
  await store.writeMeta(restoredMeta, JSON.stringify({ ...note, how }));
  const start = async () => {
    const state = new ClusterState(await store.load());
    const restored = await goOnAfterRestore({ state, store, wallMs: () => 5, quietMs: 71_000 });
    return { state, restored, terms: () => Terms.begin({ ...parts, store, state }) };
  };
  return { store, start };
}

test('no number that was given out after the backup is given out again', async () => {
  const { store, start } = await aRestoredCluster();
  const { state, restored, terms } = await start();

  expect(restored).toEqual(note);
  expect(state.attemptFloor).toEqual({ number: 1_007, submitSeqMax: 2 });
  const begun = await terms();
  expect(begun.term).toBeGreaterThan(1_000);
  const [event] = await store.readEvents(2, 10, null);
  expect(event).toMatchObject({ seq: 1_043, id: 'test-1043', kind: 'store.restored', subject: 'cluster' });
  expect(event?.data).toMatchObject({ lostEvents: 40, lostJobs: 3, attemptsFrom: 1_007 });
  expect(event && problemOfEvent(event)).toBeNull();
  expect(state.lastEventSeq).toBe(1_043);
});

test('a store that was accepted goes on in the same way, and says so', async () => {
  const { store, start } = await aRestoredCluster('accepted');
  await start();
  const [event] = await store.readEvents(2, 10, null);
  expect(event?.kind).toBe('store.accepted');
  expect(event && problemOfEvent(event)).toBeNull();
});

test('nothing is started until attempts that nobody remembers have no lease any more', async () => {
  const { start } = await aRestoredCluster();
  const { terms } = await start();
  expect((await terms()).paused()).toMatch(/71 s/);
});

test('the floor outlives restarts, and is raised by the next restore only', async () => {
  const { store, start } = await aRestoredCluster();
  await start();
  const again = await start();
  expect(again.restored).toBeNull();
  expect(again.state.attemptFloor).toEqual({ number: 1_007, submitSeqMax: 2 });
  expect(await store.readEvents(1_043, 10, null)).toEqual([]);

  await store.writeMeta(restoredMeta, JSON.stringify(note));
  expect((await start()).state.attemptFloor.number).toBe(2_007);
});

test('a cluster that was never restored has none', async () => {
  const store = new MemoryStore(new Memory('test'));
  const state = new ClusterState(await store.load());
  expect(await goOnAfterRestore({ state, store, wallMs: () => 5, quietMs: 1 })).toBeNull();
  expect(state.attemptFloor.number).toBe(0);
});
