import { encodeJobSpec } from '@muster/common/spec/serialize';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { tempDir } from '../../../../../test/support/services.ts';
import type { Job } from '../../model.ts';
import { aJob, aSpec } from '../../modelFixture.ts';
import { specText } from '../../spec/ownSpec.ts';
import { ClusterState } from '../../state/state.ts';
import { emptyBatch } from '../store.ts';
import { anArray } from '../storeFixture.ts';
import { openSqliteStore, type SqliteStore } from './sqliteStore.ts';

let dataDir: string;
let store: SqliteStore;
beforeEach(() => {
  dataDir = tempDir('specs').path;
  store = openSqliteStore(dataDir, () => 'c0ffee');
});
afterEach(() => store.close());

const big = (mark: string) =>
  aSpec({ command: 'true', env: { BIG: mark.repeat(100_000) }, labels: { mark } });

/** Names of the fields that are read from the store when they are asked for. */
function storedFieldsOf({ spec }: Job): readonly string[] {
  const fields = Object.entries(Object.getOwnPropertyDescriptors(spec));
  return fields.filter(([, { get }]) => get !== undefined).map(([name]) => name);
}

async function reopened(): Promise<ClusterState> {
  await store.close();
  store = openSqliteStore(dataDir, () => '');
  return new ClusterState(await store.load());
}

it('a large spec of an active job is in memory without its large fields, and complete for all who ask', async () => {
  const state = new ClusterState(await store.load());
  const specs = [big('a'), big('b'), aSpec({ command: 'small' })];
  const jobs = specs.map((spec, index) => aJob(index + 1, { spec }));
  await store.commit({ ...emptyBatch, newJobs: jobs });
  for (const job of jobs) state.noteJob(job);
  const requireComplete = ({ jobs: known }: ClusterState) => {
    const found = [...known.values()];
    expect(found.map(storedFieldsOf)).toEqual([['command', 'args', 'env'], ['command', 'args', 'env'], []]);
    expect(found.map(({ spec }) => spec.labels['mark'])).toEqual(['a', 'b', undefined]);
    expect(found.map(({ spec }) => ({ ...spec }))).toEqual(specs);
    expect(found.map(({ spec }) => specText(spec))).toEqual(specs.map(encodeJobSpec));
  };
  requireComplete(state);
  requireComplete(await reopened());
});

it('a change of such a job keeps its spec, and a job that runs it again has one of its own', async () => {
  const state = new ClusterState(await store.load());
  const job = aJob(1, { spec: big('a') });
  await store.commit({ ...emptyBatch, newJobs: [job] });
  state.noteJob(job);
  const kept = state.jobs.get(job.id);
  if (kept === undefined) throw new Error('it is not there');
  const again = { ...aJob(2, { requeuedFrom: job.id }), spec: kept.spec };
  const ended: Job = {
    ...kept,
    state: { kind: 'cancelled', reason: '', endedAtMs: 1 } as unknown as Job['state'],
  };
  await store.commit({ ...emptyBatch, newJobs: [again], jobs: [ended] });
  state.noteJob(again);
  state.noteJob(ended);
  expect((await store.readJob(job.id))?.job.spec).toEqual(big('a'));
  const next = (await reopened()).jobs.get(again.id);
  expect({ ...next?.spec }).toEqual(big('a'));
});

it('jobs of an array share one spec, which is read by the array', async () => {
  const state = new ClusterState(await store.load());
  const spec = big('a');
  const array = { ...anArray(3), spec };
  const jobs = [0, 1, 2].map((index) => aJob(index + 1, { spec, array: { id: array.id, index, size: 3 } }));
  await store.commit({ ...emptyBatch, newArrays: [array], newJobs: jobs });
  for (const job of jobs) state.noteJob(job);
  const requireShared = ({ jobs: known }: ClusterState) => {
    const found = [...known.values()];
    expect(new Set(found.map((job) => job.spec)).size).toBe(1);
    expect(found.map(storedFieldsOf)[0]).toEqual(['command', 'args', 'env']);
    expect(found[2]?.spec.env).toEqual(spec.env);
  };
  requireShared(state);
  requireShared(await reopened());
});
