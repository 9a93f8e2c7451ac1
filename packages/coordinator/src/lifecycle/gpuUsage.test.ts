import { expect, test } from 'vitest';
import { aGpuUsage, aJob, anAttempt, anExit, aTask } from '../modelFixture.ts';
import { gpuUsageOf } from './ledger.ts';
import { transition } from './transition.ts';

const ended = (nodeRank: number, gpuUsage: ReturnType<typeof aGpuUsage> | null) =>
  aTask(nodeRank, { state: 'ended', exit: anExit({ gpuUsage }) });

test('an attempt has used what its ended tasks have, as far as anybody looked', () => {
  const tasks = [
    ended(0, aGpuUsage({ utilizationMean: 90, memoryPeakMb: 100, energyKwh: 1 })),
    ended(1, null),
    ended(2, aGpuUsage({ utilizationMean: 10, memoryPeakMb: 300, energyKwh: null })),
    aTask(3, { state: 'running' }),
  ];
  expect(gpuUsageOf(anAttempt(1, { tasks }))).toMatchObject({
    gpus: 2,
    observedGpuSeconds: 120,
    utilizationMean: 50,
    memoryPeakMb: 300,
    energyKwh: 1,
  });
  expect(gpuUsageOf(anAttempt(1))).toBeNull();
});

test('the events of its end carry it', () => {
  const attempt = anAttempt(1, {
    state: 'running',
    tasks: [ended(0, aGpuUsage()), aTask(1, { state: 'running' })],
  });
  const job = aJob(1, { lastAttempt: 1, state: { kind: 'running', attempt } });
  const exit = anExit({ gpuUsage: aGpuUsage({ memoryPeakMb: 50_000 }) });

  const { events } = transition(
    job,
    { kind: 'taskEnded', attempt: 1, nodeRank: 1, exit, failedAtMs: null },
    0,
  );

  const data = (kind: string) => events.find((event) => event.kind === kind)?.data;
  expect(data('task.ended')).toMatchObject({ exit });
  expect(data('attempt.ended')).toMatchObject({ gpuUsage: { gpus: 2, memoryPeakMb: 50_000 } });
});
