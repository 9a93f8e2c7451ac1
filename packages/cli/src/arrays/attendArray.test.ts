import { expect, test } from 'vitest';
import { waitFor } from '../../../../test/support/services.ts';
import { exitCodes } from '../exitCodes.ts';
import { runCli } from '../program.ts';
import { aMember, arrayAnswers, arrayId, memberId } from '../testing/arrayFixture.ts';
import { aCause, anAttempt } from '../testing/fakeCoordinator.ts';
import { fakeCoordinator, newCall, run } from '../testing/testContext.ts';

const cause = aCause('exit_code', 'exited with code 3');
const ended = anAttempt({ state: 'ended', cause });
const accepted = { jobIds: [0, 1, 2].map(memberId), arrayId };
const member = (index: number, state: 'queued' | 'running' | 'succeeded' | 'failed') =>
  aMember(index, { state, ...(state === 'failed' ? { cause, attempts: [ended] } : {}) }, 3);

/** What the coordinator knows at each look, which takes two lists; the last one stays. */
function looks(...states: readonly (readonly Parameters<typeof member>[1][])[]) {
  let lists = 0;
  return {
    ...arrayAnswers(
      () => {
        const now = states[Math.min(states.length - 1, Math.floor(lists++ / 2))] ?? [];
        return now.map((state, index) => member(index, state));
      },
      3,
      1_000,
    ),
    Submit: () => accepted,
  };
}

test.each(['--wait', '--follow'])(
  'submit --array %s tells counts and failures, and ends with the worst',
  async (flag) => {
    const answers = looks(
      ['queued', 'queued', 'queued'],
      ['running', 'queued', 'queued'],
      ['succeeded', 'failed', 'running'],
      ['succeeded', 'failed', 'succeeded'],
    );
    const { exitCode, stdout, stderr } = await run(['submit', '--array', '3', flag, '--', 'true'], answers);
    expect(exitCode).toBe(exitCodes.jobFailed);
    expect(stdout).toBe(`${arrayId}\n`);
    // In a pipe the counts come from time to time only, the failures always, and each once.
    expect(stderr).toMatch(/^— 3 queued —\n/);
    expect(stderr.match(/— sweep\[1\] failed: exited with code 3 —\n/g)).toHaveLength(1);
    expect(stderr).toContain(
      `1 of 3 jobs did not succeed: 2 succeeded, 1 failed\nMore with: muster explain ${arrayId}\n`,
    );
  },
);

test('all of them succeeded: exit code 0; with -o json the summary follows', async () => {
  const answers = looks(['queued', 'running', 'succeeded'], ['succeeded', 'succeeded', 'succeeded']);
  const { exitCode, stdout, stderr } = await run(
    ['submit', '--array', '3', '--wait', '-o', 'json', '--', 'true'],
    answers,
  );
  expect(exitCode).toBe(exitCodes.ok);
  expect(stderr).toContain('all 3 jobs succeeded\n');
  const [submitted, summary] = stdout.trim().split('\n');
  expect(JSON.parse(submitted ?? '')).toMatchObject({ arrayId });
  expect(JSON.parse(summary ?? '')).toMatchObject({ array: { id: arrayId }, counts: { succeeded: 3 } });
});

test('a failed attempt is reported while its job waits for the retry', async () => {
  const pending = { kind: 'backoff', message: 'waiting 2 s', remedy: null, waitMs: 2_000 } as const;
  const waiting = aMember(2, { failures: 1, pending, attempts: [ended] }, 3);
  let isOver = false;
  const done = [0, 1, 2].map((index) => member(index, 'succeeded'));
  const answers = arrayAnswers(() => (isOver ? done : [...done.slice(0, 2), waiting]), 3);
  const coordinator = await fakeCoordinator({ ...answers, Submit: () => accepted });
  const call = newCall(coordinator.address);
  const running = runCli(['submit', '--array', '3', '--follow', '--', 'true'], call.context);
  await waitFor('the failure is told', () =>
    call.stderr().includes('— sweep[2]: attempt 1 failed: exited with code 3. Retry 2/'),
  );
  isOver = true;
  expect(await running).toBe(exitCodes.ok);
});

test('jobs of a large array that are not stored yet count as queued, not as succeeded', async () => {
  let stored = 1;
  const answers = arrayAnswers(
    () => [0, 1, 2].slice(0, stored).map((index) => member(index, 'succeeded')),
    3,
    2,
    () => 3 - stored,
  );
  const coordinator = await fakeCoordinator({ ...answers, Submit: () => accepted });
  const call = newCall(coordinator.address);
  const running = runCli(['submit', '--array', '3', '--wait', '--', 'true'], call.context);
  await waitFor('the counts', () => call.stderr().includes('— 2 queued, 1 succeeded —'));
  stored = 3;
  expect(await running).toBe(exitCodes.ok);
  expect(call.stderr()).toContain('all 3 jobs succeeded\n');
});

test('many failures at once are printed in some lines', async () => {
  const many = Array.from({ length: 100 }, (_, index) => member(index, 'failed'));
  const { stderr } = await run(['submit', '--array', '100', '--wait', '--', 'true'], {
    ...arrayAnswers(() => many, 100, 1_000),
    Submit: () => ({ jobIds: many.map(({ id }) => id), arrayId }),
  });
  expect(stderr.match(/ failed: exited with code 3 —/g)).toHaveLength(20);
  expect(stderr).toContain(`— and 80 more; muster explain ${arrayId} —\n`);
});

test('Ctrl-C leaves the array running', async () => {
  const coordinator = await fakeCoordinator(looks(['queued', 'queued', 'queued']));
  const call = newCall(coordinator.address);
  const running = runCli(['submit', '--array', '3', '--follow', '--', 'true'], call.context);
  await waitFor('it waits', () => call.stderr().includes('3 queued'));
  call.pressCtrlC();
  expect(await running).toBe(exitCodes.interrupted);
  expect(call.stderr()).toContain(`Reattach: muster logs -f ${arrayId}\nStop it: muster stop ${arrayId}\n`);
});
