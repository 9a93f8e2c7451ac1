import { readFileSync } from 'node:fs';
import { silentLogger } from '@muster/common/log';
import { afterEach, expect, test, vi } from 'vitest';
import { createProcessDriver, rootTasksRefusal } from './driver.ts';
import { GuardFixture } from './guardFixture.ts';

const fixtures: GuardFixture[] = [];
afterEach(async () => {
  vi.unstubAllEnvs();
  for (const fixture of fixtures.splice(0)) await fixture.cleanup();
});

function aNode(): GuardFixture {
  const node = new GuardFixture();
  fixtures.push(node);
  return node;
}

test('only root is refused, and only where the node says so', () => {
  expect(rootTasksRefusal('refuse', 0)).toContain('--root-tasks allow');
  expect(rootTasksRefusal('refuse', 1000)).toBeNull();
  expect(rootTasksRefusal('allow', 0)).toBeNull();
  expect(rootTasksRefusal(null, 0)).toBeNull();
});

test('what is refused is neither prepared nor started, and what runs is looked after all the same', async () => {
  const node = aNode();
  const before = node.driver();
  const running = await node.script('sleep 1000');
  await before.start(running);
  const driver = createProcessDriver({
    guardCommand: node.guardArgv,
    environment: {},
    runtimeDir: node.runtimeDir,
    log: silentLogger,
    refusal: 'not here',
  });
  const launch = await node.script('true');
  for (const refused of [driver.prepare(launch, () => {}), driver.start(launch)]) {
    await expect(refused).rejects.toMatchObject({ name: 'DriverError', message: 'not here' });
  }
  expect(await driver.recover(launch)).toEqual({ kind: 'absent' });
  expect(await driver.recover(running)).toMatchObject({ kind: 'running' });
  expect(await driver.stop(running, { signal: 'SIGKILL', graceMs: 0 })).toMatchObject({ signal: 'SIGKILL' });
  await driver.close();
});

test('neither guard nor task inherits what the agent was started with', async () => {
  vi.stubEnv('MUSTER_JOIN_TOKEN', 'a-secret-of-the-agent');
  const node = aNode();
  const driver = node.driver();
  const launch = await node.script('sleep 1000');
  await driver.start(launch);
  const [task = 0] = driver.processes(launch) ?? [];
  for (const pid of [await node.livePid(), task]) {
    const environment = readFileSync(`/proc/${pid}/environ`, 'utf8');
    expect(environment).toContain('PATH=');
    expect(environment).not.toContain('a-secret-of-the-agent');
  }
});
