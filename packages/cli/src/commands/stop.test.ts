import { expect, test } from 'vitest';
import { waitFor } from '../../../../test/support/services.ts';
import { exitCodes } from '../exitCodes.ts';
import { runCli } from '../program.ts';
import { aJob, wire } from '../testing/fakeCoordinator.ts';
import { fakeCoordinator, newCall, run } from '../testing/testContext.ts';

const running = aJob({ id: 'job_aaaaaaaaaaaa', name: 'llama', state: 'running' });
const waiting = aJob({ id: 'job_bbbbbbbbbbbb' });

test('stop takes ids, names and arrays, and says what became of each', async () => {
  const answers = {
    StopJobs: () => ({
      jobs: [
        { ...waiting, state: 'cancelled' as const },
        { ...running, state: 'stopping' as const },
        { ...running, state: 'succeeded' as const },
      ].map(wire.job),
      total: 3,
    }),
  };
  const { stdout, requests } = await run(
    ['stop', 'job_bbbbbb', 'llama', 'arr_0123456789ab', '--reason', 'typo'],
    answers,
  );
  expect(stdout).toBe(
    'job_bbbbbbbbbbbb  train is cancelled\njob_aaaaaaaaaaaa  llama is stopping\n' +
      'job_aaaaaaaaaaaa  llama had already succeeded\n',
  );
  expect(requests.at(-1)).toMatchObject({
    request: { ids: ['job_bbbbbb', 'llama', 'arr_0123456789ab'], reason: 'typo', brief: true },
  });
});

test('a stop that takes its time shows on a terminal that it is under way', async () => {
  const stopped = Promise.withResolvers<void>();
  const coordinator = await fakeCoordinator({
    StopJobs: () =>
      stopped.promise.then(() => ({ jobs: [wire.job(aJob({ state: 'cancelled' }))], total: 1 })),
  });
  const call = newCall(coordinator.address, { columns: 80 });
  const stopping = runCli(['stop', 'arr_0123456789ab'], call.context);
  await waitFor('progress', () => call.stderr().includes('Stopping … '));
  stopped.resolve();
  expect(await stopping).toBe(exitCodes.ok);
  expect(call.stdout()).toContain('is cancelled');
});

test('stop without anything left to stop says so', async () => {
  const { exitCode, stderr } = await run(['stop', 'arr_0123456789ab'], {
    StopJobs: () => ({ jobs: [], total: 0 }),
  });
  expect({ exitCode, stderr }).toEqual({
    exitCode: exitCodes.ok,
    stderr: 'Nothing left to stop: all of these jobs have ended.\n',
  });
});

test('a stop of more jobs than one answer lists counts all of them', async () => {
  const jobs = Array.from({ length: 25 }, () => wire.job({ ...waiting, state: 'cancelled' }));
  const answers = { StopJobs: () => ({ jobs, total: 5_000 }) };
  const { stdout } = await run(['stop', 'arr_0123456789ab'], answers);
  expect(stdout.trimEnd().split('\n')).toHaveLength(21);
  expect(stdout).toMatch(/\n… and 4980 more\n$/);
  expect(JSON.parse((await run(['stop', 'arr_0123456789ab', '-o', 'json'], answers)).stdout)).toMatchObject({
    total: 5_000,
  });
});
