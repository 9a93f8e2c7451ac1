/** Lists by several filters: each combination finds what it should, in steps whose size does not depend on what is stored. */
import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import type { ArrayId } from '@muster/common/ids';
import type { JobStateKind } from '@muster/common/states';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Job } from '../../model.ts';
import { aJob, aSpec, queuedState, someMs } from '../../modelFixture.ts';
import { jobToRow } from '../rows.ts';
import { migrationsFrom } from '../schema.ts';
import { insertJob } from '../statements/jobs.ts';
import { insertLabel, selectMatching, selectMatchingInOrder } from '../statements/lists.ts';
import type { JobFilters, JobQuery } from '../store.ts';
import { listedIds } from './sqliteLists.ts';

const arrayId = 'arr_000000000001' as ArrayId;
const everyJob: JobQuery = {
  states: [],
  arrayId: null,
  name: null,
  limit: 100,
  sizeMax: 1_000_000,
  beforeSubmitSeq: null,
};
const ended: JobStateKind[] = ['succeeded', 'failed'];
const jobs = Array.from({ length: 60 }, (_, index) => {
  const number = index + 1;
  const labels = number % 3 === 0 ? { team: `team-${number % 4}` } : {};
  const spec = aSpec({ name: `name-${number % 2}`, project: `project-${number % 5}`, labels });
  return aJob(number, {
    spec,
    submittedAtMs: someMs + number,
    user: number === 7 ? 'ann' : 'admin',
    state: number > 55 ? queuedState() : { kind: 'succeeded', endedAtMs: someMs },
    array: number > 10 && number <= 40 ? { id: arrayId, index: number, size: 50 } : null,
  });
});
// Numbers that retention has removed.
const kept = jobs.filter(({ submitSeq }) => submitSeq < 20 || submitSeq > 32);

let database: DatabaseSync;
let readMost: number;
beforeEach(() => {
  readMost = 0;
  database = new DatabaseSync(':memory:');
  for (const { sql } of migrationsFrom(0)) database.exec(sql);
  for (const job of kept) {
    database.prepare(insertJob.sql).run(insertJob.parameters(jobToRow(job)));
    for (const [name, value] of Object.entries(job.spec.labels))
      database.prepare(insertLabel.sql).run({ name, value, submit_seq: job.submitSeq, job_id: job.id });
  }
});
afterEach(() => database.close());

function rows<Row>(sql: string, parameters: Record<string, SQLInputValue>): Row[] {
  const found = database.prepare(sql).all(parameters) as Row[];
  readMost = Math.max(readMost, found.length);
  return found;
}

async function numbers(query: Partial<JobQuery>, steps = { candidates: 3, numbers: 4 }) {
  const listed = await listedIds(rows, { ...everyJob, ...query }, steps);
  return listed.map(({ submitSeq }) => submitSeq);
}

function isMatch(
  { spec, state, array, user, submittedAtMs, submitSeq }: Job,
  { states, arrayId: wanted, name, beforeSubmitSeq, also = {} }: JobQuery,
): boolean {
  const { label, project, user: submitter, sinceMs } = also;
  const value = label === undefined ? undefined : spec.labels[label.name];
  return [
    states.length === 0 || states.includes(state.kind),
    wanted === null || array?.id === wanted,
    name === null || spec.name === name,
    beforeSubmitSeq === null || submitSeq < beforeSubmitSeq,
    label === undefined || (value !== undefined && (label.value === null || label.value === value)),
    project === undefined || spec.project === project,
    submitter === undefined || user === submitter,
    sinceMs === undefined || submittedAtMs >= sinceMs,
  ].every(Boolean);
}

const choices = {
  states: [[], ['failed'], ['queued', 'succeeded']] as JobStateKind[][],
  arrayId: [null, arrayId],
  name: [null, 'name-0', 'name-9'],
  beforeSubmitSeq: [null, 35],
  limit: [4, 100],
  label: [undefined, { name: 'team', value: null }, { name: 'team', value: 'team-1' }],
  project: [undefined, 'project-3'],
  user: [undefined, 'admin'],
  sinceMs: [undefined, someMs + 17],
};

function queries(): readonly JobQuery[] {
  let all: readonly Record<string, unknown>[] = [{}];
  for (const [key, values] of Object.entries(choices))
    all = all.flatMap((each) => values.map((value) => ({ ...each, [key]: value })));
  return all.map(({ label, project, user, sinceMs, ...query }) => ({
    ...everyJob,
    ...query,
    also: { label, project, user, sinceMs } as JobFilters,
  }));
}

it('every combination finds what it should, in order and up to its limit', async () => {
  for (const query of queries()) {
    const expected = kept.filter((job) => isMatch(job, query)).map(({ submitSeq }) => submitSeq);
    const found = await numbers(query);
    if (JSON.stringify(found) !== JSON.stringify(expected.toReversed().slice(0, query.limit)))
      expect({ query, found }).toEqual({ query, found: expected.toReversed().slice(0, query.limit) });
  }
});

describe('where hardly any job matches', () => {
  it.each([
    ['project and state', { states: ended.slice(1), also: { project: 'project-3' } }],
    ['user and name', { name: 'name-9', also: { user: 'admin' } }],
    ['label and project', { also: { project: 'project-9', label: { name: 'team', value: null } } }],
    ['array and name', { arrayId, name: 'name-9' }],
    ['time and state', { states: ended.slice(1), also: { sinceMs: someMs } }],
  ])('%s are read a few jobs at a time', async (_, query) => {
    expect(await numbers(query)).toEqual([]);
    expect(readMost).toBeLessThanOrEqual(4);
  });
});

it('the columns that are filtered by are read from an index and not from the rows', () => {
  const planOf = (sql: string) =>
    database
      .prepare(`explain query plan ${sql}`)
      .all()
      .map((step) => String(step['detail']))
      .join('; ');
  const also = { project: 'p', user: 'u', sinceMs: 1, label: { name: 'n', value: 'v' } };
  const filters = [
    { byName: true, byState: true, also },
    { byName: false, byState: true, also: { ...also, label: { name: 'n', value: null } } },
  ];
  for (const filter of filters) {
    expect(planOf(selectMatching(filter))).toContain(
      'SEARCH jobs USING COVERING INDEX jobs_in_order (submit_seq=? AND',
    );
    const inOrder = planOf(selectMatchingInOrder(filter));
    expect(inOrder).toContain(
      'SEARCH jobs USING COVERING INDEX jobs_in_order (submit_seq>? AND submit_seq<?)',
    );
    expect(inOrder).toMatch(/SEARCH label .*(COVERING INDEX|PRIMARY KEY)/);
    expect(inOrder).not.toContain('TEMP B-TREE');
  }
});
