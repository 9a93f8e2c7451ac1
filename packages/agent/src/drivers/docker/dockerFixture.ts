/** Tasks of the Docker driver for tests, with the real engine. All are gone after each test. */

import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { silentLogger } from '@muster/common/log';
import { afterEach, beforeAll, expect } from 'vitest';
import { ensureTestImage } from '../../../../../test/support/images.ts';
import { dockerSocketPath, tempDir } from '../../../../../test/support/services.ts';
import { DriverError } from '../../taskFacts/errors.ts';
import type { TaskExit } from '../../taskFacts/execution.ts';
import type { TaskDriver, TaskLaunch } from '../driver.ts';
import { aLaunch } from '../launchFixture.ts';
import { RecordingFence } from '../recordingFence.ts';
import { type ContainerPolicy, containerDefaults } from './containerPolicy.ts';
import { createDockerDriver, type DockerDriverOptions } from './dockerDriver.ts';

/** What containers may do, and a data directory that is nobody's. */
const here = { policy: containerDefaults, dataDir: '/var/lib/muster-of-a-test' };

export const never = new AbortController().signal;

export let image = '';
export const agentId = randomUUID();
let launches: TaskLaunch[] = [];

/** Brings the image of the tests of a file, and removes the tasks of each test. */
export function useDocker(): void {
  beforeAll(async () => {
    image = await ensureTestImage();
  });
  afterEach(async () => {
    const driver = aDriver();
    for (const launch of launches) {
      await driver.stop(launch, { signal: 'SIGKILL', graceMs: 0 });
      await driver.remove(launch);
    }
    expect(await driver.list(), 'containers left behind').toEqual([]);
    await driver.close();
    launches = [];
  });
}

export function aDriver(options: Partial<DockerDriverOptions> = {}): TaskDriver {
  const fence = new RecordingFence();
  const defaults = {
    ...here,
    socketPath: dockerSocketPath,
    agentId,
    bootId: 'boot-1',
    fence,
    log: silentLogger,
  };
  return createDockerDriver({ ...defaults, ...options });
}

export function aTask(task: Partial<TaskLaunch> = {}): TaskLaunch {
  const key = `d${randomUUID().slice(0, 13)}.1.0`;
  const launch = aLaunch({ key, directory: tempDir('task').path, image, ...task });
  launches.push(launch);
  return launch;
}

export function outputOf(launch: TaskLaunch): string {
  return readFileSync(join(launch.directory, 'output.log'), 'utf8');
}

export async function run(
  task: Partial<TaskLaunch>,
  policy: Partial<ContainerPolicy> = {},
): Promise<TaskExit & { output: string }> {
  const launch = aTask(task);
  const driver = aDriver({ policy: { ...containerDefaults, ...policy } });
  await driver.start(launch);
  const exit = await driver.wait(launch, never);
  await driver.close();
  return { ...exit, output: outputOf(launch) };
}

export async function startError(launch: TaskLaunch, driver = aDriver()): Promise<DriverError> {
  const error = await driver.start(launch).catch((reason: unknown) => reason);
  await driver.close();
  expect(error).toBeInstanceOf(DriverError);
  return error as DriverError;
}
