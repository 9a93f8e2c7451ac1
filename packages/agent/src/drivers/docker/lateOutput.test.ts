/** An engine that reports the end of a task, and then keeps the task's output to itself for a while. */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { expect, it, onTestFinished, vi } from 'vitest';
import { tempDir, waitFor } from '../../../../../test/support/services.ts';
import { aLaunch } from '../launchFixture.ts';
import { containerName, labels } from './containerSpec.ts';
import { aDriver, agentId, anEngine, json, version } from './engineFixture.ts';
import { outputPath } from './taskOutputs.ts';

it('does not keep a new agent waiting for the output of a task that has ended, and loses none of it', async () => {
  const launch = aLaunch({
    key: `a${randomUUID().slice(0, 13)}.1.0`,
    directory: tempDir('task').path,
    image: 'trainer:1',
  });
  const own = { [labels.task]: launch.key, [labels.agent]: agentId, [labels.boot]: 'boot-1' };
  let finishLog: (() => void) | null = null;
  const { socketPath } = await anEngine({
    'GET /version': version,
    [`GET /containers/${containerName(launch.key)}/json`]: json(endedWith(own)),
    'GET /containers/c1/json': json(endedWith(own)),
    'GET /containers/c1/logs': (_request, response) => {
      const line = Buffer.from('2026-01-01T00:00:00Z last\n');
      finishLog = () => response.writeHead(200).end(Buffer.from([1, 0, 0, 0, 0, 0, 0, line.length, ...line]));
    },
  });
  const timeout = AbortSignal.timeout.bind(AbortSignal);
  const late = new Error('the output takes too long');
  const timeouts = vi
    .spyOn(AbortSignal, 'timeout')
    .mockImplementation((ms) => (ms === 3_000 ? AbortSignal.abort(late) : timeout(ms)));
  onTestFinished(() => timeouts.mockRestore());

  const driver = aDriver(socketPath);
  await expect(driver.recover(launch)).rejects.toBe(late);
  const ended = driver.wait(launch, new AbortController().signal);
  const finish = await waitFor('the question for the output', () => finishLog, {
    until: (asked) => asked !== null,
  });
  finish?.();
  expect(await ended).toMatchObject({ exitCode: 3 });
  expect(readFileSync(outputPath(launch), 'utf8')).toBe('last\n');
});

function endedWith(own: Readonly<Record<string, string>>): object {
  const state = { Status: 'exited', Running: false, Pid: 0, ExitCode: 3, OOMKilled: false };
  return {
    Id: 'c1',
    State: { ...state, StartedAt: '2026-01-01T00:00:00Z', FinishedAt: '2026-01-01T00:00:01Z' },
    Config: { Labels: { ...own, [labels.output]: 'engine' } },
    HostConfig: {},
  };
}
