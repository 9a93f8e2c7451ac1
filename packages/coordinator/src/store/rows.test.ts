import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { aJob, anAttempt } from '../modelFixture.ts';
import { type EventRow, eventFromRow, type JobRow, jobFromRow, jobToRow } from './rows.ts';
import { migrationsFrom, schemaVersion } from './schema.ts';
import { applyStep } from './sqlite/open.ts';
import { insertJob } from './statements/jobs.ts';
import { everyState, withEverything } from './storeFixture.ts';

test.each(everyState)('a job that is $kind is read as it was written', (state) => {
  const job = aJob(1, { ...withEverything, state, lastAttempt: 2 });
  const newest = 'attempt' in state ? state.attempt : null;
  expect(jobFromRow(jobToRow(job), newest)).toEqual(job);
});

test('the body of a job has nothing that has a column, and no attempt', () => {
  const job = aJob(1, { state: { kind: 'starting', attempt: anAttempt(1) }, lastAttempt: 1 });
  const body = JSON.parse(jobToRow(job).body) as Record<string, unknown>;
  expect(body['state']).toEqual({ kind: 'starting' });
  expect(Object.keys(body)).not.toEqual(expect.arrayContaining(['id']));
  for (const column of ['id', 'submitSeq', 'spec', 'user', 'lastAttempt'])
    expect(body).not.toHaveProperty(column);
});

test('a job of version 14, whose body had other names for two fields', () => {
  const database = new DatabaseSync(':memory:');
  const [initial, ...later] = migrationsFrom(0);
  expect([initial?.version, later.at(-1)?.version]).toEqual([14, schemaVersion]);
  database.exec(initial?.sql ?? '');
  const job = aJob(1, { ...withEverything, spec: aJob(1).spec });
  const row = jobToRow(job);
  const {
    excludedNodes,
    recentFailures,
    phase: _later,
    ...rest
  } = JSON.parse(row.body) as Record<string, unknown>;
  const body = JSON.stringify({ ...rest, leftOut: excludedNodes, deaths: recentFailures });
  database.prepare(insertJob.sql).run(insertJob.parameters({ ...row, body }));

  for (const { sql } of later) database.exec(sql);

  const read = database.prepare('select * from jobs').get() as unknown as JobRow;
  // Phases came later as well.
  expect(jobFromRow(read, null)).toEqual({ ...job, phase: null });
  expect(Object.keys(JSON.parse(read.body))).not.toEqual(expect.arrayContaining(['leftOut']));
});

test('an attempt of version 17, whose last hang had another name', () => {
  const database = new DatabaseSync(':memory:');
  const later = migrationsFrom(17);
  for (const { sql, version } of migrationsFrom(0)) if (version <= 17) database.exec(sql);
  database.exec('pragma foreign_keys = off');
  const insert = database.prepare("insert into attempts values ('job_1', ?, 'ended', ?)");
  insert.run(1, JSON.stringify({ signs: [], hungToldAtMs: 7 }));
  insert.run(2, JSON.stringify({ signs: [], hungToldAtMs: null }));

  for (const { sql } of later) database.exec(sql);

  const bodies = database.prepare('select body from attempts order by number').all();
  expect(bodies.map(({ body }) => JSON.parse(String(body)))).toEqual([
    { signs: [], hungAtMs: 7, firstStepAtMs: null },
    { signs: [], hungAtMs: null, firstStepAtMs: null },
  ]);
});

test('an event of version 20, when none named the operation that its job was submitted by', () => {
  const database = new DatabaseSync(':memory:');
  const later = migrationsFrom(20);
  for (const { sql, version } of migrationsFrom(0)) if (version <= 20) database.exec(sql);
  database.exec(
    `insert into events values (7, 'c-7', 'job_1', 1, 'job.submitted', 5, '{"name":"a"}', 'admin', '')`,
  );

  for (const { sql } of later) database.exec(sql);

  const read = database.prepare('select * from events').get() as unknown as EventRow;
  expect(eventFromRow(read)).toEqual({
    seq: 7,
    id: 'c-7',
    subject: 'job_1',
    subjectSeq: 1,
    kind: 'job.submitted',
    timeMs: 5,
    data: { name: 'a' },
    by: 'admin',
    peer: '',
  });
});

test('a step that is only a comment is a step like any other', () => {
  const database = new DatabaseSync(':memory:');
  for (const sql of ['-- Tables stay as they are.', 'create table later (name text) -- The last word.']) {
    applyStep(database, { sql, version: 40 });
    expect(database.isTransaction).toBe(false);
    expect(database.prepare('pragma user_version').get()).toEqual({ user_version: 40 });
  }
  expect(() => database.exec('select name from later')).not.toThrow();
});
