import { afterEach, beforeEach, expect, test } from 'vitest';
import { startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import { someMs } from '../modelFixture.ts';
import { Memory } from '../store/memory/memoryStore.ts';
import { storeNode } from '../telemetry/agentStreamFixture.ts';
import { runningJob, runningJobId, storeRunningJob } from '../telemetry/telemetryFixture.ts';

let coordinator: TestCoordinator;
beforeEach(async () => {
  const memory = new Memory('test');
  // One of its two GPUs has a price, by its node: 3.6 USD an hour.
  for (const name of ['node-1', 'node-2']) storeNode(memory, name);
  storeRunningJob(memory);
  coordinator = await startTestCoordinator({ memory });
});
afterEach(() => coordinator.close());

test('a job that runs has a cost that grows with the time for which it holds GPUs; a list has none', async () => {
  const { state } = runningJob;
  const allocatedAtMs = state.kind === 'running' ? state.attempt.allocatedAtMs : someMs;
  const costAfter = async (heldMs: number) => {
    coordinator.clock.nowMs += allocatedAtMs + heldMs - coordinator.clock.wallMs();
    return (await coordinator.api.getJob(runningJobId)).costUsd;
  };
  expect(await costAfter(3_600_000)).toBeCloseTo(3.6, 9);
  expect(await costAfter(7_200_000)).toBeCloseTo(7.2, 9);
  expect((await coordinator.api.listJobs()).jobs[0]?.costUsd).toBeNull();
});

test('a job that has not started has cost nothing', async () => {
  const { jobIds } = await coordinator.api.submit({ specJson: '{"command": "true"}', requestId: 'r1' });
  expect((await coordinator.api.getJob(jobIds[0] ?? '')).costUsd).toBe(0);
});
