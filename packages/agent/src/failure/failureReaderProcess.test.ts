import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { silentLogger as log } from '@muster/common/log';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { FailureReaderProcess } from './failureReaderProcess.ts';
import { failureReaderProgram } from './readerProgram.ts';

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

function open(options: { program?: string; budgetMs?: number; deadlineMs?: number } = {}) {
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

test('four megabytes made to be slow to read hold up nobody, and are read in time', async () => {
  const line = `${'gloo'.repeat(1_000)}${'Connection '.repeat(360)}\n`;
  const read = open().read(endOf(`${line.repeat(4_000_000 / line.length)}ValueError: bad\n`));
  expect(await turnsUntil(read)).toBeGreaterThan(20);
  expect(await read).toMatchObject({ source: 'log', message: 'ValueError: bad' });
});

test('a reader that dies answers nothing more, and the next question has another', async () => {
  const reader = open();
  const first = reader.read(endOf('ValueError: bad\n'));
  await expect.poll(() => reader.pid).not.toBeNull();
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
