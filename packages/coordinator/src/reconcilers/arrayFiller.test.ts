import type { ArrayId, JobId } from '@muster/common/ids';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { jobsPerTurn } from '../commands/arrays.ts';
import { startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import { specJson, startJob } from '../rpc/jobFixture.ts';
import { Draft } from '../state/state.ts';
import { Memory, MemoryStore } from '../store/memory/memoryStore.ts';
import { type Batch, StoreError } from '../store/store.ts';

/** Counts what each commit writes, and makes commits wait until `goOn`, or forever, as those of a coordinator that is killed. */
class CountingStore extends MemoryStore {
  readonly sizes: number[] = [];
  commitsLeft = Number.POSITIVE_INFINITY;
  private held: PromiseWithResolvers<void> | null = null;

  override async commit(batch: Batch): Promise<void> {
    if (this.commitsLeft === 0) {
      this.held = Promise.withResolvers();
      await this.held.promise;
    }
    this.commitsLeft -= 1;
    this.sizes.push(batch.newJobs.length + batch.jobs.length);
    await super.commit(batch);
  }

  /** Resolves once a commit waits, and with it the loop. */
  async waits(): Promise<void> {
    await vi.waitFor(() => expect(this.held).not.toBeNull());
  }

  /** @param commits how many are released, including the one that waits */
  goOn(commits = Number.POSITIVE_INFINITY): void {
    this.commitsLeft = commits;
    this.held?.resolve();
    this.held = null;
  }

  /** What waits is never stored. */
  die(): void {
    this.held?.reject(new StoreError('io', 'the coordinator is killed'));
  }
}

let memory: Memory;
let store: CountingStore;
let coordinator: TestCoordinator;
const start = async () => {
  coordinator = await startTestCoordinator({
    memory,
    store: (kept) => {
      store = new CountingStore(kept);
      return store;
    },
  });
};
beforeEach(async () => {
  memory = new Memory('test');
  await start();
});
afterEach(() => coordinator.close());

const size = 4 * jobsPerTurn + 7;
const submit = (requestId = 'r1', arraySize = size) =>
  coordinator.api.submit({ specJson, requestId, arraySize });

test('a large array is stored in pieces, answered once all of it is, and its ids are in order', async () => {
  const { jobIds, arrayId } = await submit();

  expect(jobIds).toHaveLength(size);
  expect(new Set(jobIds).size).toBe(size);
  expect(Math.max(...store.sizes)).toBe(jobsPerTurn);
  const stored = [...memory.jobs.values()].sort((a, b) => a.submitSeq - b.submitSeq);
  expect(stored.map(({ id }) => id)).toEqual(jobIds);
  expect(stored.map(({ array }) => array)).toEqual(jobIds.map((_, index) => ({ id: arrayId, index, size })));
  expect([...memory.arrays.values()]).toMatchObject([{ id: arrayId, filled: size }]);
  expect(coordinator.state.arrays.size).toBe(0);
});

test('an array is completed although the token that submitted it is none any more', async () => {
  store.commitsLeft = 2;
  const submitted = submit();
  await store.waits();
  const rotated = coordinator.api.rotateAdminToken();
  store.goOn();
  await rotated;
  expect((await submitted).jobIds).toHaveLength(size);
  expect(coordinator.state.arrays.size).toBe(0);
});

test('the same request again, at once or later, gets the same answer', async () => {
  const [first, second] = await Promise.all([submit(), submit()]);
  const third = await submit();

  expect(second.jobIds).toEqual(first.jobIds);
  expect(third).toEqual({ ...first, repeatedRequest: true });
  expect(memory.jobs.size).toBe(size);
});

/** Submits, and ends the coordinator after this many commits as a kill would; another one continues from what was stored. */
async function submitAndDie(commits: number): Promise<void> {
  store.commitsLeft = commits;
  const unanswered = submit().catch(() => null);
  await store.waits();
  expect(memory.jobs.size).toBe(commits * jobsPerTurn);
  store.die();
  await coordinator.close();
  await unanswered;
  await start();
}

test.each([1, 2, 3, 4])(
  'killed after %d commits, it is completed by the next coordinator',
  async (commits) => {
    await submitAndDie(commits);
    const before = [...memory.jobs.keys()];

    expect(coordinator.state.arrays.size).toBe(1);
    const { jobIds } = await submit();
    expect(jobIds).toHaveLength(size);
    expect(jobIds.slice(0, before.length)).toEqual(before);
    expect(memory.jobs.size).toBe(size);
  },
);

test('a small array does not wait for a large one', async () => {
  store.commitsLeft = 1;
  const large = submit('r1', 10 * jobsPerTurn);
  await store.waits();
  const commands = vi.spyOn(coordinator.loop, 'run');
  const small = submit('r2', 2 * jobsPerTurn);
  await vi.waitFor(() => expect(commands).toHaveBeenCalled());
  store.goOn();

  const [{ jobIds: ofLarge }, { jobIds: ofSmall }] = await Promise.all([large, small]);
  const storedAt = (id: string | undefined) => [...memory.jobs.keys()].findIndex((stored) => stored === id);
  expect(storedAt(ofSmall.at(-1))).toBeLessThan(storedAt(ofLarge.at(-jobsPerTurn)));
});

test('a stop of an array stops all of it, those included that were not stored yet, a piece per turn', async () => {
  store.commitsLeft = 1;
  const submitted = submit();
  await store.waits();
  const [arrayId] = coordinator.state.arrays.keys();
  const asked = vi.spyOn(coordinator.arrays, 'complete');
  const stopped = coordinator.api.stopJobs([arrayId ?? '']);
  await vi.waitFor(() => expect(asked).toHaveBeenCalledWith(arrayId));
  expect(memory.jobs.size).toBe(jobsPerTurn);
  store.goOn();

  await submitted;
  const { jobs, total } = await stopped;
  expect([jobs.length, total]).toEqual([size, size]);
  expect([...memory.jobs.values()].filter(({ state }) => state.kind !== 'cancelled')).toEqual([]);
  expect(Math.max(...store.sizes)).toBe(jobsPerTurn);
});

test('a turn looks at the first jobs of an array only, and all of them have a reason', async () => {
  const { jobIds, arrayId } = await submit();
  const planned = () => new Draft(coordinator.state).jobsToPlan();
  const all = () => [...planned().behind.values()].reduce((sum, count) => sum + count, planned().jobs.length);

  expect(planned().jobs.length).toBeLessThan(100);
  expect(all()).toBe(size);
  const last = await coordinator.api.getJob(jobIds.at(-1) ?? '');
  expect(last.pending).toMatchObject({ kind: expect.stringMatching(/^(?!scheduling)/) });
  // One that has begun is looked at for itself.
  await startJob(coordinator, jobIds[5] as Parameters<typeof startJob>[1]);
  expect(coordinator.state.groups.singles.size).toBe(1);
  expect(coordinator.state.groups.equals.get(arrayId as ArrayId)?.size).toBe(size - 1);
  expect(all()).toBe(size);
});

test('the jobs of an array name who submitted it, after a restart too', async () => {
  await submitAndDie(2);
  await submit();

  const submitted = [...memory.events.values()].filter(({ kind }) => kind === 'job.submitted');
  expect(submitted).toHaveLength(size);
  expect(new Set(submitted.map(({ by }) => by))).toEqual(new Set(['admin']));
});

const manyJobs = 1_000 + 3 * jobsPerTurn;

test('an array of more than 1,000 jobs is accepted before they are stored, and whatever is submitted then comes after them', async () => {
  store.commitsLeft = 1;
  const submitted = submit('r1', manyJobs);
  const { jobIds, arrayId, arraySize } = await submitted;
  await store.waits();

  expect({ jobIds, arraySize }).toEqual({ jobIds: [], arraySize: manyJobs });
  expect(memory.jobs.size).toBe(jobsPerTurn);
  const { notStored } = await coordinator.api.listJobs({ arrayId: arrayId ?? '' });
  expect(notStored).toBe(manyJobs - jobsPerTurn);
  const behind = coordinator.api.submit({ specJson, requestId: 'r2' });
  store.goOn();
  const [jobId = ''] = (await behind).jobIds;
  await coordinator.arrays.complete(arrayId as ArrayId);

  const places = [...memory.jobs.values()].map(({ submitSeq, array }) => [
    array?.index ?? manyJobs,
    submitSeq,
  ]);
  expect(places.filter(([index, place]) => place !== (index ?? 0) + 1)).toEqual([]);
  expect(memory.jobs.get(jobId as JobId)?.submitSeq).toBe(manyJobs + 1);
  expect((await coordinator.api.listJobs({ arrayId: arrayId ?? '', limit: 1 })).notStored).toBe(0);
});

test('a job whose turn has not come is there for who asks for it, and once only, also for the next coordinator', async () => {
  store.commitsLeft = 1;
  const { arrayId } = await submit('r1', manyJobs);
  await store.waits();
  const commands = vi.spyOn(coordinator.loop, 'run');
  const asked = coordinator.api.getJob(`${arrayId}[${manyJobs - 1}]`);
  await vi.waitFor(() => expect(commands).toHaveBeenCalled());
  store.goOn(2);
  const last = await asked;
  expect(last).toMatchObject({ state: 'queued', array: { index: manyJobs - 1 } });
  await store.waits();
  store.die();
  await coordinator.close();
  await start();

  await coordinator.arrays.complete(arrayId as ArrayId);
  const indexes = [...memory.jobs.values()].map(({ array }) => array?.index ?? -1).sort((a, b) => a - b);
  expect(indexes).toEqual(Array.from({ length: manyJobs }, (_, index) => index));
  expect(await coordinator.api.getJob(`${arrayId}[${manyJobs - 1}]`)).toMatchObject({ id: last.id });
  await expect(coordinator.api.getJob(`${arrayId}[${manyJobs}]`)).rejects.toMatchObject({
    code: 'not_found',
  });
});
