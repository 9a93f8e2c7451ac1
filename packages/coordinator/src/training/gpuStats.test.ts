import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import { problemOfEvent } from '../events/eventSchemaFixture.ts';
import type { StoredEvent } from '../model.ts';
import { aNode, aReport, nodeNameOf } from '../modelFixture.ts';
import { Memory } from '../store/memory/memoryStore.ts';
import { aReading, runningJobId, storeRunningJob } from '../telemetry/telemetryFixture.ts';
import { GpuStatsPublisher, gpuStats } from './gpuStats.ts';
import { someProgress } from './trainingFixture.ts';

const gpu = (fields: Parameters<typeof aReading>[0] = {}, memoryMb: number | null = 81_559) => ({
  reading: aReading({ memoryUsedMb: 46_284, utilization: 92, ...fields }),
  memoryMb,
});

describe('the words', () => {
  test.each([
    ['of one GPU and its program', [gpu()], 1_024, 'Memory: 45.2/80GB | Util: 92% | Samples/sec: 1024'],
    ['of two GPUs', [gpu(), gpu({ utilization: 50 })], null, 'Memory: 90.4/159GB | Util: 71%'],
    ['of one of unknown size', [gpu({}, null)], null, 'Memory: 45.2GB | Util: 92%'],
    ['of two, one of unknown size', [gpu(), gpu({}, null)], null, 'Memory: 90.4GB | Util: 92%'],
    ['of one that tells only its use', [gpu({ memoryUsedMb: null })], null, 'Util: 92%'],
    ['of one that tells only its memory', [gpu({ utilization: null })], null, 'Memory: 45.2/80GB'],
    ['of a program only', [], 12.34567, 'Samples/sec: 12.35'],
    [
      'of an idle one',
      [gpu({ utilization: 0, memoryUsedMb: 0 })],
      0,
      'Memory: 0.0/80GB | Util: 0% | Samples/sec: 0',
    ],
  ])('%s', (_, gpus, samples, text) => {
    expect(gpuStats(gpus, samples)?.text).toBe(`[GPU Stats] ${text}`);
  });

  test('of nothing are none, and numbers go with them', () => {
    expect(gpuStats([], null)).toBeNull();
    expect(gpuStats([gpu({ memoryUsedMb: null, utilization: null })], null)).toBeNull();
    expect(gpuStats([gpu(), gpu({ memoryUsedMb: null, utilization: 46 })], null)).toMatchObject({
      memoryUsedMb: 46_284,
      memoryTotalMb: 81_559,
      utilization: 69,
      samplesPerSecond: null,
    });
  });
});

type Fact = Pick<StoredEvent, 'kind' | 'subject' | 'data'>;

describe('a coordinator', () => {
  let coordinator: TestCoordinator;
  let publisher: GpuStatsPublisher;
  const published: Fact[] = [];
  const task = { jobId: runningJobId, attempt: 1, nodeRank: 0 };
  beforeEach(async () => {
    const memory = new Memory('test');
    for (const name of ['node-1', 'node-2']) memory.nodes.set(name, aNode(name));
    storeRunningJob(memory);
    coordinator = await startTestCoordinator({ memory });
    const { clock, telemetry, taskStatus } = coordinator;
    const clocks = { wallMs: () => clock.wallMs(), monotonicMs: () => clock.monotonicMs() };
    published.splice(0);
    const notices = { publish: (facts: readonly Fact[]) => void published.push(...facts) };
    publisher = new GpuStatsPublisher({ ...clocks, telemetry, taskStatus, notices });
  });
  afterEach(() => coordinator.close());

  const now = () => coordinator.clock.wallMs();
  const read = (fields: Parameters<typeof aReading>[0] = {}, node = 'node-1') =>
    coordinator.telemetry.addGpu(nodeNameOf(node), aReading({ atMs: now(), task, ...fields }));
  function texts() {
    publisher.run(coordinator.state);
    return published.map(({ data }) => data['text']);
  }

  test('says every half minute what is fresh, once for each job', async () => {
    read();
    read({ gpuUuid: 'GPU-node-2-0', task: { ...task, nodeRank: 1 }, utilization: 70 }, 'node-2');
    // Of another job, or of nobody.
    read({ gpuUuid: 'GPU-node-1-1', task: null, utilization: 0 });
    expect(texts(), 'too early').toEqual([]);
    coordinator.clock.nowMs += 30_000;
    const training = someProgress({ atMs: now() });
    coordinator.taskStatus.record(aReport(task, { training }));
    const text = '[GPU Stats] Memory: 78.1/159GB | Util: 60% | Samples/sec: 1024';
    expect(texts()).toEqual([text]);
    coordinator.clock.nowMs += 29_999;
    expect(texts()).toEqual([text]);
    expect(published.flatMap((fact) => problemOfEvent(fact) ?? [])).toEqual([]);
    expect(published[0]).toMatchObject({
      kind: 'training.stats',
      subject: runningJobId,
      data: { attempt: 1, utilization: 60, name: 'train' },
    });
    expect(await coordinator.logs.size(task), 'not in its output').toBe(0);
    expect(coordinator.memory.events.size, 'not stored').toBe(0);
  });

  test('readings that are old are not spoken of, nor is a speed that is', () => {
    read();
    coordinator.taskStatus.record(aReport(task, { training: someProgress({ atMs: now() }) }));
    coordinator.clock.nowMs += 36_000;
    expect(texts()).toEqual(['[GPU Stats] Samples/sec: 1024']);
    coordinator.clock.nowMs += 300_000;
    expect(texts()).toHaveLength(1);
  });

  test('of a job that stops, waits or has no GPU nothing is reported', () => {
    const job = coordinator.state.jobs.get(runningJobId);
    if (job?.state.kind !== 'running') throw new Error('it does not run');
    coordinator.taskStatus.record(aReport(task, { training: someProgress({ atMs: now() }) }));
    const { attempt } = job.state;
    const tasks = attempt.tasks.map((each) => ({ ...each, gpuUuids: [] }));
    coordinator.state.jobs.set(job.id, {
      ...job,
      state: { kind: 'running', attempt: { ...attempt, tasks } },
    });
    coordinator.clock.nowMs += 30_000;
    expect(texts()).toEqual([]);
    const outcome = { next: 'succeeded', cause: null } as const;
    coordinator.state.jobs.set(job.id, { ...job, state: { kind: 'stopping', attempt, outcome } });
    coordinator.clock.nowMs += 30_000;
    read();
    expect(texts()).toEqual([]);
  });
});
