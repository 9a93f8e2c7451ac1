import { MusterError } from '@muster/common/errors';
import { expect, test } from 'vitest';
import { failureOf } from './errors.ts';
import { exitCodes } from './exitCodes.ts';
import {
  explainingSilence,
  outagePatienceMs,
  retryWaitMs,
  submitPatienceMs,
  withSession,
} from './session.ts';
import { newCall } from './testing/testContext.ts';

const failing = async (why: MusterError) =>
  explainingSilence('jobs --all --request r-1', newCall(null).context, () => Promise.reject(why)).catch(
    (caught: unknown) => failureOf(caught),
  );

test('a write without an answer says that it may have been accepted, and how to find out', async () => {
  expect(await failing(new MusterError('deadline_exceeded', 'no answer within 30 s'))).toMatchObject({
    message: 'the coordinator did not answer in time; the request may have been accepted',
    hints: ['See whether it was: muster jobs --all --request r-1'],
    exitCode: exitCodes.deadlineExceeded,
  });
});

test('a write that was refused says only that', async () => {
  const refused = await failing(new MusterError('failed_precondition', 'the job has ended'));
  expect(refused).toMatchObject({ message: 'the job has ended', hints: [] });
});

test('a coordinator that is away is asked again until the end of the patience', async () => {
  const { context } = newCall('127.0.0.1:9');
  // The first try takes nearly all of the patience: less is left than the usual wait.
  const times = [0, 4_960, 5_000];
  const clock = { ...context.clock, monotonicMs: () => times.shift() ?? 5_000 };
  let tries = 0;
  const away = () => {
    tries += 1;
    return Promise.reject(new MusterError('unavailable', 'starting'));
  };
  const call = withSession({ ...context, clock }, {}, (session) =>
    session.retrying(away, { patienceMs: 5_000 }),
  );
  await expect(call).rejects.toThrow('starting');
  expect(tries).toBe(2);
});

test('a submit notices within half a second that the coordinator is back, and a follower within two', () => {
  const waits = (patienceMs: number) =>
    [1, 2, 3, 4, 5, 6].map((failures) => retryWaitMs(failures, patienceMs, 60_000));
  expect(waits(submitPatienceMs)).toEqual([100, 200, 400, 500, 500, 500]);
  expect(waits(outagePatienceMs)).toEqual([100, 200, 400, 800, 1_600, 2_000]);
  expect(retryWaitMs(6, submitPatienceMs, 40)).toBe(40);
});
