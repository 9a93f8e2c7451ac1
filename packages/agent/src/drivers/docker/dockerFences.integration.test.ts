/** Containers prepared and fenced, with the real engine: what the conformance suite cannot ask of every driver. */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { readBootId } from '@muster/common/boot';
import { describe, expect, it, onTestFinished } from 'vitest';
import { serveTestImage } from '../../../../../test/support/images.ts';
import { dockerSocketPath, tempDir, waitFor } from '../../../../../test/support/services.ts';
import { boottimeMs } from '../../probes/boot.ts';
import { DriverError } from '../../taskFacts/errors.ts';
import type { TaskLaunch } from '../driver.ts';
import { RecordingFence } from '../recordingFence.ts';
import { containerDefaults } from './containerPolicy.ts';
import { containerName } from './containerSpec.ts';
import { aDriver, aTask, never, outputOf, startError, useDocker } from './dockerFixture.ts';
import { exchange, readTextAnswer } from './engineHttp.ts';

useDocker();

const gpu = { uuid: 'GPU-11111111-2222-3333-4444-555555555555', simulated: false };

describe('preparations', () => {
  it('pull the image and say how far they are; a second one has nothing to do', async () => {
    const served = await serveTestImage();
    onTestFinished(() => served.remove());
    const launch = aTask({ image: served.image, command: ['echo', 'pulled'] });
    const driver = aDriver();
    const shown: string[] = [];
    await driver.prepare(launch, (what) => shown.push(what));
    expect(shown[0]).toBe(`pulls image ${served.image}`);
    expect(shown.at(-1)).toBe(`pulls image ${served.image}: 1 of 1 layers`);
    await driver.prepare(launch, (what) => expect(what).toBe('not a word'));
    expect(await driver.list()).toEqual([]);
    await driver.start(launch);
    expect(await driver.wait(launch, never)).toMatchObject({ exitCode: 0 });
    await driver.close();
  });

  it('name what the node lacks, before an image is pulled for it', async () => {
    const source = join(tempDir('volume').path, 'missing');
    const nowhere = '127.0.0.1:1/team/trainer:2';
    const mountRoots = [{ path: dirname(source), readOnly: false }];
    const driver = aDriver({ policy: { ...containerDefaults, mountRoots } });
    const refused = async (task: Partial<TaskLaunch>) => {
      const error: unknown = await driver.prepare(aTask(task), () => {}).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(DriverError);
      return error as DriverError;
    };
    const volumes = [{ source, target: '/data', readOnly: false }];
    expect((await refused({ image: nowhere, volumes })).message).toContain(
      `there is no ${source} on the node`,
    );
    expect(() => statSync(source)).toThrow('ENOENT');
    expect((await refused({ image: nowhere, gpus: [gpu] })).message).toContain(
      'Install the NVIDIA Container Toolkit',
    );
    expect(await refused({ image: nowhere })).toMatchObject({ causeKind: 'image_pull' });
    const away = aDriver({ socketPath: join(tempDir('engine').path, 'missing.sock') });
    await expect(away.prepare(aTask(), () => {})).rejects.toThrow('no container engine');
    await Promise.all([driver.close(), away.close()]);
  });
});

describe('fences', () => {
  const bootId = readBootId();
  const count = ['sh', '-c', 'trap "echo saved; exit 7" TERM; while :; do echo on; sleep 0.05; done'];
  const countsOn = async (launch: TaskLaunch) => {
    const before = outputOf(launch).length;
    await waitFor('the task to count on', () => outputOf(launch).length > before);
  };

  it('are armed before the container is started, and where the kernel has it', async () => {
    const fence = new RecordingFence();
    const driver = aDriver({ fence, bootId });
    const deadlineBoottimeMs = boottimeMs() + 600_000;
    const launch = aTask({ command: count, lease: { deadlineBoottimeMs, bootId, onExpiry: 'freeze' } });
    await driver.start(launch);
    expect(fence.calls[0]).toBe(`renew ${launch.key} ${deadlineBoottimeMs}`);
    const groups = (fence.groups.get(launch.key) ?? []).filter((path) => existsSync(path));
    expect(groups).toHaveLength(1);
    const observed = await driver.recover(launch);
    const pid = observed.kind === 'running' ? observed.pid : null;
    expect(readFileSync(join(groups[0] ?? '', 'cgroup.procs'), 'utf8').split('\n')).toContain(String(pid));
    await driver.stop(launch, { signal: 'SIGKILL', graceMs: 0 });
    await driver.remove(launch);
    expect(fence.calls.at(-1)).toBe(`forget ${launch.key}`);
    await driver.close();
  });

  it('start no container when the guard does not answer', async () => {
    const fence = new RecordingFence();
    fence.renew = () => Promise.reject(new Error('no guard answers'));
    const lease = { deadlineBoottimeMs: boottimeMs() + 600_000, bootId, onExpiry: 'freeze' } as const;
    const launch = aTask({ command: ['sh', '-c', 'echo ran'], lease });
    const error = await startError(launch, aDriver({ fence, bootId }));
    expect(error.message).toContain('no guard answers');
    expect(outputOf(launch)).toBe('');
    expect(await aDriver().list()).toEqual([]);
  });

  it('are found again by the next agent, without any message', async () => {
    const launch = aTask({ command: count });
    const before = aDriver();
    await before.start(launch);
    await countsOn(launch);
    await before.close();
    // As when no engine answers: what is known is what was noted.
    const after = aDriver({ socketPath: join(tempDir('engine').path, 'missing.sock') });
    expect(await after.freeze(launch)).toBe('frozen');
    expect(await aDriver().recover(launch)).toMatchObject({ kind: 'running', frozen: true });
    await after.thaw(launch);
    await countsOn(launch);
    await after.close();
  });

  it('say so when nobody knows where a container is', async () => {
    await expect(aDriver().freeze(aTask())).rejects.toThrow('is not known to this agent');
  });

  it('show a container that somebody paused as frozen, and it can be stopped all the same', async () => {
    for (const [graceMs, expected] of [
      [60_000, { exitCode: 7 }],
      [0, { signal: 'SIGKILL' }],
    ] as const) {
      const launch = aTask({ command: count });
      const driver = aDriver();
      await driver.start(launch);
      await countsOn(launch);
      const path = `/containers/${containerName(launch.key)}/pause`;
      await exchange(dockerSocketPath, '', { method: 'POST', path, deadlineMs: 10_000 }, readTextAnswer);
      expect(await driver.recover(launch)).toMatchObject({ kind: 'running', frozen: true });
      expect(await driver.stop(launch, { signal: 'SIGTERM', graceMs })).toMatchObject(expected);
      await driver.close();
    }
  });
});
