/** The engine reports an exit and a kill for lack of memory on two ways. */
import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { tempDir } from '../../../../../test/support/services.ts';
import { aLaunch } from '../launchFixture.ts';
import { containerName, labels } from './containerSpec.ts';
import { type Answer, aDriver, agentId, anEngine, json, version } from './engineFixture.ts';

it('knows an end for lack of memory whose exit the engine reports first', async () => {
  const launch = aLaunch({
    key: `a${randomUUID().slice(0, 13)}.1.0`,
    directory: tempDir('task').path,
    image: 'trainer:1',
  });
  let looks = 0;
  const ended: Answer = (request, response) => {
    looks += 1;
    const state = { Status: 'exited', Running: false, Pid: 0, ExitCode: 137, OOMKilled: looks > 2 };
    json({
      Id: 'c1',
      State: { ...state, StartedAt: '2026-01-01T00:00:00Z', FinishedAt: '2026-01-01T00:00:01Z' },
      Config: { Labels: { [labels.task]: launch.key, [labels.agent]: agentId, [labels.boot]: 'boot-1' } },
      HostConfig: { Memory: 33_554_432 },
    })(request, response);
  };
  const { socketPath } = await anEngine({
    'GET /version': version,
    [`GET /containers/${containerName(launch.key)}/json`]: ended,
    'GET /containers/c1/logs': (_request, response) => void response.writeHead(200).end(),
  });
  const exit = await aDriver(socketPath).wait(launch, new AbortController().signal);
  expect(exit).toMatchObject({ signal: 'SIGKILL', oomKilled: true });
});
