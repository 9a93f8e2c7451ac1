import { expect, test } from 'vitest';
import { linesOf } from '../lines/lineReader.ts';
import { FailureReader } from './failureReader.ts';
import type { ProcessEnd } from './judge.ts';

const badEnd: ProcessEnd = { exitCode: 1, signal: null, oomKilled: false };

/** `~7` in a line of its own: the program has come to step 7. */
function read(output: string, end: ProcessEnd | null = null) {
  const reader = new FailureReader();
  for (const line of linesOf(output)) {
    const step = /^~(\d+)$/.exec(line.text);
    if (step !== null) reader.movedTo(Number(step[1]));
    reader.line(line);
  }
  return reader.result(end);
}

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
const trace = (error: string) => `Traceback (most recent call last):\n  File "train.py", line 3\n${error}\n`;
const death = (code: number) =>
  `ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: ${code}) local_rank: 1 (pid: 67) of binary: /usr/bin/python3\n`;
const stopped =
  'W0227 17:39:41.934000 9 torch/elastic/api.py:719] Received 15 death signal, shutting down workers\n';
const watchdog = (rank: number, sequence: number, operation = 'ALLREDUCE') =>
  `[rank${rank}]:[E ProcessGroupNCCL.cpp:523] [Rank ${rank}] Watchdog caught collective operation timeout: ` +
  `WorkNCCL(SeqNum=${sequence}, OpType=${operation}, NumelIn=8) ran for 1800238 milliseconds before timing out.\n`;

test('the error of the program, not the report of it, and the rank from the summary', () => {
  const { state, found } = read(
    `step 1\n${trace('ValueError: no such layer')}${elasticTrace}${summary(3, 1, 'To enable')}`,
  );
  expect(state).toBe('failed');
  expect(found).toMatchObject({
    kind: 'python_exception',
    consequence: false,
    evidence: { line: 4, text: 'ValueError: no such layer', rank: 3 },
  });
});

test('an error that is no consequence stands above one that is, whichever came first', () => {
  const reset = 'RuntimeError: [pair.cc:598] Connection closed by peer [10.0.0.2]:4242';
  expect(
    read(`[rank2]: ${reset}\n[rank3]: torch.cuda.OutOfMemoryError: CUDA out of memory.\n`).found,
  ).toMatchObject({ kind: 'cuda_oom', consequence: false, evidence: { rank: 3 } });
  expect(read(`${reset}\n${elasticTrace}${summary(0, 1, '')}`).found).toMatchObject({
    consequence: true,
    message: reset,
    evidence: { rank: 0 },
  });
});

test('a worker that was killed says nothing; torchrun says it, and what its peers say follows', () => {
  const killed = 'Signal 9 (SIGKILL) received by PID 4711';
  const { found } = read(
    `[rank0]: RuntimeError: Connection reset by peer\n${elasticTrace}${summary(1, -9, killed)}`,
  );
  expect(found).toMatchObject({ consequence: false, message: `rank 1: ${killed}`, evidence: { rank: 1 } });
});

test('a watchdog that runs out after the death of another rank is not the cause', () => {
  expect(read(death(-9) + watchdog(4, 9) + watchdog(5, 9)).found).toMatchObject({
    kind: 'host_oom',
    evidence: { line: 1 },
  });
  const found = read(trace('ValueError: bad') + watchdog(4, 9)).found;
  expect(found).toMatchObject({ kind: 'python_exception', evidence: { line: 3 } });
});

test('the abort of a watchdog is not a beginning of its own', () => {
  const aborted = summary(5, -6, 'Signal 6 (SIGABRT) received by PID 4711');
  expect(read(watchdog(5, 9) + aborted).found).toMatchObject({ kind: 'nccl_timeout', consequence: true });
  expect(read(watchdog(5, 9) + death(-11)).found?.kind).toBe('nccl_timeout');
  expect(read(death(-11)).found).toMatchObject({ kind: 'exit_code', consequence: false });
});

test.each([
  [
    'stronger, though it comes later',
    trace('ValueError: bad'),
    'CUDA error: uncorrectable ECC error encountered',
    'gpu_hw_ecc',
  ],
  [
    'storage before programs',
    trace('ValueError: bad'),
    'OSError: [Errno 28] No space left on device',
    'disk_full',
  ],
  [
    'programs before collectives',
    'ncclSystemError: System call failed',
    `[rank1]: KeyError: 'x'`,
    'python_exception',
  ],
  [
    'the first of equals',
    trace("KeyError: 'x'"),
    'RuntimeError: CUDA error: an illegal memory access was encountered',
    'python_exception',
  ],
])('%s', (_, first, second, kind) => expect(read(`${first}\n${second}\n`).found?.kind).toBe(kind));

test('workers that torchrun has ended are no beginning', () => {
  const output = `${elasticTrace}${summary(1, -15, 'Signal 15 (SIGTERM) received by PID 4711')}`;
  expect(read(output)).toMatchObject({
    state: 'stopped',
    found: { consequence: true, kind: 'stopped_by_signal' },
  });
});

test('whatever fails after it was asked to stop fails because of that, unless hardware or storage breaks', () => {
  const afterwards = trace('ValueError: I/O operation on closed file') + death(-9);
  expect(read(stopped + afterwards)).toMatchObject({ state: 'stopped', found: { evidence: { line: 1 } } });
  expect(read(trace('ValueError: bad') + stopped + death(-15)).found?.message).toBe('ValueError: bad');
  expect(read(`${stopped}OSError: [Errno 28] No space left on device\n`).found?.kind).toBe('disk_full');
  expect(read('^C\nTraceback (most recent call last):\nKeyboardInterrupt\n')).toMatchObject({
    state: 'stopped',
  });
});

test('exit codes alone', () => {
  expect(read(summary(2, 7, 'To enable traceback see')).found).toMatchObject({
    kind: 'exit_code',
    message: 'rank 2: exit code 7',
  });
  expect(read(death(1) + stopped).found).toMatchObject({
    consequence: false,
    message: 'local rank 1: exit code 1',
  });
  expect(read(`RuntimeError: Broken pipe\n${death(1)}`).found).toMatchObject({ consequence: true });
  expect(read(`ValueError: bad\n${death(1)}${stopped}`).found?.message).toBe('ValueError: bad');
  expect(read(death(-7)).found?.kind).toBe('shm_exhausted');
  expect(
    read(
      "[2026-01-05 10:00:00,000] [ERROR] [launch.py:321:sigkill_handler] ['python'] exits with return code = -9",
    ).found?.kind,
  ).toBe('host_oom');
  expect(read('srun: error: node-1: task 3: Segmentation fault (core dumped)').found).toMatchObject({
    kind: 'exit_code',
    evidence: { rank: 3 },
  });
  expect(read('Fatal Python error: Segmentation fault').found?.kind).toBe('exit_code');
  expect(read('run.sh: line 12:  4711 Killed                  python train.py').found?.kind).toBe('host_oom');
});

test('that the kernel killed for want of memory is reported only if nobody knows better', () => {
  expect(read(death(-9)).found).toMatchObject({
    kind: 'host_oom',
    blame: 'job',
    advice: expect.stringContaining('probably'),
  });
  expect(read(death(-9), badEnd).found).toMatchObject({ kind: 'unknown', blame: 'unknown' });
  const proven = read(death(-9), { ...badEnd, oomKilled: true }).found;
  expect(proven).toMatchObject({ kind: 'host_oom', evidence: { line: 1 } });
  expect(proven?.advice).not.toContain('probably');
  const loader = 'RuntimeError: DataLoader worker (pid 4711) is killed by signal: Killed.\n';
  expect(read(loader, badEnd).found?.kind).toBe('unknown');
  expect(read('step 1\n', { ...badEnd, oomKilled: true }).found).toMatchObject({
    kind: 'host_oom',
    evidence: { line: null },
  });
  expect(
    read(trace('torch.OutOfMemoryError: CUDA out of memory.'), { ...badEnd, oomKilled: true }).found?.kind,
  ).toBe('cuda_oom');
});

test('the end, where the output tells nothing', () => {
  expect(read('step 1\n')).toEqual({ state: 'running', found: null });
  expect(read(trace('ValueError: bad'), { exitCode: 0, signal: null, oomKilled: false })).toEqual({
    state: 'completed',
    found: null,
  });
  expect(read('step 1\n', badEnd).found).toMatchObject({
    kind: 'exit_code',
    evidence: { line: null, text: 'exit code 1' },
  });
  expect(read('', { exitCode: null, signal: 'SIGTERM', oomKilled: false }).state).toBe('stopped');
  expect(read('', { exitCode: null, signal: 'SIGKILL', oomKilled: false }).found).toMatchObject({
    kind: 'unknown',
  });
  expect(read('', { exitCode: null, signal: null, oomKilled: false }).found?.kind).toBe('unknown');
});

test('watchdogs in different collectives: the program; the same, one rank silent: that rank; the same everywhere: the network', () => {
  expect(
    read(watchdog(1, 1505645, '_ALLGATHER_BASE') + watchdog(0, 1505766, 'ALLGATHER')).found,
  ).toMatchObject({
    blame: 'job',
    retry: 'same_node',
    advice: expect.stringContaining('rank 1 in _ALLGATHER_BASE 1505645, rank 0 in ALLGATHER 1505766'),
  });
  const gather = (rank: number) =>
    watchdog(rank, 9, '_ALLGATHER_BASE').replace('NumelIn=8', 'NumelIn=8, NumelOut=32');
  expect(read(gather(0) + gather(1) + gather(3)).found).toMatchObject({
    blame: 'node',
    retry: 'other_node',
    advice: expect.stringContaining('rank 2'),
  });
  expect(read(gather(0) + gather(1)).found, 'two of four were not heard of').toMatchObject({
    blame: 'unknown',
  });
  expect(read(gather(0) + gather(1) + gather(2) + gather(3)).found).toMatchObject({ blame: 'network' });
  expect(read('[rank2]: loading\n' + watchdog(0, 9) + watchdog(1, 9)).found).toMatchObject({ blame: 'node' });
  expect(read(watchdog(0, 9) + watchdog(1, 9) + watchdog(3, 9)).found, 'an excerpt').toMatchObject({
    blame: 'unknown',
  });
  expect(read(watchdog(0, 9)).found, 'nobody to compare with').toMatchObject({ blame: 'unknown' });
});

test('the oldest watchdogs tell no number: another operation or shape is another collective', () => {
  const old = (rank: number, operation: string, shape: string) =>
    `[E ProcessGroupNCCL.cpp:828] [Rank ${rank}] Watchdog caught collective operation timeout: WorkNCCL(` +
    `OpType=${operation}, TensorShape=${shape}, Timeout(ms)=1800000) ran for 1806985 milliseconds before timing out.\n`;
  expect(read(old(0, 'BROADCAST', '[4]') + old(1, 'ALLREDUCE', '[4]')).found).toMatchObject({
    blame: 'job',
    advice: expect.stringContaining('rank 0 in BROADCAST, rank 1 in ALLREDUCE'),
  });
  expect(read(old(0, 'ALLREDUCE', '[4]') + old(1, 'ALLREDUCE', '[4]')).found).toMatchObject({
    blame: 'unknown',
  });
});

test('collectives of different groups are not compared', () => {
  const line = (rank: number, group: string, sequence: number) =>
    `[rank${rank}]:[E813 12:25:30.6 ProcessGroupNCCL.cpp:632] [PG ID 0 PG GUID ${group} Rank ${rank % 4}] ` +
    `Watchdog caught collective operation timeout: WorkNCCL(SeqNum=${sequence}, OpType=ALLREDUCE, NumelIn=1)\n`;
  expect(read(line(0, '4(tp)', 5) + line(4, '6(tp)', 80)).found).toMatchObject({
    blame: 'unknown',
    evidence: { rank: 0 },
  });
  const both = [line(0, '4(tp)', 5), line(1, '4(tp)', 5), line(2, '6(tp)', 80)];
  expect(read(both.join('')).found, 'two groups wait, each for its own reasons').toMatchObject({
    blame: 'unknown',
  });
});

test('a failure that the program goes on after is none', () => {
  const handled = trace('ValueError: bad sample');
  expect(read(`~1\n${handled}~2\n~3\n`)).toEqual({ state: 'running', found: null });
  expect(read(`~1\n${handled}${'skipped it\n'.repeat(60)}`).found).toBeNull();
  expect(
    read(`~1\n${trace('RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB.')}~2\n`).found,
  ).toBeNull();
  expect(
    read(`~1\n${death(1)}restarting\n~1\n~2\n~3\n~4\n`).found,
    'torchrun starts workers again',
  ).toBeNull();
});

test('what fails after one that was dealt with is the cause', () => {
  const output = `${trace('ImportError: no apex')}${'loading\n'.repeat(12)}${trace('ValueError: bad')}`;
  expect(read(output).found?.message).toBe('ValueError: bad');
  expect(
    read(`~1\n${trace('ValueError: first')}~2\n~3\n~4\n${trace('ValueError: second')}`).found?.message,
  ).toBe('ValueError: second');
});

test('what was reported long before the end is not why it ended', () => {
  const output = `${trace('ValueError: bad sample')}${'skipped it\n'.repeat(2_100)}${death(1)}`;
  expect(read(output).found?.kind).toBe('exit_code');
});

test('of two of the same sort, the one that the program did not go on after counts', () => {
  const output = `~1\n${trace('ValueError: first')}~2\n${trace('ValueError: second')}`;
  expect(read(output).found?.message).toBe('ValueError: second');
  expect(read(`${output}~3\n~4\n`).found).toBeNull();
});

test('a line that was under way when a rank died does not excuse it', () => {
  expect(read(`~1\n${trace('ValueError: bad')}~2\n${death(1)}`).found?.message).toBe('ValueError: bad');
  expect(read(`~1\n[rank3]: ValueError: bad\n~2\n`).found?.message).toBe('ValueError: bad');
  expect(read(`~1\n${trace('ValueError: bad')}~2\n`, badEnd).found?.message).toBe('ValueError: bad');
});

test.each([
  ['a logged warning', `WARNING - tokenizer: falling back\n${trace('ImportError: no rust')}`],
  [
    'a shutdown',
    `Exception ignored in: <function Pool.__del__ at 0x7f>\n${trace("AttributeError: 'NoneType'")}`,
  ],
  ['a logger that failed', `--- Logging error ---\n${trace('ValueError: bad format')}`],
  ['a thread of its own', `Exception in thread Thread-3:\n${trace('TimeoutError: upload')}`],
  ['words of its own', 'ValueError: skipped sample 17\n'],
])('%s counts only if it is known that the program failed', (_, output) => {
  expect(read(output).found).toBeNull();
  expect(read(output, badEnd).found?.kind).toMatch(/exception|import/);
});

test('what may have been dealt with is no cause of an end that comes steps later', () => {
  const output = `~1\n--- Logging error ---\n${trace('ValueError: bad format')}~2\n~3\n`;
  expect(read(output, badEnd).found?.kind).toBe('exit_code');
});

test('a frame alone begins no traceback: only an exception right below it ends one', () => {
  const frame = '  File "/srv/train.py", line 9, in main\n    step()\n';
  expect(read(`${frame}ValueError: bad\n`).found?.kind).toBe('python_exception');
  expect(read(`${frame}stack dumped on request\nValueError: skipped sample 17\n`).found).toBeNull();
});

test('done is done, unless something fails after', () => {
  const done = '`Trainer.fit` stopped: `max_epochs=1` reached.\n';
  expect(read(`${trace('ValueError: bad')}${done}`)).toEqual({ state: 'completed', found: null });
  expect(read(`${done}${trace('ValueError: bad')}`)).toMatchObject({ state: 'failed' });
  expect(read(`${trace('ValueError: bad')}${done}${death(1)}`).found?.message).toBe('ValueError: bad');
  expect(read(`${done}~1\n~2\n`).state, 'another stage').toBe('running');
});

test('an exception of a package without Error in its name ends a traceback', () => {
  expect(read(trace('torch._dynamo.exc.Unsupported: call_function')).found?.kind).toBe('python_exception');
  expect(read('torch._dynamo.exc.Unsupported: call_function\n', badEnd).found?.kind).toBe('exit_code');
});

test('lines of any length and of any bytes are borne', () => {
  const { found } = read(`${'x'.repeat(200_000)}\r[rank1]: ValueError: bad ${'y'.repeat(9_000)}\n\0\x01\n`);
  expect(found?.evidence.text.length).toBeLessThanOrEqual(500);
  expect(found?.evidence).toMatchObject({ rank: 1, line: 1 });
  const far = read(
    `${'|'.repeat(900)}[E] [Rank 5] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9,\n`,
  );
  expect(far.found?.evidence.text).toContain('Watchdog caught');
});
