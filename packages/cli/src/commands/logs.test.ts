import { MusterError } from '@muster/common/errors';
import { expect, test } from 'vitest';
import { waitFor } from '../../../../test/support/services.ts';
import { exitCodes } from '../exitCodes.ts';
import { runCli } from '../program.ts';
import { type Answers, aJob, anAttempt, logPiece, silentStream, wire } from '../testing/fakeCoordinator.ts';
import { fakeCoordinator, newCall, run } from '../testing/testContext.ts';

const jobId = 'job_0123456789ab';
const attempt = anAttempt();

function aRunningJob(nodes: number, state: 'running' | 'succeeded' = 'running') {
  const spec = { name: 'train', command: ['true'], resources: { nodes, gpus: 0 } };
  return aJob({ state, spec, attempts: [attempt] });
}

/** Pieces in the order of their arrival; offsets are filled in. */
function logs(nodes: number, ...pieces: readonly (readonly [rank: number, text: string])[]): Answers {
  return {
    GetJob: () => wire.job(aRunningJob(nodes)),
    ReadLogs: async function* () {
      const offsets = new Map<number, number>();
      for (const [nodeRank, text] of pieces) {
        const offset = offsets.get(nodeRank) ?? 0;
        yield logPiece(text, { nodeRank, offset });
        offsets.set(nodeRank, offset + Buffer.byteLength(text));
      }
    },
  };
}

test('one rank is shown to the byte, also without a line end', async () => {
  const bytes = Buffer.from([0x00, 0xff, 0x0d, 0x61, 0x0a, 0x62]);
  const coordinator = await fakeCoordinator({
    GetJob: () => wire.job(aRunningJob(1)),
    ReadLogs: async function* () {
      yield logPiece(bytes.subarray(0, 2));
      yield logPiece(bytes.subarray(2), { offset: 2 });
    },
  });
  const call = newCall(coordinator.address);
  expect(await runCli(['logs', jobId], call.context)).toBe(exitCodes.ok);
  expect(call.stdoutBytes()).toEqual(bytes);
  expect(call.stderr()).toBe('');
});

test('lines of several ranks carry their rank and never mix', async () => {
  const { stdout } = await run(
    ['logs', jobId],
    logs(2, [0, 'step 1, lo'], [1, 'hello\nstep'], [0, 'ss 3\nstep 2'], [1, ' 1\n']),
  );
  expect(stdout).toBe('[1] hello\n[0] step 1, loss 3\n[1] step 1\n[0] step 2\n');
});

test('ranks have colours of their own on a terminal', async () => {
  const { stdout } = await run(['logs', jobId], logs(2, [0, '\x1b[1mbold\n'], [1, 'plain\n']), {
    columns: 80,
  });
  expect(stdout).toBe('\x1b[0m\x1b[36m[0]\x1b[39m \x1b[1mbold\x1b[0m\n\x1b[0m\x1b[33m[1]\x1b[39m plain\n');
});

test('--rank, --attempt and --tail reach the coordinator, and one rank needs no prefix', async () => {
  const { stdout, requests } = await run(
    ['logs', jobId, '--rank', '1', '--attempt', '1', '--tail', '5'],
    logs(2, [1, 'x\n']),
  );
  expect(stdout).toBe('x\n');
  expect(requests.at(-1)).toMatchObject({
    request: { jobId, nodeRank: 1, attempt: 1, tailLines: 5, follow: false },
  });
});

test('-o json prints one object a line', async () => {
  const { stdout } = await run(['logs', jobId, '-o', 'json'], logs(2, [0, 'a\nb'], [1, 'ü\n']));
  expect(
    stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line)),
  ).toEqual([
    { attempt: 1, nodeRank: 0, line: 'a' },
    { attempt: 1, nodeRank: 1, line: 'ü' },
    { attempt: 1, nodeRank: 0, line: 'b' },
  ]);
});

test('a job that has not started says what it waits for', async () => {
  const pending = { kind: 'no_gpus_free', message: 'no GPUs are free', remedy: null } as const;
  const { exitCode, stdout, stderr } = await run(['logs', jobId], {
    GetJob: () => wire.job(aJob({ pending })),
    ReadLogs: async function* () {},
  });
  expect({ exitCode, stdout, stderr }).toEqual({
    exitCode: exitCodes.ok,
    stdout: '',
    stderr: 'train has no output yet. train queued: no GPUs are free\n',
  });
});

test('-f goes on after a restart of the coordinator: every byte once', async () => {
  const whole = Array.from({ length: 200 }, (_, line) => `line ${line}\n`).join('');
  const until = (end: number, state: 'running' | 'succeeded'): Answers => ({
    GetJob: () => wire.job(aRunningJob(1, state)),
    ReadLogs: async function* (request: { tailLines?: number }, aborted: AbortSignal) {
      expect(request.tailLines).toBeUndefined();
      for (let at = 0; at < end; at += 100)
        yield logPiece(whole.slice(at, Math.min(end, at + 100)), { offset: at });
      if (state === 'running') yield* silentStream(null, aborted);
    },
  });
  const first = await fakeCoordinator(until(777, 'running'));
  const call = newCall(first.address);
  const running = runCli(['logs', '-f', jobId], call.context);
  await waitFor('the first part', () => call.stdoutBytes().length === 777);
  first.kill();
  await fakeCoordinator(until(whole.length, 'succeeded'), first.address);
  expect(await running).toBe(exitCodes.ok);
  expect(call.stdout()).toBe(whole);
});

test('-f is not ended by a stream that ends before the job', async () => {
  let streams = 0;
  const { exitCode, stdout } = await run(['logs', '-f', jobId], {
    GetJob: () => wire.job(aRunningJob(1, streams < 2 ? 'running' : 'succeeded')),
    ReadLogs: async function* () {
      streams += 1;
      yield logPiece('a\n');
      if (streams > 1) yield logPiece('b\n', { offset: 2 });
    },
  });
  expect({ exitCode, stdout, streams }).toEqual({ exitCode: exitCodes.ok, stdout: 'a\nb\n', streams: 2 });
});

test('-f ends without what a silent node has not sent, and says so', async () => {
  const missing = (silentForMs: number | null) => ({ node: 'node-2', bytes: 2_048, silentForMs });
  const answers = (state: 'running' | 'succeeded'): Answers => ({
    GetJob: () => wire.job(aRunningJob(2, state)),
    ReadLogs: async function* () {
      yield logPiece('half a li', { nodeRank: 1 });
      yield logPiece('', { nodeRank: 1, offset: 9, missing: missing(3 * 3_600_000) });
      yield logPiece('', { nodeRank: 0, attempt: 2, missing: missing(null) });
    },
  });
  const { exitCode, stdout, stderr } = await run(['logs', '-f', jobId], answers('succeeded'));
  expect({ exitCode, stdout }).toEqual({ exitCode: exitCodes.ok, stdout: '[1] half a li\n' });
  expect(stderr).toBe(
    "node-2 has not sent the end of rank 1's output (2 KiB); it is silent for 3 h\n" +
      "node-2 has not sent the end of rank 0's output of attempt 2 (2 KiB); the coordinator has had no contact with it since it started\n" +
      `Once the node is back, see the rest with: muster logs ${jobId}\n`,
  );
  expect((await run(['logs', jobId], answers('running'))).stderr, 'also without -f').toBe(stderr);
});

test('-f marks a new attempt on stderr', async () => {
  const { stdout, stderr } = await run(['logs', '-f', jobId], {
    GetJob: () => wire.job(aRunningJob(1, 'succeeded')),
    ReadLogs: async function* () {
      yield logPiece('first\n');
      yield logPiece('second\n', { attempt: 2 });
    },
  });
  expect({ stdout, stderr }).toEqual({ stdout: 'first\nsecond\n', stderr: '--- attempt 2 ---\n' });
});

test('Ctrl-C stops the showing, not the job', async () => {
  const coordinator = await fakeCoordinator({
    GetJob: () => wire.job(aRunningJob(1)),
    ReadLogs: async function* (_request: unknown, aborted: AbortSignal) {
      yield logPiece('a\n');
      yield* silentStream(null, aborted);
    },
  });
  const call = newCall(coordinator.address);
  const running = runCli(['logs', '-f', jobId], call.context);
  await waitFor('output', () => call.stdout() === 'a\n');
  call.pressCtrlC();
  expect(await running).toBe(exitCodes.interrupted);
  expect(call.stderr()).toBe(`Detached. ${jobId} is still running. Reattach: muster logs -f ${jobId}\n`);
});

test('Ctrl-C after the end of the job says that it has ended, and while no coordinator answers it says nothing of it', async () => {
  let state: 'running' | 'succeeded' = 'running';
  const answers: Answers = {
    GetJob: () => wire.job(aRunningJob(1, state)),
    ReadLogs: async function* (_request: unknown, aborted: AbortSignal) {
      yield logPiece('a\n');
      yield* silentStream(null, aborted);
    },
  };
  const coordinator = await fakeCoordinator(answers);
  const interrupted = async (before: () => void) => {
    const call = newCall(coordinator.address);
    const running = runCli(['logs', '-f', jobId], call.context);
    await waitFor('output', () => call.stdout() === 'a\n');
    before();
    call.pressCtrlC();
    expect(await running).toBe(exitCodes.interrupted);
    return call.stderr();
  };
  expect(await interrupted(() => (state = 'succeeded'))).toContain(`Detached. ${jobId} has ended.`);
  expect(await interrupted(() => coordinator.kill())).toContain(`Detached. ${jobId} was not stopped.`);
});

test('output that is removed while it is read ends the reading with an error, after what was read', async () => {
  const message = `output of ${jobId} was removed while it was read: 90 bytes of attempt 1, rank 0 from byte 9 on are gone`;
  for (const flags of [[], ['-f'], ['-o', 'json']]) {
    const { exitCode, stdout, stderr } = await run(['logs', jobId, ...flags], {
      GetJob: () => wire.job(aRunningJob(1, 'succeeded')),
      ReadLogs: async function* () {
        yield logPiece('half a li');
        await Promise.resolve();
        throw new MusterError('not_found', message);
      },
    });
    expect(exitCode).toBe(exitCodes.notFound);
    expect(stdout).toContain('half a li');
    expect(stderr).toContain(message);
  }
});

test('-f names where it has read to when the stream is opened again', async () => {
  const asked: unknown[] = [];
  await run(['logs', '-f', jobId, '--tail', '3'], {
    GetJob: () => wire.job(aRunningJob(1, asked.length < 2 ? 'running' : 'succeeded')),
    ReadLogs: async function* (request: unknown) {
      asked.push(request);
      yield logPiece('a\n', { offset: 10 });
    },
  });
  expect(asked).toMatchObject([
    { tailLines: 3, from: [] },
    { from: [{ attempt: 1, nodeRank: 0, offset: 12 }] },
  ]);
});

test('logs rm removes what is kept of a job, and says how much that was', async () => {
  const answers = {
    GetJob: () => wire.job(aRunningJob(1)),
    RemoveLogs: () => ({ jobId, bytesFreed: 5 * 1024 }),
  };
  const removed = await run(['logs', 'rm', jobId], answers);
  expect(removed).toMatchObject({ exitCode: exitCodes.ok, stderr: '' });
  expect(removed.stdout).toMatch(new RegExp(`^${jobId} no longer has output here; 5(\\.0)? KiB freed\\n$`));
  expect(removed.requests.at(-1)).toMatchObject({ method: 'RemoveLogs', request: { jobId } });
  const json = await run(['logs', 'rm', jobId, '-o', 'json'], answers);
  expect(JSON.parse(json.stdout)).toEqual({ jobId, bytesFreed: 5 * 1024 });
  const nothing = await run(['logs', 'rm', jobId], {
    ...answers,
    RemoveLogs: () => ({ jobId, bytesFreed: 0 }),
  });
  expect(nothing.stdout).toBe(`${jobId} had no output here\n`);
});
