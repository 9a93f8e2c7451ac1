/** With the real engine: containers that `muster uninstall` finds. */

import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type JobId, taskKey } from '@muster/common/ids';
import { decodeJobSpec } from '@muster/common/spec/serialize';
import { expect, test } from 'vitest';
import { dockerSocketPath, tempDir } from '../../../test/support/services.ts';
import { aDriver, aTask, image, useDocker } from './drivers/docker/dockerFixture.ts';
import { endLeftContainers } from './leftContainers.ts';
import { fromNothing } from './tasks/managerFixture.ts';
import { TaskRecords } from './tasks/records.ts';

useDocker();

/** An agent that is gone, with a container that runs. */
async function anAgentThatIsGone() {
  const dataDir = tempDir('agent').path;
  const agentId = randomUUID();
  writeFileSync(join(dataDir, 'instance'), `${agentId}\n`);
  const records = new TaskRecords(join(dataDir, 'tasks'));
  const letters = randomUUID().replaceAll('-', '').slice(0, 12);
  const task = { jobId: `job_${letters}` as JobId, attempt: 1, nodeRank: 0 };
  const spec = decodeJobSpec(JSON.stringify({ name: 'test', image, command: ['sleep', '1000'] }));
  const assignment = { task, spec, nodeCount: 1, gpuUuids: [], array: null, ...fromNothing(task) };
  await records.create({ assignment, bootId: 'boot-1', phase: { kind: 'assigned' } });
  const driver = aDriver({ agentId });
  const launch = aTask({
    key: taskKey(task),
    directory: records.directory(task),
    command: ['sleep', '1000'],
  });
  await driver.start(launch);
  return { dataDir, driver, launch };
}

test('a container is ended, frozen or not, and removed from the engine', async () => {
  for (const isFrozen of [false, true]) {
    const { dataDir, driver, launch } = await anAgentThatIsGone();
    if (isFrozen) expect(await driver.freeze(launch)).toBe('frozen');
    expect(await endLeftContainers(dataDir, dockerSocketPath)).toEqual({ ended: 1, problem: null });
    expect(await driver.list()).toEqual([]);
    expect(await endLeftContainers(dataDir, dockerSocketPath)).toEqual({ ended: 0, problem: null });
    await driver.close();
  }
});

test('without an engine its processes are killed all the same, and what is left is told', async () => {
  const { dataDir, driver, launch } = await anAgentThatIsGone();
  const { path } = tempDir('engine');
  const silent = join(path, 'docker.sock');
  writeFileSync(silent, '');
  const outcome = await endLeftContainers(dataDir, silent);
  expect(outcome).toEqual({ ended: 1, problem: expect.stringContaining(silent) });
  expect(driver.processes(launch)).toEqual([]);
  // The same command again, once an engine answers.
  await endLeftContainers(dataDir, dockerSocketPath);
  expect(await driver.list()).toEqual([]);
  await driver.close();
});

test('where no agent was, nothing is asked', async () => {
  expect(await endLeftContainers(tempDir('none').path, '/nowhere.sock')).toEqual({ ended: 0, problem: null });
});
