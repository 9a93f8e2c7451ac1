import { MusterError } from '@muster/common/errors';
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
    ResolveJob: () => ({ jobId: running.id }),
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
    ['stop', waiting.id, 'llama', 'arr_0123456789ab', '--reason', 'typo'],
    answers,
  );
  expect(stdout).toBe(
    'job_bbbbbbbbbbbb  train is cancelled\njob_aaaaaaaaaaaa  llama is stopping\n' +
      'job_aaaaaaaaaaaa  llama had already succeeded\n',
  );
  expect(requests.at(-1)).toMatchObject({
    request: { ids: [waiting.id, running.id, 'arr_0123456789ab'], reason: 'typo', brief: true },
  });
});

test('stop survives a coordinator that is away for a moment, and then stops the job that the name meant at first', async () => {
  let calls = 0;
  const StopJobs = () => {
    calls += 1;
    if (calls === 1) throw new MusterError('unavailable', 'starting');
    return { jobs: [wire.job({ ...running, state: 'stopping' })], total: 1 };
  };
  // Whoever asks again is told of a job that was submitted meanwhile.
  const ResolveJob = () => ({ jobId: calls === 0 ? running.id : waiting.id });
  const { exitCode, requests } = await run(['stop', 'llama'], { ResolveJob, StopJobs });
  expect(exitCode).toBe(exitCodes.ok);
  const stopped = { method: 'StopJobs', request: { ids: [running.id] } };
  expect(requests).toMatchObject([{ method: 'ResolveJob' }, stopped, stopped]);
});

test('a token that is for changes only stops a job by its name too', async () => {
  const { exitCode, requests } = await run(['stop', 'llama'], {
    ResolveJob: () => {
      throw new MusterError('permission_denied', 'this token does not allow to read');
    },
    StopJobs: () => ({ jobs: [wire.job({ ...running, state: 'stopping' })], total: 1 }),
  });
  expect(exitCode).toBe(exitCodes.ok);
  expect(requests.at(-1)).toMatchObject({ method: 'StopJobs', request: { ids: ['llama'] } });
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
