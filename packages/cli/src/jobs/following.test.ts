/** Transition lines between the lines of a job's output, over retries and restarts of the coordinator. */
import { isTerminal } from '@muster/common/states';
import type { JobView } from '@muster/common/views';
import { expect, test } from 'vitest';
import { waitFor } from '../../../../test/support/services.ts';
import { exitCodes } from '../exitCodes.ts';
import { runCli } from '../program.ts';
import {
  type Answers,
  aCause,
  aJob,
  anAttempt,
  anEvent,
  aTask,
  logPiece,
  submittedAtMs,
  wire,
} from '../testing/fakeCoordinator.ts';
import { fakeCoordinator, newCall } from '../testing/testContext.ts';

const jobId = 'job_0123456789ab';
const tasks = [aTask()];
const cause = aCause('exit_code', 'exited with code 3');
const first = anAttempt({ tasks });
const failedFirst = anAttempt({ tasks, state: 'ended', cause });
const second = anAttempt({ number: 2, tasks });
const endedAtMs = submittedAtMs + 5_000;

const running = aJob({ state: 'running', attempts: [first] });
const pausing = aJob({
  attempts: [failedFirst],
  failures: 1,
  pending: { kind: 'backoff', message: 'next retry in 2 s', remedy: null, waitMs: 2_000 },
});
const runningAgain = aJob({ state: 'running', attempts: [failedFirst, second] });
const succeeded = aJob({
  state: 'succeeded',
  endedAtMs,
  attempts: [failedFirst, anAttempt({ number: 2, tasks, state: 'ended', endedAtMs })],
});

const firstRuns = '— attempt 1 runs on node-1 —\n';
const firstFailed = '— attempt 1 failed: exited with code 3. Retry 2/';
const secondRuns = '— attempt 2 runs on node-1 —\n';

/** One job, with an event at each change of it, and a line of output of each attempt. */
function coordinatorOf(now: () => JobView): Answers {
  const pause = () => new Promise((resolve) => setTimeout(resolve, 10));
  return {
    Submit: () => ({ jobIds: [jobId], repeatedRequest: false }),
    GetCluster: () => ({ lastEventSeq: 4 }),
    GetJob: () => wire.job(now()),
    WatchEvents: async function* (_request: unknown, aborted: AbortSignal) {
      let seen: JobView | null = null;
      for (let seq = 5; !aborted.aborted; await pause()) {
        if (now() === seen) continue;
        seen = now();
        yield wire.event(anEvent(seq++));
      }
    },
    ReadLogs: async function* (_request: unknown, aborted: AbortSignal) {
      let printed = 0;
      for (; !aborted.aborted; await pause()) {
        const { attempts, state } = now();
        for (const { number } of attempts.slice(printed))
          yield logPiece(`line of ${number}\n`, { attempt: number });
        printed = attempts.length;
        if (isTerminal(state)) return;
      }
    },
  };
}

/** Runs the command while the job goes through its retry. */
async function through(argv: readonly string[], answers: (now: () => JobView) => Answers) {
  let now = running;
  const coordinator = await fakeCoordinator(answers(() => now));
  const call = newCall(coordinator.address);
  const exit = runCli(argv, call.context);
  await waitFor('the first attempt prints', () => call.stdout().includes('line of 1\n'));
  now = pausing;
  await waitFor('the failure is told', () => call.stderr().includes(firstFailed));
  now = runningAgain;
  await waitFor('the second attempt is told', () => call.stderr().includes(secondRuns));
  now = succeeded;
  return { exitCode: await exit, stdout: call.stdout(), stderr: call.stderr() };
}

const timesIn = (text: string, part: string) => text.split(part).length - 1;

test('logs -f tells the transitions of the job between its lines, from where it joined', async () => {
  const { exitCode, stdout, stderr } = await through(['logs', '-f', jobId], coordinatorOf);
  expect({ exitCode, stdout }).toEqual({ exitCode: exitCodes.ok, stdout: 'line of 1\nline of 2\n' });
  expect(stderr).not.toContain(firstRuns);
  expect(timesIn(stderr, firstFailed)).toBe(1);
  expect(timesIn(stderr, secondRuns)).toBe(1);
});

test('requeue --follow tells the transitions of the new job, and ends with its end', async () => {
  const again = 'job_dddddddddddd';
  const before = aJob({ state: 'failed', cause });
  const { exitCode, stdout, stderr } = await through(['requeue', jobId, '--follow'], (now) => ({
    ...coordinatorOf(() => ({ ...now(), id: again })),
    GetJob: (request: { jobId: string }) =>
      wire.job(request.jobId === again ? { ...now(), id: again } : before),
    RequeueJob: () => ({ jobId: again, newJob: true }),
  }));
  expect({ exitCode, stdout }).toEqual({ exitCode: exitCodes.ok, stdout: 'line of 1\nline of 2\n' });
  expect(stderr).toMatch(new RegExp(`^${again}\nsubmitted again as a new job`));
  for (const line of [firstRuns, firstFailed, secondRuns]) expect(timesIn(stderr, line)).toBe(1);
  expect(stderr).toContain('train succeeded after');
});

test.each([
  ['submit --follow', ['submit', '--follow', '--', 'true']],
  ['submit --wait', ['submit', '--wait', '--', 'true']],
  ['logs -f', ['logs', '-f', jobId]],
])(
  '%s tells each transition once when the coordinator restarts during the pause of a retry',
  async (_name, argv) => {
    let now = running;
    const before = await fakeCoordinator(coordinatorOf(() => now));
    const call = newCall(before.address);
    const exit = runCli(argv, call.context);
    await waitFor('it watches', () => before.requests.some(({ method }) => method === 'WatchEvents'));
    now = pausing;
    await waitFor('the failure is told', () => call.stderr().includes(firstFailed));
    before.kill();
    // The pause lasts: what was told before the restart is told by nobody again.
    const after = await fakeCoordinator(
      coordinatorOf(() => now),
      before.address,
    );
    await waitFor('it watches again', () => after.requests.some(({ method }) => method === 'WatchEvents'));
    now = runningAgain;
    await waitFor('the second attempt is told', () => call.stderr().includes(secondRuns));
    now = succeeded;
    expect(await exit).toBe(exitCodes.ok);
    for (const line of [firstFailed, secondRuns]) expect(timesIn(call.stderr(), line)).toBe(1);
  },
);
