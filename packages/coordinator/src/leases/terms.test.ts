import type { JobId, TaskRef } from '@muster/common/ids';
import { expect, test, vi } from 'vitest';
import { countingBytes } from '../coordinatorFixture.ts';
import { aJob, aNode, anAttempt, aTask, jobIdOf, nodeNameOf } from '../modelFixture.ts';
import { type ClusterState, Draft, ClusterState as State } from '../state/state.ts';
import { Memory, MemoryStore } from '../store/memory/memoryStore.ts';
import { Terms } from './terms.ts';
import { jumpMax, straysMax } from './testimony.ts';
import { type AccountFields, accountOf, someProofs } from './testimonyFixture.ts';

const first = nodeNameOf('node-1');
const second = nodeNameOf('node-2');
const third = nodeNameOf('node-3');
const ref = (job: number, attempt: number): TaskRef => ({ jobId: jobIdOf(job), attempt, nodeRank: 0 });
/** Jobs of these stores have been submitted up to number 2. */
const lostSeq = 9;

/** A store of three nodes with a queued job that has had two attempts, and one that runs on the first node. */
async function aCluster(memory = new Memory('test')) {
  const attempt = anAttempt(1, { state: 'running', tasks: [aTask(0, { state: 'running', node: first })] });
  memory.jobs.set(jobIdOf(1), aJob(1, { lastAttempt: 2 }));
  memory.jobs.set(jobIdOf(2), aJob(2, { lastAttempt: 1, state: { kind: 'running', attempt } }));
  memory.attempts.set(jobIdOf(2), new Map([[1, attempt]]));
  for (const node of [first, second, third]) memory.nodes.set(node, aNode(node));
  for (const seq of [1, 2]) memory.jobsBySubmitSeq.set(seq, jobIdOf(seq));
  const store = new MemoryStore(memory);
  const state = new State(await store.load());
  const clock = { nowMs: 0 };
  const onWriteFailed = (error: unknown) => {
    throw error;
  };
  const proofs = someProofs;
  const random = countingBytes();
  const begin = () =>
    Terms.begin({ store, state, proofs, random, monotonicMs: () => clock.nowMs, onWriteFailed });
  const terms = await begin();
  const check = (what: AccountFields) => terms.checkAccount(accountOf(what));
  const advance = () => terms.advance(10_000, runOn(state, store), 'admin');
  return { memory, store, state, clock, begin, terms, check, advance };
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

test('an agent that another coordinator on a copy of the store has welcomed holds new work back', async () => {
  const { terms, begin, advance } = await aCluster();
  const own = { ...accountOf({ highestTerm: 1 }), termProof: terms.proofFor(first) };
  expect([terms.checkAccount(own), terms.paused()]).toEqual([null, null]);
  const later = await begin();
  expect([later.checkAccount(own), later.paused()]).toEqual([null, null]);
  const forged = { ...own, termProof: 'other.xxxxxxxxxxxxxxxxxxxxxx' };
  expect([terms.checkAccount(forged), terms.paused()]).toEqual([null, null]);
  const other = { ...own, termProof: someProofs.ofTerm(first, 1, 'other') };
  terms.checkAccount(other);
  expect(terms.paused()).toMatch(
    /node-1 was welcomed in term 1 by another coordinator.*muster store advance/,
  );
  await advance();
  expect(terms.paused()).toMatch(/the store was advanced/);
});

test.each<[string, AccountFields, RegExp | null]>([
  [
    'of what we know',
    {
      highestTerm: 1,
      tasks: [
        [ref(1, 2), 1],
        [ref(2, 1), 2],
      ],
    },
    null,
  ],
  ['that it is new', {}, null],
  ['of a job that has ended and was removed from the store', { tasks: [[ref(9, 1), 2]] }, null],
  ['of a later term', { highestTerm: 7 }, /node-1 was welcomed in term 7 and this is term 1/],
  [
    'of a later attempt',
    { highestTerm: 1, tasks: [[ref(1, 3), 1]] },
    /node-1 has attempt 3 of job_000000000001/,
  ],
  [
    'of a job submitted later',
    { highestTerm: 1, tasks: [[ref(9, 1), lostSeq]] },
    /node-1 has job_000000000009/,
  ],
])('an agent that proves to be told %s', async (_, account, expected) => {
  const { terms, check } = await aCluster();
  expect(check(account), 'it is believed').toBeNull();
  if (expected === null) {
    expect(terms.paused()).toBeNull();
    return;
  }
  expect(terms.paused()).toMatch(expected);
  expect(terms.paused()).toMatch(/muster store advance$/);
});

test.each<[string, AccountFields, RegExp]>([
  [
    'a term',
    { highestTerm: 1_000_000, isTermProven: false },
    /term 1000000 and this is term 1, and cannot prove it/,
  ],
  ['a later attempt', { tasks: [[ref(1, 3), null]] }, /attempt 3 of job_000000000001, .*cannot prove it/],
  ['a job of nobody', { tasks: [[ref(9, 1), null]] }, /job_000000000009, .*unknown to the store, and cannot/],
])(
  'one that claims %s without proof is in doubt, and nobody else waits for that',
  async (_, account, claim) => {
    const { terms, check, memory } = await aCluster();
    const stored = memory.meta.get('terms');
    expect(check(account)).toMatch(claim);
    expect(terms.paused()).toBeNull();
    expect(memory.meta.get('terms'), 'and nothing is stored of it').toBe(stored);
    expect(check({}), 'until it claims that no more').toBeNull();
  },
);

test('a proof counts for the node it was given to, the task it was given for, and near the store only', async () => {
  const { terms } = await aCluster();
  const account = accountOf({ node: second, highestTerm: 7, tasks: [[ref(1, 3), 1]] });
  expect(terms.checkAccount({ ...account, node: first })).not.toBeNull();
  const [proof = ''] = account.proofs.values();
  const other = { ...accountOf({ tasks: [[ref(1, 4), null]] }), proofs: new Map([[taskKeyOf(1, 4), proof]]) };
  expect(terms.checkAccount(other)).not.toBeNull();
  expect(terms.checkAccount(accountOf({ highestTerm: jumpMax + 2 }))).not.toBeNull();
  expect(terms.checkAccount(accountOf({ tasks: [[ref(1, jumpMax + 3), 1]] }))).not.toBeNull();
  expect(terms.paused()).toBeNull();
});

const taskKeyOf = (job: number, attempt: number) => `${jobIdOf(job)}.${attempt}.0` as never;

test('what most nodes say is believed without proof: a store from before there were proofs', async () => {
  const { terms, check, advance, state } = await aCluster();
  check({ node: first, highestTerm: 7, isTermProven: false });
  expect(terms.paused()).toBeNull();
  check({
    node: second,
    tasks: [
      [ref(1, 5), null],
      [ref(9, 1), null],
    ],
  });
  expect(terms.paused()).toMatch(/node-1 reports that it was welcomed in term 7.*muster store advance$/);
  expect(await advance()).toEqual([first, second]);
  expect(terms.term).toBe(8);
  expect(state.jobs.get(jobIdOf(1))?.lastAttempt).toBe(5);
  expect(
    check({
      node: second,
      tasks: [
        [ref(1, 5), null],
        [ref(9, 1), null],
      ],
    }),
    'was accepted',
  ).toBeNull();
  expect(check({ node: third, tasks: [[ref(9, 1), null]] }), 'of that node alone').not.toBeNull();
});

test('that the store is old outlives restarts, in which our own term grows past what was received', async () => {
  const { check, begin, memory } = await aCluster();
  check({ highestTerm: 2 });
  await vi.waitFor(() => expect(JSON.parse(memory.meta.get('terms') ?? '').ahead).not.toBeNull());
  await begin();
  const latest = await begin();
  expect(latest.term).toBe(3);
  expect(latest.paused()).not.toBeNull();
});

test('an advance goes past all terms and attempts that were proven, and waits for their leases', async () => {
  const { terms, state, check, advance, clock, memory } = await aCluster();
  check({ highestTerm: 7, tasks: [[ref(1, 5), 1]] });
  check({
    node: second,
    highestTerm: 9,
    tasks: [
      [ref(2, 3), 2],
      [ref(9, 1), lostSeq],
    ],
  });
  await advance();

  expect(terms.term).toBe(10);
  expect(state.jobs.get(jobIdOf(1))).toMatchObject({ lastAttempt: 5, state: { kind: 'queued' } });
  expect(state.jobs.get(jobIdOf(2)), 'the attempt it had is over').toMatchObject({
    lastAttempt: 3,
    state: { kind: 'queued' },
  });
  expect([...memory.events.values()].at(-1)).toMatchObject({
    kind: 'store.advanced',
    data: { term: 10, by: 'admin', attempts: { [jobIdOf(1)]: 5, [jobIdOf(2)]: 3 } },
  });
  expect(terms.paused()).toMatch(/unknown attempts to expire in 10 s/);
  clock.nowMs = 10_000;
  expect(terms.paused()).toBeNull();
  expect(terms.run()).toHaveLength(1);
});

test('what was gone past changes nothing when the same agents say it again, here and after a restart', async () => {
  const { terms, check, advance, clock, begin } = await aCluster();
  const account: AccountFields = {
    highestTerm: 7,
    tasks: [
      [ref(1, 5), 1],
      [ref(9, 1), lostSeq],
    ],
  };
  check(account);
  await advance();
  check(account);
  clock.nowMs = 10_000;
  expect(terms.paused()).toBeNull();
  await Promise.all(terms.run());
  const again = await begin();
  again.checkAccount(accountOf(account));
  expect(again.paused()).toBeNull();
  again.checkAccount(accountOf({ ...account, highestTerm: 10 }));
  expect(again.paused()).toMatch(/term 10 and this is term 9/);
});

test("a liar's attempts of others' jobs end nothing when the store is advanced, and its term stays near", async () => {
  const { terms, check, advance, state } = await aCluster();
  const before = state.jobs.get(jobIdOf(2));
  const lie: AccountFields = {
    node: second,
    highestTerm: 2 ** 52,
    tasks: [[ref(2, 4_000_000_000), null]],
    isTermProven: false,
  };
  check(lie);
  await advance();
  expect(state.jobs.get(jobIdOf(2)), 'it runs on as it did').toBe(before);
  expect(terms.term).toBeLessThanOrEqual(jumpMax + 2);
  expect(check(lie), 'and the liar is in doubt still').not.toBeNull();
});

test('strays without end cost a bounded number of steps and bytes, also after an advance', async () => {
  const { terms, check, advance, memory, state } = await aCluster();
  const strays = (from: number): (readonly [TaskRef, null])[] =>
    Array.from({ length: 100_000 }, (_, index) => [ref(from + index, 1), null] as const);
  const lookedUp = vi.spyOn(state.jobs, 'get');
  check({ node: second, tasks: strays(1_000_000) });
  const steps = lookedUp.mock.calls.length;
  expect(steps).toBeLessThanOrEqual(4_096);
  await advance();
  lookedUp.mockClear();
  for (const from of [1_000_000, 2_000_000]) check({ node: second, tasks: strays(from) });
  expect(lookedUp).toHaveBeenCalledTimes(2 * steps);
  await advance();
  const accepted = JSON.parse(memory.meta.get('accepted_strays/node-2') ?? '') as JobId[];
  expect(accepted).toHaveLength(straysMax);
  expect(terms.paused(), 'an advance was asked for').toMatch(/unknown attempts to expire/);
});

test('a restart in the wait after an advance begins it anew', async () => {
  const { check, advance, clock, begin } = await aCluster();
  check({ highestTerm: 7 });
  await advance();
  clock.nowMs = 9_000;
  const again = await begin();
  clock.nowMs = 18_999;
  expect(again.paused()).not.toBeNull();
  clock.nowMs = 19_000;
  await Promise.all(again.run());
  expect((await begin()).paused()).toBeNull();
});

test('a store that is not old is not advanced, and nothing waits', async () => {
  const { terms, state, advance } = await aCluster();
  await expect(advance()).rejects.toThrow(/no node knows more than the store.*once the nodes are back/);
  expect(terms.term).toBe(1);
  expect(terms.paused()).toBeNull();
  expect(state.jobs.get(jobIdOf(2))?.state.kind).toBe('running');
});
