import { MusterError } from '@muster/common/errors';
import { expect, test } from 'vitest';
import { waitFor } from '../../../../test/support/services.ts';
import { exitCodes } from '../exitCodes.ts';
import { runCli } from '../program.ts';
import { aMember, arrayAnswers, arrayId, memberId } from '../testing/arrayFixture.ts';
import { aCause, anAttempt, logPiece, silentStream, wire } from '../testing/fakeCoordinator.ts';
import { fakeCoordinator, newCall, run } from '../testing/testContext.ts';
import { streamsAtOnce } from './arrayLogs.ts';

const attempts = [anAttempt()];
const ended = [anAttempt({ state: 'ended' })];

test('logs of an array shows job after job, each line with its index', async () => {
  const members = [
    aMember(0, { state: 'succeeded', attempts: ended }),
    aMember(1, { state: 'queued' }),
    aMember(2, { state: 'running', attempts }),
  ];
  const answers = {
    ...arrayAnswers(() => members, 3),
    ReadLogs: async function* ({ jobId }: { jobId: string }) {
      yield logPiece(`hello of ${jobId}\nno line end`);
      yield logPiece('second rank\n', { nodeRank: 1 });
    },
  };
  const { exitCode, stdout, requests } = await run(['logs', 'sweep', '--tail', '5'], answers);
  expect(exitCode).toBe(exitCodes.ok);
  expect(stdout).toBe(
    `[0] hello of ${memberId(0)}\n[0:1] second rank\n[0] no line end\n` +
      `[2] hello of ${memberId(2)}\n[2:1] second rank\n[2] no line end\n`,
  );
  expect(requests.at(-1)).toMatchObject({ request: { jobId: memberId(2), tailLines: 5, follow: false } });
  const json = await run(['logs', arrayId, '-o', 'json'], answers);
  expect(JSON.parse(json.stdout.split('\n')[0] ?? '')).toEqual({
    index: 0,
    jobId: memberId(0),
    attempt: 1,
    nodeRank: 0,
    line: `hello of ${memberId(0)}`,
  });
  const acting = await run(['logs', arrayId, '-o', 'json'], {
    ...answers,
    ReadLogs: async function* () {
      yield logPiece('clear \u009b2J\n');
    },
  });
  expect(acting.stdout, 'nothing in it acts on a terminal').toContain('"clear \\u009b2J"');
  const waiting = arrayAnswers(() => [aMember(1), aMember(2)], 2);
  expect((await run(['logs', 'sweep'], waiting)).stderr).toBe('sweep has no output. 2 queued\n');
});

test('-f follows the jobs as they start, tells failures, and ends with the last job', async () => {
  const state = { of: ['running', 'queued'] as ('running' | 'queued' | 'succeeded' | 'failed')[] };
  const cause = aCause('exit_code', 'exited with code 3');
  const member = (index: number) => {
    const now = state.of[index] ?? 'queued';
    return aMember(index, {
      state: now,
      attempts: now === 'queued' ? [] : now === 'running' ? attempts : ended,
      ...(now === 'failed' ? { cause } : {}),
    });
  };
  const coordinator = await fakeCoordinator({
    ...arrayAnswers(() => [member(0), member(1)], 2),
    GetJob: ({ jobId }: { jobId: string }) => wire.job(member(Number(jobId.slice(4)))),
    ReadLogs: async function* ({ jobId }: { jobId: string }, aborted: AbortSignal) {
      const index = Number(jobId.slice(4));
      yield logPiece(`line of ${index}\n`);
      while (state.of[index] === 'running' && !aborted.aborted)
        await new Promise((resolve) => setTimeout(resolve, 10));
    },
  });
  const call = newCall(coordinator.address);
  const running = runCli(['logs', '-f', 'sweep'], call.context);
  await waitFor('the first job', () => call.stdout() === '[0] line of 0\n');
  state.of = ['running', 'running'];
  await waitFor('the second job, while the first runs', () => call.stdout().includes('[1] line of 1\n'));
  state.of = ['succeeded', 'failed'];
  expect(await running).toBe(exitCodes.ok);
  expect(call.stdout()).toBe('[0] line of 0\n[1] line of 1\n');
  expect(call.stderr()).toContain('— sweep[1] failed: exited with code 3 —\n');
});

test('-f holds a bounded number of streams, and says so', async () => {
  const members = Array.from({ length: streamsAtOnce + 8 }, (_, index) =>
    aMember(index, { state: 'running', attempts }),
  );
  let open = 0;
  let most = 0;
  const coordinator = await fakeCoordinator({
    ...arrayAnswers(() => members, members.length, 1_000),
    ReadLogs: async function* (_request: unknown, aborted: AbortSignal) {
      open += 1;
      most = Math.max(most, open);
      yield logPiece('a\n');
      yield* silentStream(null, aborted);
    },
  });
  const call = newCall(coordinator.address);
  const running = runCli(['logs', '-f', 'sweep'], call.context);
  await waitFor('the streams', () => call.stdout().split('\n').length > streamsAtOnce);
  expect(call.stderr()).toBe(
    `— ${streamsAtOnce} jobs are followed at the same time, the others once one of these has ended —\n`,
  );
  call.pressCtrlC();
  expect(await running).toBe(exitCodes.interrupted);
  expect(most).toBe(streamsAtOnce);
  expect(call.stderr()).toContain(`Reattach: muster logs -f ${arrayId}\n`);
});

test('-f ends only when all jobs of a large array are stored', async () => {
  let stored = 1;
  const coordinator = await fakeCoordinator({
    ...arrayAnswers(
      () => [0, 1].slice(0, stored).map((index) => aMember(index, { state: 'succeeded', attempts: ended })),
      2,
      2,
      () => 2 - stored,
    ),
    GetJob: ({ jobId }: { jobId: string }) =>
      wire.job(aMember(Number(jobId.slice(4)), { state: 'succeeded' })),
    ReadLogs: async function* ({ jobId }: { jobId: string }) {
      yield logPiece(`line of ${Number(jobId.slice(4))}\n`);
    },
  });
  const call = newCall(coordinator.address);
  const running = runCli(['logs', '-f', 'sweep'], call.context);
  await waitFor('the first job', () => call.stdout() === '[0] line of 0\n');
  const looks = () => coordinator.requests.filter(({ method }) => method === 'ListJobs').length;
  const before = looks();
  await waitFor('another look', () => looks() > before);
  stored = 2;
  expect(await running).toBe(exitCodes.ok);
  expect(call.stdout()).toBe('[0] line of 0\n[1] line of 1\n');
});

test('-f fails when a stream does, also while it looks which jobs there are', async () => {
  let looks = 0;
  let hasFailed = false;
  const until = async (isSo: () => boolean) => {
    while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 10));
  };
  const state = () => (looks < 2 ? 'running' : 'succeeded');
  const { ListJobs, ...answers } = arrayAnswers(() => [aMember(0, { state: state(), attempts })], 1);
  const coordinator = await fakeCoordinator({
    ...answers,
    ResolveJob: () => ({ array: { id: arrayId, size: 2, name: 'sweep' } }),
    ListJobs: async (...given: Parameters<NonNullable<typeof ListJobs>>) => {
      looks += 1;
      if (looks > 1) await until(() => hasFailed);
      return ListJobs?.(...given);
    },
    ReadLogs: async function* () {
      yield logPiece('a\n');
    },
    // Asked once the stream is at its end: whether the job is too.
    GetJob: async () => {
      await until(() => looks > 1);
      hasFailed = true;
      throw new MusterError('failed_precondition', 'the disk of the logs is broken');
    },
  });
  const call = newCall(coordinator.address);
  expect(await runCli(['logs', '-f', 'sweep'], call.context)).not.toBe(exitCodes.ok);
  expect(call.stderr()).toContain('the disk of the logs is broken');
});
