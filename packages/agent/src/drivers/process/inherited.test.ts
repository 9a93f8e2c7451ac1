import { readFileSync } from 'node:fs';
import { afterEach, expect, test, vi } from 'vitest';
import { useGuards } from './guardFixture.ts';

afterEach(() => {
  vi.unstubAllEnvs();
});
const aGuard = useGuards();

test('neither guard nor task inherits what the agent was started with', async () => {
  vi.stubEnv('MUSTER_JOIN_TOKEN', 'a-secret-of-the-agent');
  const node = aGuard();
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
