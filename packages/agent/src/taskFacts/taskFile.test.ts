import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { noLease } from '../fence/heldLease.ts';
import { readLease, writeLease } from '../fence/leaseFile.ts';
import {
  readJsonFile,
  readStoredTask,
  replaceJson,
  writeExit,
  writeProcessRecord,
} from '../guard/records.ts';
import { readTaskFile, writeTaskFile } from './taskFile.ts';

function aDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'task-file-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  return directory;
}

const textOf = (path: string) => readTaskFile(path, (file) => readFileSync(file, 'utf8'));

test('lines are added at the end, or written over from the beginning', () => {
  const path = join(aDirectory(), 'file');
  writeTaskFile(path, 'one\n', 'end');
  writeTaskFile(path, 'two\n', 'end');
  writeTaskFile(path, 'ONE\n', 'beginning');
  expect(textOf(path)).toBe('ONE\ntwo\n');
});

/** What a task may put in the place of a file of ours: `there` is what somebody else has in it. */
const places = [
  ['a link', (path: string, there: string) => symlinkSync(there, path)],
  ['a pipe', (path: string) => void execFileSync('mkfifo', [path])],
] as const;

test.each(places)('%s is neither followed nor waited for', (_, put) => {
  const directory = aDirectory();
  const [there, path] = [join(directory, 'there'), join(directory, 'file')];
  writeFileSync(there, '{"a":1}');
  put(path, there);
  expect(() => textOf(path)).toThrow(path);
  expect(() => writeTaskFile(path, 'mine', 'end')).toThrow(path);
  expect(readFileSync(there, 'utf8')).toBe('{"a":1}');
});

test.each(places)('%s in place of a lease is no lease, and gets none', (_, put) => {
  const directory = aDirectory();
  const lent = aDirectory();
  writeLease(lent, 'boot-1', null);
  put(join(directory, 'lease'), join(lent, 'lease'));
  expect(readLease(directory, 'boot-1')).toBe(noLease);
  expect(() => writeLease(directory, 'boot-1', 1_000)).toThrow(join(directory, 'lease'));
});

const running = {
  key: 'k',
  main: { pid: 7, startTicks: 8 },
  bootId: 'b',
  startedAtMs: 1,
  cgroup: '/c',
  limitGroups: [],
  mainExit: null,
};
const ended = { exitCode: 3, signal: null, oomKilled: true, finishedAtMs: 9, statusLost: false };

test('the record of a task names its process, and later how it ended', () => {
  const directory = aDirectory();
  const read = () => readStoredTask({ key: 'k', directory }, 'now');
  expect(read()).toBeNull();
  writeProcessRecord(directory, running);
  expect(read()).toEqual({ ...running, exit: null });
  writeExit(directory, ended);
  expect(read()).toEqual({ ...running, exit: ended });
});

test('a line that was cut short does not spoil the next, and a record that was only begun is none', () => {
  const directory = aDirectory();
  const path = join(directory, 'process.jsonl');
  writeProcessRecord(directory, running);
  writeTaskFile(path, '\n{"exit":{"exitCo', 'end');
  writeExit(directory, ended);
  expect(readStoredTask({ key: 'k', directory }, 'now')).toEqual({ ...running, exit: ended });
  writeFileSync(path, '');
  expect(readStoredTask({ key: 'k', directory }, 'now')).toBeNull();
});

test.each(places)('%s in place of the record of a task gives way to it', (_, put) => {
  const directory = aDirectory();
  const [there, path] = [join(directory, 'there'), join(directory, 'process.jsonl')];
  writeFileSync(there, '{"pid":1,"startTicks":1}');
  put(path, there);
  expect(readStoredTask({ key: 'k', directory }, 'now')).toMatchObject({ main: null, exit: null });
  writeExit(directory, ended);
  expect(readStoredTask({ key: 'k', directory }, 'now')).toMatchObject({ main: null, exit: ended });
  rmSync(path);
  put(path, there);
  writeProcessRecord(directory, running);
  expect(readStoredTask({ key: 'k', directory }, 'now')).toEqual({ ...running, exit: null });
  expect(readFileSync(there, 'utf8')).toBe('{"pid":1,"startTicks":1}');
});

test.each(places)('%s in place of a record of a lease is a record that cannot be read', (_, put) => {
  const directory = aDirectory();
  const [there, path] = [join(directory, 'there'), join(directory, 'lease.json')];
  writeFileSync(there, '{"pid":1}');
  put(path, there);
  expect(readJsonFile(path)).toEqual({});
  put(`${path}.tmp`, there);
  replaceJson(path, { pid: 2 });
  expect([readJsonFile(path), readFileSync(there, 'utf8')]).toEqual([{ pid: 2 }, '{"pid":1}']);
});
