import { expect, test, vi } from 'vitest';
import { aJob, anAttempt, aTask, jobIdOf, nodeNameOf } from '../modelFixture.ts';
import { type ClusterState, Draft, ClusterState as State } from '../state.ts';
import { Memory, MemoryStore } from '../store/memory/memoryStore.ts';
import { Terms } from './terms.ts';

const node = nodeNameOf('node-1');
const report = (job: number, attempt: number) => ({ task: { jobId: jobIdOf(job), attempt, nodeRank: 0 } });

/** A store with a queued job that has had two attempts, and a running one in its first. */
async function aCluster(memory = new Memory('test')) {
  const attempt = anAttempt(1, { state: 'running', tasks: [aTask(0, { state: 'running' })] });
  memory.jobs.set(jobIdOf(1), aJob(1, { lastAttempt: 2 }));
  memory.jobs.set(jobIdOf(2), aJob(2, { lastAttempt: 1, state: { kind: 'running', attempt } }));
  memory.attempts.set(jobIdOf(2), new Map([[1, attempt]]));
  const store = new MemoryStore(memory);
  const state = new State(await store.load());
  const clock = { nowMs: 0 };
  const onWriteFailed = (error: unknown) => {
    throw error;
  };
  const begin = () => Terms.begin({ store, state, monotonicMs: () => clock.nowMs, onWriteFailed });
  return { memory, store, state, clock, begin, terms: await begin() };
}

function runOn(state: ClusterState, store: MemoryStore) {
  return async (command: (draft: Draft, nowMs: number) => void) => {
    const draft = new Draft(state);
    command(draft, 0);
    await store.commit(draft.toBatch());
    draft.apply();
  };
}

test('each start is another term, stored before it is used', async () => {
  const { terms, begin, memory } = await aCluster();
  expect(terms.term).toBe(1);
  expect(JSON.parse(memory.meta.get('terms') ?? '')).toMatchObject({ term: 1 });
  expect((await begin()).term).toBe(2);
});

test.each([
  ['of what we know', { highestTerm: 1, observed: [report(1, 2), report(2, 1)] }, null],
  ['that it is new', { highestTerm: 0, observed: [] }, null],
  ['of a later term', { highestTerm: 7, observed: [] }, /node-1 was welcomed in term 7 and this is term 1/],
  [
    'of a later attempt',
    { highestTerm: 1, observed: [report(1, 3)] },
    /node-1 has attempt 3 of job_000000000001/,
  ],
  ['of a job nobody knows', { highestTerm: 1, observed: [report(9, 1)] }, /node-1 has job_000000000009/],
])('an agent that tells %s', async (_, account, expected) => {
  const { terms } = await aCluster();
  terms.agentSaid({ node, ...account });
  if (expected === null) {
    expect(terms.paused()).toBeNull();
    return;
  }
  expect(terms.paused()).toMatch(expected);
  expect(terms.paused()).toMatch(/muster store advance$/);
});

test('that the store is old outlives restarts, in which our own term grows past what was heard', async () => {
  const { terms, begin, memory } = await aCluster();
  terms.agentSaid({ node, highestTerm: 2, observed: [] });
  await vi.waitFor(() => expect(JSON.parse(memory.meta.get('terms') ?? '').ahead).not.toBeNull());
  await begin();
  const third = await begin();
  expect(third.term).toBe(3);
  expect(third.paused()).not.toBeNull();
});

test('an advance goes past all terms and attempts that were heard, and waits for their leases', async () => {
  const { terms, state, store, clock, memory } = await aCluster();
  terms.agentSaid({ node, highestTerm: 7, observed: [report(1, 5)] });
  terms.agentSaid({ node: nodeNameOf('node-2'), highestTerm: 9, observed: [report(2, 3), report(9, 1)] });
  await terms.advance(10_000, runOn(state, store), 'admin');

  expect(terms.term).toBe(10);
  expect(state.jobs.get(jobIdOf(1))).toMatchObject({ lastAttempt: 5, state: { kind: 'queued' } });
  expect(state.jobs.get(jobIdOf(2)), 'the attempt it had is over').toMatchObject({
    lastAttempt: 3,
    state: { kind: 'queued' },
  });
  expect([...memory.events.values()].at(-1)).toMatchObject({
    kind: 'store.advanced',
    data: { term: 10, by: 'admin', attempts: { [jobIdOf(1)]: 5, [jobIdOf(2)]: 3 }, strays: [jobIdOf(9)] },
  });
  expect(terms.paused()).toMatch(/until their leases end in 10 s/);
  clock.nowMs = 10_000;
  expect(terms.paused()).toBeNull();
  expect(terms.run()).toHaveLength(1);
});

test('what was gone past is no news when the same agents say it again', async () => {
  const { terms, state, store, clock } = await aCluster();
  const account = { node, highestTerm: 7, observed: [report(1, 5), report(9, 1)] };
  terms.agentSaid(account);
  await terms.advance(10_000, runOn(state, store), 'admin');
  terms.agentSaid(account);
  clock.nowMs = 10_000;
  expect(terms.paused()).toBeNull();
  terms.agentSaid({ ...account, highestTerm: 9 });
  expect(terms.paused()).toMatch(/term 9 and this is term 8/);
});

test('a restart in the wait after an advance begins it anew', async () => {
  const { terms, state, store, clock, begin } = await aCluster();
  terms.agentSaid({ node, highestTerm: 7, observed: [] });
  await terms.advance(10_000, runOn(state, store), 'admin');
  clock.nowMs = 9_000;
  const again = await begin();
  clock.nowMs = 18_999;
  expect(again.paused()).not.toBeNull();
  clock.nowMs = 19_000;
  await Promise.all(again.run());
  expect((await begin()).paused()).toBeNull();
});

test('a store that is not old is not advanced, and nothing waits', async () => {
  const { terms, state, store } = await aCluster();
  const advanced = terms.advance(10_000, runOn(state, store), 'admin');
  await expect(advanced).rejects.toThrow(
    /no node knows of more than the store does.*once the nodes are back/,
  );
  expect(terms.term).toBe(1);
  expect(terms.paused()).toBeNull();
  expect(state.jobs.get(jobIdOf(2))?.state.kind).toBe('running');
});
