/** A start that is no longer needed: a stop must not wait for a registry. */
import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { tempDir, waitFor } from '../../../../../test/support/services.ts';
import type { TaskLaunch } from '../driver.ts';
import { aLaunch } from '../launchFixture.ts';
import { containerName, labels } from './containerSpec.ts';
import { aDriver, agentId, anEngine, json, version } from './engineFixture.ts';

const reason = new Error('no longer needed');

function aTask(image: string): TaskLaunch {
  return aLaunch({ key: `a${randomUUID().slice(0, 13)}.1.0`, directory: tempDir('task').path, image });
}

it('gives up a pull that the engine never finishes, and the engine learns of it', async () => {
  let pulling = false;
  let isOpen = false;
  const { socketPath, asked } = await anEngine({
    'GET /version': version,
    'POST /images/create': (_request, response) => {
      isOpen = true;
      response.on('close', () => {
        isOpen = false;
      });
      response.write('{"status":"Pulling from library/trainer"}\n', () => {
        pulling = true;
      });
    },
  });
  const abort = new AbortController();
  const started = aDriver(socketPath).start(aTask('trainer:1'), abort.signal);
  await waitFor('the pull', () => pulling);
  abort.abort(reason);

  await expect(started).rejects.toBe(reason);
  await waitFor('the connection of the pull is closed', () => !isOpen);
  expect(asked.filter((call) => call.includes('/containers/create'))).toEqual([]);
});

it('deletes a container whose creation could not be given up any more, and does not start it', async () => {
  const launch = aTask('trainer:1');
  let finishCreation: (() => void) | null = null;
  const container = {
    Id: 'c1',
    Name: `/${containerName(launch.key)}`,
    State: { Status: 'created', Running: false, Pid: 0, ExitCode: 0, OOMKilled: false },
    Config: { Labels: { [labels.task]: launch.key, [labels.agent]: agentId } },
    HostConfig: {},
  };
  const { socketPath, asked } = await anEngine({
    'GET /version': version,
    'GET /info': json({}),
    'GET /images/trainer%3A1/json': json({ Config: {} }),
    'POST /containers/create': (_request, response) => {
      finishCreation = () => response.writeHead(201).end('{"Id":"c1"}');
    },
    'GET /containers/c1/json': json(container),
    'DELETE /containers/c1': (_request, response) => void response.writeHead(204).end(),
  });
  const abort = new AbortController();
  const started = aDriver(socketPath).start(launch, abort.signal);
  const finish = await waitFor('the creation', () => finishCreation, { until: (seen) => seen !== null });
  abort.abort(reason);
  finish?.();

  await expect(started).rejects.toBe(reason);
  expect(asked.at(-1)).toBe('DELETE /containers/c1');
  expect(asked).not.toContain('POST /containers/c1/start');
});
