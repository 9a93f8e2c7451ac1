/** What only containers have: images, mounts, users, limits and GPUs, with the real engine. */
import { randomUUID } from 'node:crypto';
import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { dirname, join } from 'node:path';
import { type Logger, silentLogger } from '@muster/common/log';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { ensureTestImage, serveTestImage } from '../../../../../test/support/images.ts';
import { dockerSocket, tempDir } from '../../../../../test/support/services.ts';
import { killed } from '../../failure/failureFixture.ts';
import { KernelEnds } from '../../failure/kernelEnds.ts';
import { KernelLog, type KernelRecord } from '../../health/kernelLog.ts';
import { boottimeMs } from '../../probes/boot.ts';
import type { TaskLaunch } from '../driver.ts';
import { containerDefaults } from './containerPolicy.ts';
import { containerName, containerSpec } from './containerSpec.ts';
import {
  aDriver,
  agentId,
  aTask,
  image,
  never,
  outputOf,
  run,
  startError,
  useDocker,
} from './dockerFixture.ts';
import { Engine } from './engine.ts';

useDocker();

const gpu = { uuid: 'GPU-11111111-2222-3333-4444-555555555555', simulated: false };

/** What an agent asked the engine for before it died. */
function createdBefore(launch: TaskLaunch): { HostConfig: { Mounts: readonly object[] } } {
  writeFileSync(join(launch.directory, 'output.log'), '');
  chmodSync(join(launch.directory, 'output.log'), 0o666);
  const plan = {
    agentId,
    ids: null,
    bootId: 'boot-1',
    volumes: launch.volumes,
    policy: containerDefaults,
    init: true,
    output: 'file',
    gpuMode: 'nvidia',
  } as const;
  const spec = containerSpec({ ...plan, launch, image: { entrypoint: [], command: [], env: [], user: '' } });
  return spec as { HostConfig: { Mounts: readonly object[] } };
}

describe('images', () => {
  it('keep their entrypoint in front of the command', async () => {
    const changes = ['ENTRYPOINT ["echo", "entrypoint"]', 'CMD ["image"]'];
    const withEntrypoint = await ensureTestImage({ tag: 'muster-test/entrypoint:1', changes });
    expect((await run({ image: withEntrypoint, command: ['command'] })).output).toBe('entrypoint command\n');
    expect((await run({ image: withEntrypoint, command: [] })).output).toBe('entrypoint image\n');
  });

  it('without a command need one from the job', async () => {
    const error = await startError(aTask({ command: [] }));
    expect(error).toMatchObject({ causeKind: 'command_not_found' });
    expect(error.message).toBe(`the image ${image} has no command of its own: name one in the job`);
  });

  it('without a shell run just the same', async () => {
    const shellLess = await ensureTestImage({ tag: 'muster-test/shell-less:1', hasShell: false });
    const { output, exitCode } = await run({ image: shellLess, command: ['seq', '3'] });
    expect([output, exitCode]).toEqual(['1\n2\n3\n', 0]);
    const error = await startError(aTask({ image: shellLess, command: ['/bin/sh', '-c', 'true'] }));
    expect(error).toMatchObject({ causeKind: 'command_not_found' });
  });

  it('that have a program elsewhere, or one of nearly the name, say which', async () => {
    const elsewhere = await startError(aTask({ command: ['/opt/tools/sh', '-c', 'true'] }));
    expect(elsewhere.message).toBe(
      `the image ${image} has no program named "/opt/tools/sh": did you mean sh (/bin/sh)?`,
    );
    const mistyped = await startError(aTask({ command: ['shh'] }));
    expect(mistyped.message).toContain('did you mean sh (/bin/sh)?');
    const inWorkdir = await startError(aTask({ command: ['busybox-of-nobody'], workdir: '/bin' }));
    expect(inWorkdir.message).toContain("correct the job's command, or use an image that has it");
    const here = await startError(aTask({ command: ['seq'], workdir: '/bin', env: { PATH: '/nowhere' } }));
    expect(here.message).toContain('did you mean ./seq (/bin/seq)?');
  });

  // 127.0.0.1:1 stands for a registry: nothing listens there, and the engine reports that at once.
  it('that nobody has fail with their name, the reason and the remedy', async () => {
    const missing = '127.0.0.1:1/team/trainer:2';
    const error = await startError(aTask({ image: missing }));
    expect(error).toMatchObject({ causeKind: 'image_pull' });
    expect(error.message).toContain(`cannot pull the image ${missing}: `);
    expect(error.message).toContain('connection refused');
    expect(error.message).toContain(`docker pull ${missing}`);
  });

  it('with an impossible name fail the same way', async () => {
    const error = await startError(aTask({ image: 'Not An Image' }));
    expect(error).toMatchObject({ causeKind: 'image_pull' });
    expect(error.message).toContain('invalid reference format');
  });

  it('are pulled when the node does not have them', async () => {
    const served = await serveTestImage();
    onTestFinished(() => served.remove());
    expect(await run({ image: served.image, command: ['echo', 'pulled'] })).toMatchObject({
      exitCode: 0,
      output: 'pulled\n',
    });
  });

  it('named by nobody are refused', async () => {
    const error = await startError(aTask({ image: null }));
    expect(error.message).toContain('names no image');
  });
});

describe('what a task gets', () => {
  it('is as much shared memory as asked for', async () => {
    const command = ['sh', '-c', 'df -m /dev/shm | tail -n 1'];
    expect((await run({ command, shmMb: 96 })).output).toMatch(/^shm\s+96\s/);
  });

  it('is no more memory than asked for', async () => {
    const ends = new KernelEnds({
      running: () => [],
      directoryOf: () => '',
      readKernelLog: () => {},
      boottimeMs,
    });
    const onRecord = (record: KernelRecord): void => ends.kernelRecord(record);
    const log = new KernelLog({ path: '/dev/kmsg', onRecord, log: silentLogger });
    log.open();
    onTestFinished(() => log.close());
    // tail keeps what it is to print: 90 MB.
    const launch = aTask({ command: ['tail', '-c', '90000000', '/dev/zero'], memoryMb: 32 });
    const driver = aDriver();
    await driver.start(launch);
    const exit = await driver.wait(launch, never);
    await driver.close();
    expect(exit).toMatchObject({ exitCode: null, signal: 'SIGKILL' });
    // An engine that is late, as on a busy machine, never reports why. The kernel log has it in any case.
    const end = {
      exit: { ...exit, oomKilled: false },
      directory: launch.directory,
      outputPath: '',
      stopping: false,
    };
    const failure = await vi.waitFor(() => {
      log.readNow();
      const explained = ends.explain(launch, end, { ...killed, atBoottimeMs: boottimeMs() });
      expect(explained).toMatchObject({ source: 'kernel', kind: 'host_oom', blame: 'job' });
      return explained;
    });
    expect(failure.message).toMatch(/^Memory cgroup out of memory: Killed process \d+ \(tail\) total-vm:/);
  });

  it('is no more CPU than asked for', async () => {
    const quota = 'cat /sys/fs/cgroup/cpu.max /sys/fs/cgroup/cpu/cpu.cfs_quota_us 2>/dev/null';
    const command = ['sh', '-c', `${quota}; true`];
    expect((await run({ command, cpus: 0.5 })).output).toContain('50000');
  });

  it('are its volumes, to write only where it may', async () => {
    const source = tempDir('volume').path;
    writeFileSync(join(source, 'given'), 'from the node\n');
    const script = 'cat /in/given; echo back > /out/taken; echo no > /in/new || echo refused';
    chmodSync(source, 0o777);
    const volumes = [
      { source, target: '/in', readOnly: true },
      { source, target: '/out', readOnly: false },
    ];
    const mountRoots = [{ path: dirname(source), readOnly: false }];
    const { output } = await run({ command: ['sh', '-c', script], volumes }, { mountRoots });
    expect(output).toContain('from the node\n');
    expect(output).toMatch(/refused\n$/);
    expect(readFileSync(join(source, 'taken'), 'utf8')).toBe('back\n');
  });

  it('is no GPU that it did not ask for', async () => {
    const command = ['sh', '-c', 'echo "$NVIDIA_VISIBLE_DEVICES"'];
    expect((await run({ command, env: { NVIDIA_VISIBLE_DEVICES: 'all' } })).output).toBe('void\n');
    expect((await run({ command, gpus: [{ uuid: 'GPU-simulated', simulated: true }] })).output).toBe(
      'GPU-simulated\n',
    );
  });

  it('is an init that forwards signals to programs without a handler', async () => {
    const launch = aTask({ command: ['sleep', '1000'] });
    const driver = aDriver();
    await driver.start(launch);
    expect(await driver.stop(launch, { signal: 'SIGTERM', graceMs: 60_000 })).toMatchObject({
      signal: 'SIGTERM',
    });
    await driver.close();
  });
});

describe('a stop right after the start', () => {
  it('reaches a task whose init has not got as far as its program', async () => {
    const driver = aDriver();
    for (let round = 0; round < 5; round++) {
      // With 1 % of a CPU the init takes long to block signals: a third of those sent at once were lost.
      const launch = aTask({ command: ['sleep', '1000'], cpus: 0.01 });
      await driver.start(launch);
      const exit = await driver.stop(launch, { signal: 'SIGTERM', graceMs: 60_000 });
      expect(exit).toMatchObject({ signal: 'SIGTERM' });
      await driver.remove(launch);
    }
    await driver.close();
  });
});

describe('what cannot be started', () => {
  it('names a volume that is not there and does not make it', async () => {
    const source = join(tempDir('volume').path, 'missing');
    const mountRoots = [{ path: dirname(source), readOnly: false }];
    const error = await startError(
      aTask({ volumes: [{ source, target: '/data', readOnly: false }] }),
      aDriver({ policy: { ...containerDefaults, mountRoots } }),
    );
    expect(error.message).toContain(`there is no ${source} on the node`);
    expect(() => statSync(source)).toThrow('ENOENT');
  });

  it('says what the engine thinks of an impossible limit', async () => {
    const error = await startError(aTask({ memoryMb: 1 }));
    expect(error.message).toMatch(/^the container engine refuses the task: .*memory limit/i);
  });

  it('does not run without the GPUs it needs', async () => {
    const launch = aTask({ gpus: [gpu] });
    const error = await startError(launch);
    expect(error.message).toContain('Install the NVIDIA Container Toolkit');
    expect(await aDriver().recover(launch)).toEqual({ kind: 'absent' });
  });

  it('names a socket where no engine is, and the remedy', async () => {
    const socketPath = join(tempDir('engine').path, 'missing.sock');
    const driver = aDriver({ socketPath });
    const launch = aTask();
    const error: unknown = await driver.start(launch).catch((reason: unknown) => reason);
    const words = `there is no socket ${socketPath}; start it with \`systemctl start docker\``;
    // No verdict on the task: anyone who asked has to find out once there is an engine.
    expect(error).toMatchObject({ name: 'EngineError', message: expect.stringContaining(words) as string });
    for (const call of [driver.list(), driver.recover(launch), driver.signal(launch, 'SIGTERM')]) {
      await expect(call).rejects.toMatchObject({
        name: 'DriverError',
        message: expect.stringContaining(words) as string,
      });
    }
    await driver.close();
  });

  it('refuses GPUs on Podman, which would drop them in silence', async () => {
    const socketPath = join(tempDir('podman').path, 'podman.sock');
    const podman = createServer((request, response) => {
      const isVersion = request.url === '/version';
      const Components = [{ Name: 'Podman Engine', Version: '4.3.1' }];
      response.writeHead(isVersion ? 200 : 404);
      response.end(JSON.stringify(isVersion ? { Version: '4.3.1', ApiVersion: '1.41', Components } : {}));
    });
    await new Promise<void>((resolve) => podman.listen(socketPath, resolve));
    onTestFinished(() => void podman.close());
    const error = await startError(aTask({ gpus: [gpu] }), aDriver({ socketPath }));
    expect(error.message).toContain('Podman, which ignores requests for GPUs');
  });
});

describe('several agents and restarts', () => {
  it('agents do not see, touch or replace the containers of others', async () => {
    const launch = aTask({ command: ['sleep', '1000'] });
    const ours = aDriver();
    const theirs = aDriver({ agentId: randomUUID() });
    await ours.start(launch);
    expect(await theirs.list()).toEqual([]);
    expect(await theirs.recover(launch)).toEqual({ kind: 'absent' });
    await theirs.signal(launch, 'SIGKILL');
    expect(await theirs.stop(launch, { signal: 'SIGKILL', graceMs: 0 })).toMatchObject({ statusLost: true });
    await theirs.remove(launch);
    const error = await startError(launch, theirs);
    expect(error.message).toContain(`docker rm -f ${containerName(launch.key)}`);
    expect(await ours.recover(launch)).toMatchObject({ kind: 'running' });
    await ours.close();
  });

  it('a container that an agent made and died before starting is absent, and started by the next', async () => {
    const launch = aTask({ command: ['echo', 'ran'] });
    const engine = new Engine(await dockerSocket());
    const id = await engine.createContainer(containerName(launch.key), createdBefore(launch));

    const driver = aDriver();
    expect(await driver.recover(launch)).toEqual({ kind: 'absent' });
    expect(await driver.wait(launch, never)).toMatchObject({ statusLost: true });
    expect(await driver.list()).toEqual([launch.key]);
    await driver.start(launch);
    expect((await engine.inspectContainer(containerName(launch.key)))?.id).toBe(id);
    expect(await driver.wait(launch, never)).toMatchObject({ exitCode: 0 });
    expect(outputOf(launch)).toBe('ran\n');
    await driver.close();
  });

  it('a running task is not removed', async () => {
    const launch = aTask({ command: ['sleep', '1000'] });
    const driver = aDriver();
    await driver.start(launch);
    await expect(driver.remove(launch)).rejects.toThrow('must be stopped before it is removed');
    expect(await driver.recover(launch)).toMatchObject({ kind: 'running' });
    await driver.close();
  });

  it('an exit code that a reboot made up is not believed', async () => {
    const launch = aTask({ command: ['sh', '-c', 'exit 255'] });
    const before = aDriver();
    await before.start(launch);
    expect(await before.wait(launch, never)).toMatchObject({ exitCode: 255, statusLost: false });
    const after = aDriver({ bootId: 'boot-2' });
    expect(await after.wait(launch, never)).toMatchObject({ exitCode: null, statusLost: true });
    await Promise.all([before.close(), after.close()]);
  });

  it('says once that the engine takes its tasks along when it restarts', async () => {
    const warnings: string[] = [];
    const log: Logger = { ...silentLogger, warn: (_, message) => warnings.push(message) };
    const { liveRestore } = await new Engine(await dockerSocket()).info();
    const driver = aDriver({ log });
    for (const launch of [aTask(), aTask()]) await driver.start(launch);
    expect(warnings.filter((warning) => warning.includes('live-restore'))).toHaveLength(liveRestore ? 0 : 1);
    await driver.close();
  });

  it('a closed driver waits no longer', async () => {
    const launch = aTask({ command: ['sleep', '1000'] });
    const driver = aDriver();
    await driver.start(launch);
    const waiting = driver.wait(launch, never);
    await Promise.all([expect(waiting).rejects.toThrow('closed'), driver.close()]);
    expect(await aDriver().recover(launch)).toMatchObject({ kind: 'running' });
  });

  it('the words of a shell that cannot open the output become the output', async () => {
    const launch = aTask({ command: ['echo', 'never'] });
    const { HostConfig, ...spec } = createdBefore(launch);
    const mounts = HostConfig.Mounts.map((mount) => ({ ...mount, ReadOnly: true }));
    const engine = new Engine(await dockerSocket());
    const body = { ...spec, HostConfig: { ...HostConfig, Mounts: mounts } };
    await engine.createContainer(containerName(launch.key), body);
    const driver = aDriver();
    await driver.start(launch);
    expect((await driver.wait(launch, never)).exitCode).not.toBe(0);
    expect(outputOf(launch)).toMatch(/\/\.muster\/output\.log.*Read-only/);
    await driver.close();
  });
});
