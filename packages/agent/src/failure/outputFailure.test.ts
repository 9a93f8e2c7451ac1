import { expect, test } from 'vitest';
import { isConsequence, readOutputFailure } from './outputFailure.ts';

const summary = (rank: number, exitCode: number, traceback: string) => `
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
  <NO_OTHER_FAILURES>
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-01-05_10:00:00
  host      : somewhere
  rank      : ${rank} (local_rank: 1)
  exitcode  : ${exitCode} (pid: 4711)
  error_file: <N/A>
  traceback : ${traceback}
============================================================
`;
const elasticTrace = `Traceback (most recent call last):
  File "/usr/bin/torchrun", line 33, in <module>
torch.distributed.elastic.multiprocessing.errors.ChildFailedError: `;

test('the error of the program, not the report of it, and the rank from the summary', () => {
  const trace = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n';
  const output = `step 1\n${trace}ValueError: no such layer\n${elasticTrace}${summary(3, 1, 'To enable')}`;
  expect(readOutputFailure(output)).toEqual({
    consequence: false,
    rank: 3,
    message: 'ValueError: no such layer',
  });
});

test('an error that is no consequence stands above one that is, whichever came first', () => {
  const reset = 'RuntimeError: [pair.cc:598] Connection closed by peer [10.0.0.2]:4242';
  const output = `[rank2]: ${reset}\n[rank3]: torch.cuda.OutOfMemoryError: CUDA out of memory.\n`;
  expect(readOutputFailure(output)).toMatchObject({ consequence: false, rank: 3 });
  expect(readOutputFailure(`${reset}\n${elasticTrace}${summary(0, 1, '')}`)).toEqual({
    consequence: true,
    rank: 0,
    message: reset,
  });
});

test('a worker that was killed says nothing; torchrun says it', () => {
  const output = `RuntimeError: Connection reset by peer\n${elasticTrace}${summary(1, -9, 'Signal 9 (SIGKILL) received by PID 4711')}`;
  expect(readOutputFailure(output)).toEqual({
    consequence: false,
    rank: 1,
    message: 'rank 1: Signal 9 (SIGKILL) received by PID 4711',
  });
});

test('workers that torchrun or we have ended are no beginning', () => {
  const output = `${elasticTrace}${summary(1, -15, 'Signal 15 (SIGTERM) received by PID 4711')}`;
  expect(readOutputFailure(output)).toMatchObject({ consequence: true, rank: 1 });
  const signalled =
    'torch.distributed.elastic.multiprocessing.api.SignalException: Process 4711 got signal: 15';
  expect(readOutputFailure(signalled)).toMatchObject({ consequence: true });
});

test("a watchdog follows from somebody's silence", () => {
  const line =
    '[E ProcessGroupNCCL.cpp:474] [Rank 5] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9)';
  expect(readOutputFailure(line)).toEqual({ consequence: true, rank: 5, message: line });
});

test('an exit code alone is told with its rank', () => {
  expect(readOutputFailure(summary(2, 7, 'To enable traceback see'))).toEqual({
    consequence: false,
    rank: 2,
    message: 'rank 2: exit code 7',
  });
});

test('torchrun that was ended before its summary has said which worker died', () => {
  const death = (code: number) =>
    `ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: ${code}) local_rank: 1 (pid: 67) of binary: /usr/bin/python3\n`;
  const signalled =
    'torch.distributed.elastic.multiprocessing.api.SignalException: Process 12 got signal: 15\n';
  expect(readOutputFailure(death(-9) + signalled)).toEqual({
    consequence: false,
    rank: null,
    message: 'local rank 1: ended by signal 9',
  });
  expect(readOutputFailure(death(-15) + signalled)).toMatchObject({ consequence: true });
  expect(readOutputFailure(death(1) + signalled), 'by itself, without a word').toEqual({
    consequence: false,
    rank: null,
    message: 'local rank 1: exit code 1',
  });
  expect(readOutputFailure(`ValueError: bad\n${death(1)}${signalled}`)?.message).toBe('ValueError: bad');
  expect(readOutputFailure(`RuntimeError: Broken pipe\n${death(1)}`)).toMatchObject({ consequence: true });
});

test('output without a failure tells nothing', () => {
  expect(readOutputFailure('loss 0.3\nUserWarning: slow\n')).toBeNull();
  expect(readOutputFailure('')).toBeNull();
});

test('colours, carriage returns and lines of any length are borne', () => {
  const long = `${'x'.repeat(200_000)}\r\u001b[31mValueError: bad\u001b[0m ${'y'.repeat(2_000)}`;
  const failure = readOutputFailure(long);
  expect(failure?.message.startsWith('ValueError: bad')).toBe(true);
  expect(failure?.message.length).toBeLessThanOrEqual(500);
});

test.each([
  'RuntimeError: [..] Connection reset by peer',
  'torch.distributed.DistBackendError: ncclRemoteError: A call failed possibly due to a remote process exiting',
  'RuntimeError: Broken pipe',
  'RuntimeError: [unbound_buffer.cc:81] Timed out waiting 1800000ms for recv operation to complete',
])('%s is a consequence', (line) => expect(isConsequence(line)).toBe(true));

test.each([
  'ValueError: connection string is empty',
  'RuntimeError: CUDA error: an illegal memory access was encountered',
  'OSError: [Errno 28] No space left on device',
])('%s is none', (line) => expect(isConsequence(line)).toBe(false));
