import { expect, test } from 'vitest';
import { run } from '../testing/testContext.ts';

const jobId = 'job_0123456789ab';

test('a job that waits, or can never start, says so at once on stderr', async () => {
  const waits = {
    kind: 'never_fits',
    message: 'no node has 5 GPUs (largest has 2)',
    remedy: 'ask for at most 2 GPUs per node (resources.gpus), or add nodes',
  };
  const Submit = () => ({ jobIds: [jobId], waits });
  const never = await run(['submit', '--gpus', '5', '--', 'true'], { Submit });
  expect(never).toMatchObject({
    exitCode: 0,
    stdout: `${jobId}\n`,
    stderr: `queued, and cannot start: ${waits.message}\n${waits.remedy}\n`,
  });
  const busy = () => ({ ...Submit(), waits: { kind: 'no_gpus_free', message: 'waiting for 2 free GPUs' } });
  expect((await run(['submit', '--', 'true'], { Submit: busy })).stderr).toBe(
    'queued: waiting for 2 free GPUs\n',
  );
  const json = await run(['submit', '-o', 'json', '--', 'true'], { Submit });
  expect(JSON.parse(json.stdout)).toMatchObject({ waits: { kind: 'never_fits' } });
  expect(json.stderr).toBe('');
});
