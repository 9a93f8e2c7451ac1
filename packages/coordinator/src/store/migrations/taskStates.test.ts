import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { type AttemptRow, attemptFromRow } from '../rows.ts';
import { taskStateNames } from './000014_task_states.ts';
import { migrations } from './index.ts';

test.each([
  ['allocated', 'assigned', 'allocated', 'assigned'],
  ['allocated', 'claimed', 'allocated', 'prepared'],
  ['allocated', 'ready', 'allocated', 'checked'],
  ['claimed', 'ready', 'released', 'checked'],
  ['claimed', 'claimed', 'released', 'checked'],
  ['claimed', 'running', 'released', 'running'],
  ['running', 'running', 'running', 'running'],
  ['running', 'ended', 'running', 'ended'],
])('a task that was %s/%s is %s/%s', (attemptBefore, taskBefore, attemptState, taskState) => {
  const database = new DatabaseSync(':memory:');
  for (const migration of migrations.slice(0, migrations.indexOf(taskStateNames))) database.exec(migration);
  database.exec('pragma foreign_keys = off');
  const untouched = {
    nodeRank: 1,
    node: 'node-2',
    gpuUuids: ['GPU-ü'],
    state: 'assigned',
    cpus: 0.1,
    exit: null,
  };
  const tasks = [{ ...untouched, nodeRank: 0, node: 'node-1', state: taskBefore }, untouched];
  const body = { number: 1, state: attemptBefore, tasks, allocatedAtMs: 1_700_000_000_123, cause: null };
  const insert = database.prepare("insert into attempts values ('job_1', 1, ?, ?)");
  insert.run(attemptBefore, JSON.stringify(body));

  database.exec(taskStateNames);

  const row = database
    .prepare('select job_id, number, state, body from attempts')
    .get() as unknown as AttemptRow;
  expect(row.state).toBe(attemptState);
  const expected = [{ ...tasks[0], state: taskState }, untouched];
  expect(JSON.parse(row.body)).toEqual({ ...body, state: attemptState, tasks: expected });
  expect(attemptFromRow(row)).toMatchObject({ state: attemptState, tasks: [{ state: taskState }, {}] });
});

test('an attempt that has ended keeps every byte', () => {
  const database = new DatabaseSync(':memory:');
  for (const migration of migrations.slice(0, migrations.indexOf(taskStateNames))) database.exec(migration);
  database.exec('pragma foreign_keys = off');
  const body = '{ "state": "ended", "tasks": [] }';
  database.prepare("insert into attempts values ('job_1', 1, 'ended', ?)").run(body);

  database.exec(taskStateNames);

  expect(database.prepare('select body from attempts').get()).toEqual({ body });
});
