import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { silentLogger as log } from '@muster/common/log';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { FailureReaderProcess, failureReaderProgram } from './failureReaderProcess.ts';

const now = () => ({ wallMs: 1_700_000_100_000, boottimeMs: 50_000 });
const exit = { exitCode: 1, signal: null, oomKilled: false, finishedAtMs: null, statusLost: false };
const unread = { source: 'exit', kind: 'unknown', blame: 'unknown', atBoottimeMs: 50_000 };

let directory: string;
const opened: FailureReaderProcess[] = [];
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-reader-'));
});
afterEach(() => {
  for (const reader of opened.splice(0)) reader.close();
  rmSync(directory, { recursive: true, force: true });
});

interface Bounds {
  readonly program?: string;
  readonly budgetMs?: number;
  readonly deadlineMs?: number;
  readonly waitingMax?: number;
}

function open(options: Bounds = {}) {
  const reader = new FailureReaderProcess({ program: failureReaderProgram, now, log, ...options });
  opened.push(reader);
  return reader;
}

function endOf(output: string, name = 'output.log') {
  const outputPath = join(directory, name);
  writeFileSync(outputPath, output);
  return { exit, directory, outputPath, stopping: false };
}

/** Of the event loop, which an agent answers heartbeats in, until `waited` is done. */
async function turnsUntil(waited: Promise<unknown>): Promise<number> {
  const state = { isDone: false };
  const done = waited.then(() => {
    state.isDone = true;
  });
  let turns = 0;
  for (; !state.isDone; turns += 1) await turn();
  await done;
  return turns;
}

/** A program that is stuck for good with the first output that it is asked about. */
function stuckProgram(): string {
  const path = join(directory, 'stuck.mjs');
  writeFileSync(path, "process.on('message', () => { for (;;); });\n");
  return path;
}

test('failures are read by another process, one after the other', async () => {
  const reader = open();
  const answers = ['ValueError: one', 'ValueError: two'].map((text, index) =>
    reader.read(endOf(`step 1\n${text}\n`, `${index}.log`)),
  );
  expect(await Promise.all(answers)).toMatchObject([
    { source: 'log', message: 'ValueError: one', line: 2 },
    { source: 'log', message: 'ValueError: two', line: 2 },
  ]);
  expect(reader.pid).not.toBe(process.pid);
});

test('an output that takes longer than its budget is not known, whatever it says', async () => {
  const reader = open({ budgetMs: 0 });
  expect(await reader.read(endOf('ValueError: bad\n'))).toMatchObject({
    ...unread,
    message: 'its output could not be read in time, so the reason is not known',
  });
  const killed = { ...endOf('ValueError: bad\n'), exit: { ...exit, oomKilled: true } };
  expect(await reader.read(killed), 'the kernel knows').toMatchObject({ kind: 'host_oom' });
});

test('while a reader is stuck in an output, the event loop of the agent goes on', async () => {
  const reader = open({ program: stuckProgram(), deadlineMs: 500 });
  const read = reader.read(endOf('anything\n'));
  expect(await turnsUntil(read)).toBeGreaterThan(20);
  expect(await read).toMatchObject(unread);
  expect(reader.pid, 'it was killed').toBeNull();
});

/** A program that answers each question only after a while, which is less than any deadline. */
function slowProgram(answersAfterMs: number): string {
  const path = join(directory, 'slow.mjs');
  const failure = JSON.stringify({ source: 'log', message: 'it was read' });
  const answer = `process.send({ id, failure: ${failure} })`;
  writeFileSync(path, `process.on('message', ({ id }) => setTimeout(() => ${answer}, ${answersAfterMs}));\n`);
  return path;
}

test('the time in which others are read is not counted: tasks that end together are all read', async () => {
  // Together they take far longer than one may.
  const reader = open({ program: slowProgram(300), deadlineMs: 2_000 });
  const ends = Array.from({ length: 12 }, (_, index) => endOf('ValueError: bad\n', `${index}.log`));
  const failures = await Promise.all(ends.map((end) => reader.read(end)));
  expect(failures.map(({ message }) => message)).toEqual(ends.map(() => 'it was read'));
});

test('one that is stuck takes its own time only, and those behind it are read', async () => {
  const path = join(directory, 'stuckOnce.mjs');
  const failure = JSON.stringify({ source: 'log', message: 'it was read' });
  const stuck = "if (end.outputPath.endsWith('stuck.log')) for (;;);";
  const answer = `process.send({ id, failure: ${failure} });`;
  writeFileSync(path, `process.on('message', ({ id, end }) => { ${stuck} ${answer} });\n`);
  const reader = open({ program: path, deadlineMs: 2_000 });
  const failures = await Promise.all(
    ['stuck.log', 'a.log', 'b.log'].map((name) => reader.read(endOf('anything\n', name))),
  );
  expect(failures).toMatchObject([unread, { message: 'it was read' }, { message: 'it was read' }]);
});

test('more than may wait are not read, and answered at once', async () => {
  const reader = open({ program: stuckProgram(), waitingMax: 2 });
  const waiting = [0, 1].map((index) => reader.read(endOf('anything\n', `${index}.log`)));
  expect(await reader.read(endOf('anything\n'))).toMatchObject(unread);
  reader.close();
  for (const each of waiting) await expect(each).rejects.toThrow('closed');
});

test('four megabytes made to be slow to read hold up nobody, and are read in time', async () => {
  const line = `${'gloo'.repeat(1_000)}${'Connection '.repeat(360)}\n`;
  const read = open().read(endOf(`${line.repeat(4_000_000 / line.length)}ValueError: bad\n`));
  expect(await turnsUntil(read)).toBeGreaterThan(20);
  expect(await read).toMatchObject({ source: 'log', message: 'ValueError: bad' });
});

test('a reader that dies answers nothing more, and the next question has another', async () => {
  const reader = open();
  // It is still being read when the reader dies, however late this test gets its turn.
  const line = `${'gloo'.repeat(1_000)}${'Connection '.repeat(360)}\n`;
  const first = reader.read(endOf(`${line.repeat(4_000_000 / line.length)}ValueError: bad\n`));
  await vi.waitFor(() => expect(reader.pid).not.toBeNull(), { interval: 1 });
  process.kill(reader.pid ?? 0, 'SIGKILL');
  expect((await first).source).toMatch(/exit|log/);
  expect(await reader.read(endOf('ValueError: bad\n'))).toMatchObject({ message: 'ValueError: bad' });
});

test('a closed reader says nothing: the next agent asks again', async () => {
  const reader = open({ program: stuckProgram() });
  const read = reader.read(endOf('anything\n'));
  await expect.poll(() => reader.pid).not.toBeNull();
  reader.close();
  await expect(read).rejects.toThrow('closed');
});
