import { MusterError } from '@muster/common/errors';
import { describe, expect, test } from 'vitest';
import { waitFor } from '../../../../test/support/services.ts';
import { exitCodes } from '../exitCodes.ts';
import { runCli } from '../program.ts';
import { aCause, aJob, anAttempt, wire } from '../testing/fakeCoordinator.ts';
import { fakeCoordinator, newCall, run } from '../testing/testContext.ts';

const failed = aJob({ state: 'failed', cause: aCause('exit_code', 'exited with code 3') });
const running = aJob({ state: 'running', attempts: [anAttempt()] });

test('requeue prints the id of the job that will run', async () => {
  const answers = {
    GetJob: () => wire.job(failed),
    RequeueJob: () => ({ jobId: 'job_dddddddddddd', newJob: true }),
  };
  const { stdout, stderr, requests } = await run(['requeue', failed.id], answers);
  expect(stdout).toBe('job_dddddddddddd\n');
  expect(stderr).toContain('a new job');
  expect(requests.at(-1)).toMatchObject({
    request: { jobId: failed.id, requestId: 'request-1', force: false },
  });
});

test('requeue survives a coordinator that is away for a moment, under the same request id', async () => {
  let calls = 0;
  const RequeueJob = () => {
    calls += 1;
    if (calls === 1) throw new MusterError('unavailable', 'starting');
    return { jobId: failed.id, newJob: false };
  };
  const { exitCode, stdout, requests } = await run(['requeue', failed.id], {
    GetJob: () => wire.job(failed),
    RequeueJob,
  });
  expect({ exitCode, stdout }).toEqual({ exitCode: exitCodes.ok, stdout: `${failed.id}\n` });
  expect(requests.slice(-2)).toMatchObject([
    { request: { requestId: 'request-1' } },
    { request: { requestId: 'request-1' } },
  ]);
});

describe('requeue of a running job', () => {
  const answers = {
    GetJob: () => wire.job(running),
    RequeueJob: () => ({ jobId: running.id, newJob: false }),
  };
  const asked = (requests: readonly { method: string }[]) =>
    requests.some(({ method }) => method === 'RequeueJob');

  test('wants --force where nobody can be asked', async () => {
    const { exitCode, stderr, requests } = await run(['requeue', running.id], answers);
    expect(exitCode).toBe(exitCodes.refused);
    expect(stderr).toMatch(/is running; requeueing it stops attempt \d/);
    expect(stderr).toContain(`To confirm: muster requeue ${running.id} --force`);
    expect(asked(requests)).toBe(false);
    const forced = await run(['requeue', running.id, '--force'], answers);
    expect(forced).toMatchObject({ exitCode: exitCodes.ok, stdout: `${running.id}\n` });
    expect(forced.requests.at(-1)).toMatchObject({ request: { force: true } });
  });

  test.each([
    ['y', exitCodes.ok],
    ['n', exitCodes.refused],
    ['\r', exitCodes.refused],
  ])('asks on a terminal, and %j is an answer', async (key, wanted) => {
    const coordinator = await fakeCoordinator(answers);
    const call = newCall(coordinator.address, { columns: 80 });
    const exit = runCli(['requeue', running.id], call.context);
    await waitFor('it asks', () => call.keyListeners.size > 0);
    call.press(key);
    expect(await exit).toBe(wanted);
    expect(call.stderr()).toContain('Continue? [y/N]');
    expect(asked(coordinator.requests)).toBe(wanted === exitCodes.ok);
  });
});

test('requeue --set sends the spec with the changes, or says all that is wrong with it', async () => {
  const answers = {
    GetJob: () => wire.job(failed),
    RequeueJob: () => ({ jobId: 'job_dddddddddddd', newJob: true }),
  };
  const changes = ['--set', 'env.LR=3e-4', '--set', 'resources.gpus=2'];
  const { requests } = await run(['requeue', failed.id, ...changes], answers);
  const sent = requests.at(-1)?.request as { specJson: string } | undefined;
  expect(JSON.parse(sent?.specJson ?? '')).toMatchObject({ env: { LR: '3e-4' }, resources: { gpus: 2 } });
  const wrong = await run(['requeue', failed.id, '--set', 'resources.gpus=many', '--set', 'lr=1'], answers);
  expect(wrong).toMatchObject({ exitCode: exitCodes.usage });
  expect(wrong.stderr).toContain('not a valid job: 2 problems');
  expect(wrong.stderr).toContain('--set resources.gpus');
  expect(wrong.stderr).toContain('--set lr');
  const unquoted = await run(['requeue', failed.id, '--set', 'command=[torchrun, train.py]'], answers);
  expect(unquoted).toMatchObject({ exitCode: exitCodes.usage });
  expect(unquoted.stderr).toContain('--set command=[torchrun, train.py]: the value is not JSON');
  expect(unquoted.stderr).toContain('Put double quotes around each text');
});
