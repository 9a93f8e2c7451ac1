/** What is asked while heartbeats wait reads an index: its cost is that of its answer, not of all that is stored. */
import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { tempDir } from '../../../../../test/support/services.ts';
import { aJob, jobIdOf } from '../../modelFixture.ts';
import { migrationsFrom } from '../schema.ts';
import {
  selectEvents,
  selectEventsOfSubject,
  selectPositions,
  selectSubjectPositions,
} from '../statements/cluster.ts';
import {
  selectActiveJobs,
  selectJob,
  selectJobIds,
  selectListedIds,
  selectOutcomes,
  selectRequest,
  selectUnfilledArrays,
} from '../statements/jobs.ts';
import {
  selectEndBeyond,
  selectEndedJobs,
  selectLaterEnd,
  selectLaterEnds,
} from '../statements/retention.ts';
import { emptyBatch } from '../store.ts';
import { anEvent } from '../storeFixture.ts';
import { endsPerRead, sqliteRetention } from './sqliteRetention.ts';
import { openSqliteStore } from './sqliteStore.ts';

let database: DatabaseSync;
beforeEach(() => {
  database = new DatabaseSync(':memory:');
  for (const { sql } of migrationsFrom(0)) database.exec(sql);
});
afterEach(() => database.close());

function planOf(sql: string): readonly string[] {
  return database
    .prepare(`explain query plan ${sql}`)
    .all()
    .map((step) => String(step['detail']));
}

const booleans = [false, true] as const;
const filters = booleans.flatMap((byArray) =>
  booleans.flatMap((byName) => booleans.map((byState) => ({ byArray, byName, byState }))),
);
/** Without a state these are only asked where nothing else narrows the list. */
const asked = filters.filter(({ byArray, byName, byState }) => byState || !(byArray || byName));

it.each(asked)('a list by %o is a search in an index, in its order', (filter) => {
  const plan = planOf(selectListedIds(filter)).join('; ');

  expect(plan).toMatch(/^SEARCH jobs USING (COVERING )?INDEX/);
  expect(plan).not.toMatch(/SCAN|TEMP B-TREE/);
  if (filter.byArray) expect(plan).toContain('jobs_by_array (array_id=? AND state=? AND submit_seq<?)');
  else if (filter.byName)
    expect(plan).toContain('COVERING INDEX jobs_by_name (name=? AND state=? AND submit_seq<?)');
});

it.each([
  selectJob,
  selectUnfilledArrays,
  selectJobIds,
  selectRequest,
  selectOutcomes,
  selectEvents,
  selectEventsOfSubject,
  selectPositions,
  selectSubjectPositions,
  selectActiveJobs,
  selectEndedJobs,
  selectEndBeyond,
  selectLaterEnd,
  selectLaterEnds,
])('%o reads no whole table that grows', ({ sql }) => {
  const steps = planOf(sql);

  expect(steps).not.toEqual([]);
  // The names of nodes, and what a call or a query of the same statement lists itself, are few.
  const scans = steps.filter((step) => step.startsWith('SCAN'));
  for (const scan of scans)
    expect(scan).toMatch(
      /^SCAN (arrays USING INDEX arrays_unfilled|nodes|wanted|live|CONSTANT ROW|json_each)/,
    );
});

it('large events are read a few at a time', async () => {
  const store = openSqliteStore(tempDir('store').path, () => 'c0ffee');
  const events = Array.from({ length: 40 }, (_, index) => ({
    ...anEvent(index + 1, jobIdOf(1), index + 1),
    data: { text: 'x'.repeat(50_000) },
  }));
  await store.commit({ ...emptyBatch, events });

  const read = await store.readEvents(0, 1_000, null);

  expect(read.length).toBeGreaterThan(0);
  expect(read.length).toBeLessThan(20);
  await store.close();
});

/** Of the event loop, while this is under way. */
async function roundsDuring(work: () => Promise<unknown>): Promise<number> {
  let rounds = 0;
  let timer = setImmediate(function count() {
    rounds += 1;
    timer = setImmediate(count);
  });
  await work();
  clearImmediate(timer);
  return rounds;
}

it('a list of many jobs lets others have their turn', async () => {
  const store = openSqliteStore(tempDir('store').path, () => 'c0ffee');
  const newJobs = Array.from({ length: 1_000 }, (_, index) => aJob(index + 1));
  await store.commit({ ...emptyBatch, newJobs });
  const all = { states: [], arrayId: null, name: null, limit: 1_000, beforeSubmitSeq: null };

  const list = () => store.listJobs({ ...all, sizeMax: Number.MAX_SAFE_INTEGER });

  expect(await roundsDuring(list)).toBeGreaterThanOrEqual(19);
  expect((await list()).records.map(({ job }) => job.submitSeq)).toEqual(
    newJobs.map(({ submitSeq }) => submitSeq).reverse(),
  );
  await store.close();
});

it('a job that changes while it is listed is left out of a list by its state', async () => {
  const store = openSqliteStore(tempDir('store').path, () => 'c0ffee');
  const newJobs = Array.from({ length: 100 }, (_, index) => aJob(index + 1));
  await store.commit({ ...emptyBatch, newJobs });
  const queued = {
    states: ['queued'],
    arrayId: null,
    name: null,
    limit: 100,
    beforeSubmitSeq: null,
  } as const;

  const listing = store.listJobs({ ...queued, sizeMax: Number.MAX_SAFE_INTEGER });
  // The oldest is read last, in a later round.
  const jobs = [aJob(1, { state: { kind: 'succeeded', endedAtMs: 1 } })];
  await store.commit({ ...emptyBatch, jobs });

  expect((await listing).records.map(({ job }) => job.submitSeq)).not.toContain(1);
  await store.close();
});

it('the end beyond so many is found a piece at a time', async () => {
  const jobs = 25_000;
  database.exec(`
    with recursive numbers (number) as (select 1 union all select number + 1 from numbers where number < ${jobs})
    insert into jobs (id, submit_seq, project, submitter, name, state, last_attempt, submitted_at_ms, ended_at_ms, spec, body)
    select printf('job_%012d', number), number, 'default', 'admin', 'train', 'succeeded', 1, 0, number / 2, '', '' from numbers`);
  const skipped: unknown[] = [];
  const retention = sqliteRetention({
    rows: <Row>(sql: string, parameters: Record<string, SQLInputValue>) => {
      skipped.push(parameters['skipped']);
      return database.prepare(sql).all(parameters) as Row[];
    },
    change: () => expect.unreachable(),
    transaction: () => expect.unreachable(),
  });
  const endOf = (newest: number) => Math.floor((jobs - newest) / 2);
  const counts = [0, 1, endsPerRead, endsPerRead + 1, 2 * endsPerRead, 2 * endsPerRead + 3, jobs - 1];

  for (const count of counts) expect(await retention.readEndBeyond(count)).toBe(endOf(count));
  expect(await retention.readEndBeyond(jobs)).toBeNull();
  expect(Math.max(...skipped.map(Number))).toBe(endsPerRead);
  expect(await retention.countEndedJobs(null)).toBe(jobs);
  expect(await roundsDuring(() => retention.readEndBeyond(jobs - 1))).toBeGreaterThanOrEqual(2);
});
