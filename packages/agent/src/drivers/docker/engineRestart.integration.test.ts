/** Tasks outlive the engine that started them. The engine is one of the test's own: the machine's is left alone. */

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { closeSync, existsSync, openSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { readBootId } from '@muster/common/boot';
import { silentLogger } from '@muster/common/log';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { ensureTestImage } from '../../../../../test/support/images.ts';
import {
  dockerAnswers,
  findProgram,
  MissingServiceError,
  tempDir,
  waitFor,
} from '../../../../../test/support/services.ts';
import { boottimeMs } from '../../probes/boot.ts';
import type { Lease } from '../../taskFacts/execution.ts';
import type { TaskLaunch } from '../driver.ts';
import { aLaunch } from '../launchFixture.ts';
import { GuardFixture } from '../process/guardFixture.ts';
import { RecordingFence } from '../recordingFence.ts';
import { containerDefaults } from './containerPolicy.ts';
import { createDockerDriver } from './dockerDriver.ts';

/** What containers may do, and a data directory that is nobody's. */
const here = { policy: containerDefaults, dataDir: '/var/lib/muster-of-a-test' };

const never = new AbortController().signal;
const root = tempDir('engine').path;
const socketPath = join(root, 'engine.sock');
let engine: ChildProcess | null = null;

async function startEngine(): Promise<void> {
  const [program, unshare] = [findProgram('dockerd'), findProgram('unshare')];
  if (program === null || unshare === null || process.getuid?.() !== 0) {
    throw new MissingServiceError(
      'this test runs a Docker engine of its own: it needs dockerd (docker.io) and root',
    );
  }
  const paths = [
    '--data-root',
    join(root, 'data'),
    '--exec-root',
    join(root, 'exec'),
    '--pidfile',
    join(root, 'pid'),
  ];
  // Without networks of its own; and in a namespace of its own, because an engine that is told to have no bridge takes the
  // machine's away, which another engine uses. Tasks use its host's, which is that namespace.
  const isolation = ['--bridge', 'none', '--iptables=false', '--ip6tables=false'];
  const args = ['-H', `unix://${socketPath}`, '--live-restore', ...paths, ...isolation];
  const log = openSync(join(root, 'log'), 'w');
  engine = spawn(unshare, ['--net', '--', program, ...args], { stdio: ['ignore', log, log] });
  closeSync(log);
  await waitFor('the engine answers', async () => (await dockerAnswers(socketPath)) || finalUpdate(), {
    until: (seen) => seen === true,
  });
}

function finalUpdate(): string {
  return readFileSync(join(root, 'log'), 'utf8').slice(-1_000);
}

async function endEngine(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
  const child = engine;
  engine = null;
  if (child === null || child.exitCode !== null) return;
  const containerd = readFileSync(join(root, 'exec/containerd/containerd.pid'), 'utf8');
  const gone = new Promise((resolve) => child.once('exit', resolve));
  child.kill(signal);
  await gone;
  // It dies with its engine, a moment later; the next engine would take it for its own and wait for it in vain.
  await waitFor('containerd is gone', () => !existsSync(`/proc/${containerd}`));
  rmSync(join(root, 'pid'), { force: true });
}

function aTask(image: string, command: readonly string[], lease: Lease | null = null): TaskLaunch {
  const place = { key: `r${randomUUID().slice(0, 13)}.1.0`, directory: tempDir('task').path };
  return aLaunch({ ...place, image, command, lease });
}

function outputOf(launch: TaskLaunch): string {
  return readFileSync(join(launch.directory, 'output.log'), 'utf8');
}

/** As the driver noted them for the agents to come. */
function groupsOf(launch: TaskLaunch): readonly string[] {
  const noted = readFileSync(join(launch.directory, 'container.json'), 'utf8');
  return (JSON.parse(noted) as { groups: readonly string[] }).groups;
}

beforeAll(startEngine, 60_000);

afterAll(async () => {
  await endEngine('SIGTERM');
  // The engine leaves its mounts behind; without them the folder can be deleted.
  const mounts = readFileSync('/proc/self/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[1] ?? '')
    .filter((path) => path.startsWith(`${root}/`));
  for (const path of mounts.reverse()) execFileSync('umount', ['-l', path]);
});

describe('an engine that is away', () => {
  it('does not keep a lease from running out, nor the agent from freezing and thawing', async () => {
    const image = await ensureTestImage({ tag: 'muster-test/busybox:1', socketPath });
    const guard = new GuardFixture();
    const driver = createDockerDriver({
      ...here,
      socketPath,
      agentId: 'agent-1',
      bootId: readBootId(),
      fence: guard.fence(),
      log: silentLogger,
    });
    const leaseFor = (ms: number): Lease => ({
      deadlineBoottimeMs: boottimeMs() + ms,
      bootId: readBootId(),
      onExpiry: 'freeze',
    });
    const launch = aTask(image, ['sh', '-c', 'while :; do echo on; sleep 0.05; done'], leaseFor(60_000));
    onTestFinished(async () => {
      if (engine === null) await startEngine();
      await driver.stop(launch, { signal: 'SIGKILL', graceMs: 0 });
      await driver.remove(launch);
      await driver.close();
      await guard.cleanup();
    });
    await driver.start(launch);
    await endEngine('SIGKILL');
    const length = () => readFileSync(join(launch.directory, 'output.log')).length;
    const countsOn = async () => {
      const before = length();
      await waitFor('the task counts on', () => length() > before);
    };
    const standsStill = () =>
      waitFor('the task stands still', async () => {
        const before = length();
        await delay(500);
        return length() === before;
      });

    await countsOn();
    expect(await driver.freeze(launch)).toBe('frozen');
    await standsStill();
    await driver.thaw(launch);
    await countsOn();

    const groups = groupsOf(launch);
    await guard.fence().renew({ ...launch, key: 'watched.1.0' }, leaseFor(300), groups);
    await standsStill();
    await guard.fence().forget({ ...launch, key: 'watched.1.0' });
    await driver.thaw(launch);
    await countsOn();
  });
});

describe('an engine that hangs', () => {
  it('does not keep a container from its signal and its end', async () => {
    const image = await ensureTestImage({ tag: 'muster-test/busybox:1', socketPath });
    const driver = createDockerDriver({
      ...here,
      socketPath,
      agentId: 'agent-1',
      bootId: readBootId(),
      fence: new RecordingFence(),
      log: silentLogger,
    });
    const script = (onTerm: string) => `trap '${onTerm}' TERM; echo on; while :; do sleep 0.1; done`;
    const [saving, ignoring] = [
      aTask(image, ['sh', '-c', script('echo saved; exit 0')]),
      aTask(image, ['sh', '-c', script('echo ignored')]),
    ];
    const resume = () => void engine?.kill('SIGCONT');
    onTestFinished(async () => {
      resume();
      for (const launch of [saving, ignoring]) {
        await driver.stop(launch, { signal: 'SIGKILL', graceMs: 0 });
        await driver.remove(launch);
      }
      await driver.close();
    });
    for (const launch of [saving, ignoring]) {
      await driver.start(launch);
      await waitFor('the trap to be set', () => outputOf(launch).includes('on\n'));
    }
    engine?.kill('SIGSTOP');

    const [saved, killed] = await Promise.all([
      driver.stop(saving, { signal: 'SIGTERM', graceMs: 120_000 }),
      driver.stop(ignoring, { signal: 'SIGTERM', graceMs: 100 }),
    ]);
    expect([saved, killed]).toMatchObject([{ statusLost: true }, { statusLost: true }]);
    expect(outputOf(saving)).toBe('on\nsaved\n');
    expect(outputOf(ignoring)).toBe('on\nignored\n');
    expect(driver.processes(ignoring)).toEqual([]);
    resume();
    await waitFor('the engine to report the exit', async () => {
      const observed = await driver.recover(saving);
      return observed.kind === 'exited' && observed.exit.exitCode === 0;
    });
  });

  it('is a fault of its node to a task that is prepared', async () => {
    await endEngine('SIGKILL');
    onTestFinished(startEngine);
    const driver = createDockerDriver({
      ...here,
      socketPath,
      agentId: 'agent-1',
      bootId: readBootId(),
      fence: new RecordingFence(),
      log: silentLogger,
    });
    onTestFinished(() => driver.close());
    const preparing = driver.prepare(aTask('muster-test/busybox:1', ['true']), () => {});
    await expect(preparing).rejects.toMatchObject({ causeKind: 'container_engine' });
  });
});

describe('an engine that restarts', () => {
  it.each([
    ['SIGTERM', true],
    ['SIGKILL', true],
    ['SIGKILL', false],
  ] as const)('after %s (image with a shell: %s) leaves task and output whole', async (signal, hasShell) => {
    const tag = hasShell ? 'muster-test/busybox:1' : 'muster-test/shell-less:1';
    const image = await ensureTestImage({ tag, hasShell, socketPath });
    const driver = createDockerDriver({
      ...here,
      socketPath,
      agentId: 'agent-1',
      bootId: 'boot-1',
      fence: new RecordingFence(),
      log: silentLogger,
    });
    const script = "trap 'exit 5' USR1; i=0; while :; do echo $i; i=$((i + 1)); sleep 0.1; done";
    const launch = aTask(image, ['busybox', 'sh', '-c', script]);
    const lines = () =>
      readFileSync(join(launch.directory, 'output.log'), 'utf8').split('\n').slice(0, -1).map(Number);

    onTestFinished(async () => {
      // An engine that keeps tasks alive would leave this one to the machine.
      await driver.stop(launch, { signal: 'SIGKILL', graceMs: 0 });
      await driver.remove(launch);
      await driver.close();
    });
    await driver.start(launch);
    const waiting = driver.wait(launch, never);
    await waitFor('some output', () => lines().length > 5);
    const before = await driver.recover(launch);
    await endEngine(signal);
    await expect(driver.recover(launch)).rejects.toThrow(socketPath);
    await startEngine();
    expect(await driver.recover(launch)).toEqual(before);
    const seen = lines().length;
    await waitFor('more output', () => lines().length > seen + 5);
    await driver.signal(launch, 'SIGUSR1');
    expect(await waiting).toMatchObject({ exitCode: 5, statusLost: false });
    expect(lines()).toEqual(lines().map((_, i) => i));
  });
});
