import { MusterError } from '@muster/common/errors';
import { expect, test } from 'vitest';
import { failureOf } from './errors.ts';
import { exitCodes } from './exitCodes.ts';
import { explainingSilence } from './session.ts';
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
