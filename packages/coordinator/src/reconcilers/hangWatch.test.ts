import type { HangSign, TrainingProgress } from '@muster/common/training';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  heartbeatIntervalMs,
  startTestCoordinator,
  TestClock,
  type TestCoordinator,
} from '../coordinatorFixture.ts';
import type { Attempt } from '../model.ts';
import { anAttempt, aReport, aTask } from '../modelFixture.ts';
import { Memory } from '../store/memory/memoryStore.ts';
import { runningJob, runningJobId, storeRunningJob } from '../telemetry/telemetryFixture.ts';
import { HangWatch, judgeHang, type TaskWatch } from './hangWatch.ts';

const minuteMs = 60_000;

function aSign(fields: Partial<HangSign> = {}): HangSign {
  return { quietForMs: 10 * minuteMs, usualMs: 1_000, gpus: 'pinned', rank: null, ...fields };
}

function aWatch(nodeRank: number, fields: Partial<TaskWatch> = {}): TaskWatch {
  return { nodeRank, sign: null, heartbeats: 0, progressAgoMs: null, isWatched: true, ...fields };
}

const still = (nodeRank: number, fields: Partial<HangSign> = {}) =>
  aWatch(nodeRank, { sign: aSign(fields), heartbeats: 2, progressAgoMs: 10 * minuteMs });

describe('the verdict on an attempt', () => {
  test.each<[string, readonly TaskWatch[], number | null]>([
    ['none of whose tasks says so', [aWatch(0, { progressAgoMs: 60 * minuteMs }), aWatch(1)], null],
    ['whose only task stands still', [still(0)], 0],
    ['whose task has said so only once', [{ ...still(0), heartbeats: 1 }], null],
    ['of which the others never print anything', [aWatch(0), still(1)], 1],
    ['of which another one goes on', [still(0), aWatch(1, { progressAgoMs: 4 * minuteMs })], null],
    ['of which another one stopped with it', [still(0), aWatch(1, { progressAgoMs: 9 * minuteMs })], 0],
    ['of which another one is not heard', [still(0), aWatch(1, { isWatched: false })], null],
    ['that is not heard itself', [{ ...still(0), isWatched: false }], null],
    ['all of whose tasks stand still', [still(0), still(1, { quietForMs: 11 * minuteMs }), still(2)], 1],
    ['two of whose tasks fell silent at once', [still(1), still(0)], 0],
    ['that has no task any more', [], null],
  ])('%s', (_, tasks, nodeRank) => {
    expect(judgeHang(tasks)?.nodeRank ?? null).toBe(nodeRank);
  });

  test('carries the sign of the rank that stopped first', () => {
    const first = aSign({ quietForMs: 12 * minuteMs, rank: 5 });
    expect(judgeHang([still(0), { ...still(1), sign: first }])).toEqual({ nodeRank: 1, sign: first });
  });
});

describe('a coordinator', () => {
  let coordinator: TestCoordinator;
  let watch: HangWatch;
  beforeEach(async () => {
    const memory = new Memory('test');
    storeRunningJob(memory);
    coordinator = await startTestCoordinator({ memory });
    watch = watchOn(coordinator.clock);
  });
  afterEach(() => coordinator.close());

  const watchOn = (clock: TestClock) =>
    new HangWatch({
      wallMs: () => clock.wallMs(),
      monotonicMs: () => clock.monotonicMs(),
      heartbeatIntervalMs,
    });

  function progress(rows: number): TrainingProgress {
    const atMs = coordinator.clock.wallMs();
    return { framework: null, latest: {}, totalSteps: null, etaMs: null, rows, atMs };
  }

  interface Reported {
    readonly hang?: HangSign | null;
    readonly training?: TrainingProgress | null;
    readonly frozen?: boolean;
  }

  /** One heartbeat of every node, and a pass after it. */
  async function heartbeat(reported: readonly Reported[], attempt = 1): Promise<number> {
    coordinator.clock.nowMs += heartbeatIntervalMs;
    reported.forEach((fields, nodeRank) => {
      watch.note(aReport({ jobId: runningJobId, attempt, nodeRank }, fields));
    });
    const work = watch.run(coordinator.state, coordinator.loop);
    await Promise.all(work);
    return work.length;
  }

  const hangs = { hang: aSign() };
  const quiet = {};

  test('gets a hang at the second heartbeat, once for each stretch', async () => {
    expect(await heartbeat([hangs, quiet])).toBe(0);
    expect(await heartbeat([hangs, quiet])).toBe(1);
    expect(await heartbeat([hangs, quiet])).toBe(0);
    // It made progress without a restart, and then hung again.
    expect(await heartbeat([quiet, quiet])).toBe(0);
    expect(await heartbeat([hangs, quiet])).toBe(0);
    expect(await heartbeat([hangs, quiet])).toBe(1);
  });

  test('one heartbeat without the sign begins the count anew', async () => {
    for (const reported of [hangs, quiet, hangs, quiet, hangs])
      expect(await heartbeat([reported, quiet])).toBe(0);
  });

  test('a task whose output goes on vetoes, and one whose output has stopped does not', async () => {
    let rows = 1;
    for (; rows <= 5; rows += 1) expect(await heartbeat([hangs, { training: progress(rows) }])).toBe(0);
    coordinator.clock.nowMs += 6 * minuteMs;
    expect(await heartbeat([hangs, { training: progress(rows - 1) }])).toBe(1);
  });

  test('of a task that it has just got to know, its own clock tells how long ago it went on', async () => {
    const longAgo = { training: progress(7) };
    coordinator.clock.nowMs += 6 * minuteMs;
    expect(await heartbeat([hangs, longAgo])).toBe(0);
    expect(await heartbeat([hangs, longAgo])).toBe(1);
  });

  test('gets nothing while a task is frozen, or its node silent', async () => {
    const frozen = { ...hangs, frozen: true };
    for (let beat = 0; beat < 3; beat += 1) expect(await heartbeat([frozen, quiet])).toBe(0);
    for (let beat = 0; beat < 3; beat += 1) expect(await heartbeat([hangs, { frozen: true }])).toBe(0);
    await heartbeat([quiet, quiet]);
    expect(await heartbeat([{ ...hangs, frozen: true }, quiet])).toBe(0);
    expect(await heartbeat([hangs, quiet]), 'it was thawed only now').toBe(0);
    coordinator.clock.nowMs += 3 * heartbeatIntervalMs;
    for (let beat = 0; beat < 3; beat += 1) expect(await heartbeat([hangs])).toBe(0);
    expect(await heartbeat([hangs, quiet]), 'both are heard, and neither is frozen').toBe(1);
  });

  test('what was reported long ago is no sign any more', async () => {
    await heartbeat([hangs, quiet]);
    watch.note(aReport({ jobId: runningJobId, attempt: 1, nodeRank: 0 }, hangs));
    coordinator.clock.nowMs += 3 * heartbeatIntervalMs;
    expect(watch.run(coordinator.state, coordinator.loop)).toEqual([]);
  });

  test('a new attempt begins with nothing known', async () => {
    await heartbeat([hangs, quiet]);
    const tasks = [0, 1].map((rank) => aTask(rank, { state: 'running' }));
    const attempt: Attempt = anAttempt(2, { state: 'running', tasks });
    const again = { ...runningJob, lastAttempt: 2, state: { kind: 'running', attempt } } as const;
    coordinator.state.jobs.set(runningJobId, again);
    expect(await heartbeat([hangs, quiet], 2)).toBe(0);
    expect(await heartbeat([hangs, quiet], 2)).toBe(1);
  });

  test('a job that stops, or is gone, is watched no more', async () => {
    await heartbeat([hangs, quiet]);
    const { state } = coordinator;
    if (runningJob.state.kind !== 'running') throw new Error('it does not run');
    const cause = { kind: 'cancelled', message: 'stopped', nodeRank: null, node: null } as const;
    const outcome = { next: 'cancelled', cause: { ...cause, evidence: null, blame: 'platform' } } as const;
    const stopping = { kind: 'stopping', attempt: runningJob.state.attempt, outcome } as const;
    state.jobs.set(runningJobId, { ...runningJob, state: stopping });
    expect(await heartbeat([hangs, quiet])).toBe(0);
    state.jobs.delete(runningJobId);
    expect(await heartbeat([hangs, quiet])).toBe(0);
  });
});
