import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { nothingRan } from '@muster/common/cause';
import { type JobId, type TaskRef, taskKey } from '@muster/common/ids';
import { decodeJobSpec } from '@muster/common/spec/serialize';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { fromNothing } from './managerFixture.ts';
import { type Phase, type TaskRecord, TaskRecords } from './records.ts';

let root: string;
let records: TaskRecords;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'records-'));
  records = new TaskRecords(root);
});
afterEach(() => rm(root, { recursive: true }));

const task: TaskRef = { jobId: 'job_0123456789ab' as JobId, attempt: 1, nodeRank: 0 };
const started: Phase = { kind: 'running', startedAtMs: 5, startedBoottimeMs: 6 };
const ended: Phase = { kind: 'ended', exit: { ...nothingRan, exitCode: 3, logBytes: 7 } };

function anIntent(of: TaskRef = task): TaskRecord {
  const assignment = {
    task: of,
    spec: decodeJobSpec('{"name":"test","command":["true"]}'),
    nodeCount: 1,
    gpuUuids: ['GPU-1'],
    array: null,
    ...fromNothing(of),
  };
  return { assignment, bootId: 'boot-1', phase: { kind: 'assigned' } };
}

const pathOf = (of: TaskRef = task) => join(records.directory(of), 'task.jsonl');
const phases = () => records.load().map(({ phase }) => phase);

test('a record is read as it was written, with its newest phase and boot', async () => {
  await records.create(anIntent());
  expect(records.load()).toEqual([anIntent()]);
  records.update(task, 'boot-1', started);
  records.update(task, 'boot-2', ended);
  expect(records.load()).toEqual([{ ...anIntent(), bootId: 'boot-2', phase: ended }]);
});

test('a record in another format is refused with what to do about it', async () => {
  await records.create(anIntent());
  const text = readFileSync(pathOf(), 'utf8');
  writeFileSync(pathOf(), text.replace('"version":2', '"version":1'));
  expect(() => records.load()).toThrow(
    `the record ${pathOf()} has format 1, this agent reads format 2: end the task with the agent that started it`,
  );
});

test('records of other tasks and what else is there do not disturb', async () => {
  const others = [2, 10].map((attempt) => ({ ...task, attempt }));
  for (const each of [task, ...others]) await records.create(anIntent(each));
  writeFileSync(join(root, 'notes.txt'), 'of the administrator');
  records.update({ ...task, attempt: 10 }, 'boot-1', started);
  const found = records.load().map((record) => `${taskKey(record.assignment.task)} ${record.phase.kind}`);
  expect(found.sort()).toEqual([
    'job_0123456789ab.1.0 assigned',
    'job_0123456789ab.10.0 running',
    'job_0123456789ab.2.0 assigned',
  ]);
  expect(readdirSync(root)).toContain('notes.txt');
});

describe('after a crash in the middle of writing', () => {
  test('a last line that was cut anywhere does not count', async () => {
    await records.create(anIntent());
    records.update(task, 'boot-1', started);
    const before = readFileSync(pathOf());
    records.update(task, 'boot-1', ended);
    const whole = readFileSync(pathOf());
    for (let length = before.length; length < whole.length; length++) {
      writeFileSync(pathOf(), whole.subarray(0, length));
      expect(phases()).toEqual([started]);
    }
  });

  test('what is written after a line that was cut counts', async () => {
    await records.create(anIntent());
    records.update(task, 'boot-1', started);
    truncateSync(pathOf(), readFileSync(pathOf()).length - 4);
    records.update(task, 'boot-1', ended);
    expect(phases()).toEqual([ended]);
  });

  test('an intent that was cut anywhere was never written, and its directory is deleted', async () => {
    await records.create(anIntent());
    const whole = readFileSync(pathOf());
    for (let length = 0; length < whole.length; length += 13) {
      mkdirSync(records.directory(task), { recursive: true });
      writeFileSync(pathOf(), whole.subarray(0, length));
      expect(records.load()).toEqual([]);
    }
    await vi.waitFor(() => expect(readdirSync(root)).toEqual([]));
  });

  test('a directory without a record is deleted with all that is in it, and its name is free at once', async () => {
    const deep = join(records.directory(task), 'a', 'b');
    mkdirSync(deep, { recursive: true });
    for (let file = 0; file < 500; file++) writeFileSync(join(deep, `${file}`), 'x');
    expect(records.load()).toEqual([]);
    await records.create(anIntent());
    await vi.waitFor(() => expect(readdirSync(root)).toEqual([taskKey(task)]));
    expect(records.load()).toEqual([anIntent()]);
  });

  test('what was being deleted is deleted at the next start', async () => {
    mkdirSync(join(root, '.removed-abc', 'left'), { recursive: true });
    expect(records.load()).toEqual([]);
    await vi.waitFor(() => expect(readdirSync(root)).toEqual([]));
  });
});

test('a record that is there and cannot be read is an error: its task may be running', async () => {
  await records.create(anIntent());
  // A directory in its place reads as an error for every user, root included.
  await rm(pathOf());
  mkdirSync(pathOf());
  expect(() => records.load()).toThrow(`the record ${pathOf()} cannot be read`);
  expect(readdirSync(root)).toEqual([taskKey(task)]);
});

test('a removed task is gone, and may be removed again', async () => {
  await records.create(anIntent());
  appendFileSync(records.outputPath(task), 'output');
  expect(records.outputSize(task)).toBe(6);
  await records.remove(task);
  await records.remove(task);
  expect(readdirSync(root)).toEqual([]);
  expect(records.outputSize(task)).toBe(0);
});

test('a phase of a task that was never prepared is an error', () => {
  expect(() => records.update(task, 'boot-1', started)).toThrow('ENOENT');
});
