/** What is asked while heartbeats wait reads an index: its cost is that of its answer, not of all that is stored. */
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { tempDir } from '../../../../../test/support/services.ts';
import { jobIdOf } from '../../modelFixture.ts';
import { migrations } from '../migrations/index.ts';
import { selectUnfilledArrays } from '../statements/arrays.ts';
import { selectEvents, selectEventsOfSubject } from '../statements/selectEvents.ts';
import { selectJobIds, selectOutcomes } from '../statements/selectJobIds.ts';
import { selectActiveJobs, selectJob, selectListedIds } from '../statements/selectJobs.ts';
import { selectPositions, selectSubjectPositions } from '../statements/selectPositions.ts';
import { selectRequest } from '../statements/selectRequest.ts';
import { emptyBatch } from '../store.ts';
import { anEvent } from '../storeFixture.ts';
import { openSqliteStore } from './sqliteStore.ts';

let database: DatabaseSync;
beforeEach(() => {
  database = new DatabaseSync(':memory:');
  for (const sql of migrations) database.exec(sql);
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
  ...[selectJob, selectUnfilledArrays, selectJobIds, selectRequest, selectOutcomes],
  ...[selectEvents, selectEventsOfSubject, selectPositions, selectSubjectPositions, selectActiveJobs],
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
