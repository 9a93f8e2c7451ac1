import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import { expect, onTestFinished, test } from 'vitest';
import { TestHub } from './hubFixture.ts';
import { type RunningAgent, runAgent } from './main.ts';
import { type AgentOptions, agentDefaults } from './options.ts';

function aDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'agent-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  return directory;
}

/** Bare processes need a guard and these tests run none: an agent without one serves its node anyway. */
function optionsOf(hub: TestHub, dataDir: string): AgentOptions {
  return {
    ...agentDefaults,
    dataDir,
    name: 'a',
    coordinator: hub.address,
    joinToken: 'token',
    gpus: { kind: 'simulated', count: 2 },
    dockerSocket: join(dataDir, 'no-docker.sock'),
    guardCommand: ['/bin/false'],
    rootTasks: 'allow',
    nvmlReaderCommand: ['/bin/false'],
    metricsListen: null,
    kernelLog: join(dataDir, 'no-kernel-log'),
    logLevel: 'silent',
  };
}

async function start(options: AgentOptions): Promise<RunningAgent> {
  const agent = await runAgent(options);
  onTestFinished(() => agent.close());
  return agent;
}

test('an agent joins, dials, and tells what its node has', async () => {
  const hub = await TestHub.start();
  const agent = await start(optionsOf(hub, aDirectory()));
  const session = await hub.session(1);
  expect(await session.gets('hello')).toMatchObject({
    inventory: {
      gpus: [{ uuid: 'GPU-SIMULATED-a-0', simulated: true }, { uuid: 'GPU-SIMULATED-a-1' }],
      addresses: ['127.0.0.1'],
      drivers: ['process'],
    },
    observed: [],
  });
  await agent.close();
  await expect(agent.closed).resolves.toBeUndefined();
});

test('the instance is that of the data directory', async () => {
  const hub = await TestHub.start();
  const options = optionsOf(hub, aDirectory());
  const agent = await start(options);
  const { instanceId } = await (await hub.session(1)).gets('hello');
  await agent.close();
  await start({ ...options, joinToken: null });
  expect(await (await hub.session(2)).gets('hello')).toMatchObject({ instanceId });
});

test('a refusal of the coordinator ends the agent with its reason', async () => {
  const hub = await TestHub.start();
  const agent = await start(optionsOf(hub, aDirectory()));
  const session = await hub.session(1);
  await session.gets('hello');
  session.refuse(status.ALREADY_EXISTS);
  await expect(agent.closed).rejects.toMatchObject({ code: 'already_exists', message: 'you may not' });
});

test.each(['by its path', 'by another path'])(
  'a second agent on a data directory, %s, is refused',
  async (how) => {
    const hub = await TestHub.start();
    const root = aDirectory();
    // Longer than the name of any socket may be.
    const dataDir = join(root, 'd'.repeat(120));
    await mkdir(dataDir);
    symlinkSync(dataDir, join(root, 'link'));
    const options = { ...optionsOf(hub, dataDir), dockerSocket: '/nowhere.sock' };
    const first = await start({ ...options, dataDir: join(root, 'link') });

    const second = { ...options, dataDir: how === 'by its path' ? dataDir : join(root, 'link') };
    await expect(runAgent(second)).rejects.toMatchObject({
      code: 'failed_precondition',
      message: `another agent is using ${second.dataDir}; stop it, or use another --data`,
    });
    await first.close();
    await start({ ...second, dataDir: join(root, 'link') });
  },
);

test('an agent that cannot start leaves the data directory free', async () => {
  const hub = await TestHub.start();
  const options = optionsOf(hub, aDirectory());
  await expect(runAgent({ ...options, joinToken: null })).rejects.toMatchObject({ code: 'unauthenticated' });
  await start(options);
});

test.each(['', 'A', 'a_b', '-a', 'a'.repeat(64)])('"%s" is no node name', async (name) => {
  const hub = await TestHub.start();
  await expect(runAgent({ ...optionsOf(hub, aDirectory()), name })).rejects.toMatchObject({
    code: 'invalid',
  });
});
