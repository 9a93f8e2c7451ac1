import { appendFileSync, mkdtempSync, rmSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { TaskExit } from '../taskFacts/execution.ts';
import { errorFileName, readTaskFailure } from './taskFailure.ts';

const now = { wallMs: 1_700_000_100_000, boottimeMs: 50_000 };
const exit: TaskExit = {
  exitCode: 1,
  signal: null,
  oomKilled: false,
  finishedAtMs: 1_700_000_098_000,
  statusLost: false,
};

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-failure-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

function failure(changes: Partial<TaskExit> = {}, stopping = false) {
  const outputPath = join(directory, 'output.log');
  return readTaskFailure(
    { exit: { ...exit, ...changes }, directory, outputPath, stopping },
    now,
    () => false,
  );
}

function writeErrorFile(message: unknown): void {
  const path = join(directory, errorFileName);
  writeFileSync(path, JSON.stringify({ message }));
  utimesSync(path, 1_700_000_090, 1_700_000_090);
}

test('the exit alone: on the clock of the node, and a consequence only when we were ending it', () => {
  const unknown = { rank: null, kind: null, blame: null, line: null };
  const known = { ...unknown, source: 'exit', message: 'exit code 1', atBoottimeMs: 48_000 };
  expect(failure()).toEqual({ ...known, consequence: false });
  expect(failure({}, true)).toEqual({ ...known, consequence: true });
  expect(failure({ exitCode: null, signal: 'SIGKILL' }).message).toBe('ended by SIGKILL');
});

test('no failure lies in the future, whatever the wall clock was set to', () => {
  expect(failure({ finishedAtMs: 1_800_000_000_000 }).atBoottimeMs).toBe(50_000);
  expect(failure({ finishedAtMs: 5 }).atBoottimeMs).toBe(0);
});

test('of an end that was seen, the wall clock may be set as it likes between the end and the look', () => {
  const seen = { finishedAtMs: 1_700_000_098_000 + 3_600_000, finishedBoottimeMs: 47_500 };
  expect(failure(seen).atBoottimeMs).toBe(47_500);
  // What was written two seconds before it was, then as now.
  writeErrorFile('ValueError: no such layer');
  const path = join(directory, errorFileName);
  utimesSync(path, (seen.finishedAtMs - 2_000) / 1_000, (seen.finishedAtMs - 2_000) / 1_000);
  expect(failure(seen).atBoottimeMs).toBe(45_500);
});

test('what the output says of the beginning counts although we were ending it', () => {
  writeFileSync(join(directory, 'output.log'), 'step 3\nValueError: no such layer\n');
  expect(failure({}, true)).toEqual({
    source: 'log',
    consequence: false,
    rank: null,
    kind: 'python_exception',
    blame: 'job',
    line: 2,
    message: 'ValueError: no such layer',
    atBoottimeMs: 48_000,
  });
});

test('the error file says it best, and when', () => {
  writeFileSync(join(directory, 'output.log'), 'RuntimeError: Connection reset by peer\n');
  writeErrorFile({
    message: 'ValueError: no such layer',
    extraInfo: { py_callstack: 'Traceback…', timestamp: '1700000090' },
  });
  expect(failure()).toEqual({
    source: 'error_file',
    consequence: false,
    rank: null,
    kind: 'python_exception',
    blame: 'job',
    line: null,
    message: 'ValueError: no such layer',
    atBoottimeMs: 40_000,
  });
  writeErrorFile('RuntimeError: Connection reset by peer');
  expect(failure()).toMatchObject({ source: 'error_file', consequence: true });
});

test('an error file that says only that torchrun was asked to stop yields to what the output says', () => {
  writeErrorFile({ message: 'SignalException: Process 78 got signal: 15' });
  expect(failure()).toMatchObject({ source: 'error_file', consequence: true });
  const death =
    'multiprocessing.api:failed (exitcode: 1) local_rank: 0 (pid: 80) of binary: /usr/bin/python3\n';
  writeFileSync(join(directory, 'output.log'), `ERROR:torch.distributed.elastic.${death}`);
  expect(failure()).toMatchObject({
    source: 'log',
    consequence: false,
    message: 'local rank 0: exit code 1',
  });
});

test('the error file and the output tell of the same: the line is known', () => {
  writeFileSync(join(directory, 'output.log'), 'step 1\n[rank3]: ValueError: no such layer\n');
  writeErrorFile('ValueError: no such layer');
  expect(failure()).toMatchObject({ source: 'error_file', kind: 'python_exception', line: 2, rank: 3 });
});

test('output that tells of something stronger, or of the beginning, stands above the error file', () => {
  const output = join(directory, 'output.log');
  writeErrorFile('ValueError: I/O operation on closed file.');
  writeFileSync(output, '[rank0]: OSError: [Errno 28] No space left on device\n');
  expect(failure()).toMatchObject({ source: 'log', kind: 'disk_full', blame: 'storage', line: 1 });
  writeErrorFile('RuntimeError: Connection reset by peer');
  writeFileSync(output, '[rank1]: torch.OutOfMemoryError: CUDA out of memory.\n');
  expect(failure()).toMatchObject({ source: 'log', kind: 'cuda_oom', consequence: false, rank: 1 });
});

test('what only names an exit code or a signal leaves the kind to whoever knows the exit', () => {
  const death = (code: number) =>
    `failed (exitcode: ${code}) local_rank: 0 (pid: 80) of binary: /usr/bin/python3\n`;
  writeFileSync(join(directory, 'output.log'), death(7));
  expect(failure()).toMatchObject({ source: 'log', kind: null, blame: null, line: 1 });
  writeFileSync(join(directory, 'output.log'), death(-9));
  expect(failure(), 'the kernel did not kill it').toMatchObject({ source: 'log', kind: null });
  expect(failure({ oomKilled: true })).toMatchObject({ source: 'log', kind: 'host_oom', blame: 'job' });
});

test('killed for want of memory, without a word', () => {
  expect(failure({ exitCode: null, signal: 'SIGKILL', oomKilled: true })).toMatchObject({
    source: 'exit',
    kind: 'host_oom',
    message: 'killed by the kernel because memory ran out',
  });
});

test('of a long output, the end is read and the line is still the right one', () => {
  const line = `${'x'.repeat(99)}\n`;
  writeFileSync(join(directory, 'output.log'), `${line.repeat(80_000)}ValueError: no such layer\n`);
  expect(failure()).toMatchObject({ source: 'log', message: 'ValueError: no such layer', line: 80_001 });
});

test('of an output too long to count its lines, the line is unknown', () => {
  const path = join(directory, 'output.log');
  // A hole: no bytes on the disk.
  writeFileSync(path, '');
  truncateSync(path, 80 * 1024 * 1024);
  appendFileSync(path, '\nValueError: no such layer\n');
  expect(failure()).toMatchObject({ source: 'log', message: 'ValueError: no such layer', line: null });
});

test.each(['', '{', '[]', '{"message": 3}', '{"message": {"message": ""}}'])(
  'an error file of %j tells nothing',
  (text) => {
    writeFileSync(join(directory, errorFileName), text);
    expect(failure()).toMatchObject({ source: 'exit' });
  },
);
