import { mkdtempSync, rmSync, utimesSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Logger, silentLogger } from '@muster/common/log';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { jobIdOf } from '../modelFixture.ts';
import { LogBudget } from './logBudget.ts';
import { LogStore } from './logStore.ts';

let directory: string;
let logs: LogStore;
/** The newest attempt of each job that has not ended. */
let live: Map<number, number>;
let removed: string[];
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-budget-'));
  logs = new LogStore(directory);
  live = new Map();
  removed = [];
});
afterEach(async () => {
  await logs.close();
  rmSync(directory, { recursive: true });
});

const taskOf = (job: number, attempt = 1) => ({ jobId: jobIdOf(job), attempt, nodeRank: 0 });

/** Output of a job, last written `age` seconds ago. */
async function write(job: number, bytes: number, age: number, attempt = 1): Promise<void> {
  const task = taskOf(job, attempt);
  await logs.append(task, await logs.size(task), Buffer.alloc(bytes, 'x'));
  const at = Date.now() / 1_000 - age;
  utimesSync(join(logs.directoryOf(task.jobId), `${attempt}.0.log`), at, at);
}

function aBudget(bytesMax: number, log: Logger = silentLogger): LogBudget {
  return new LogBudget({
    logs,
    bytesMax,
    log,
    liveAttempt: (jobId) => [...live].find(([job]) => jobIdOf(job) === jobId)?.[1] ?? null,
    onRemoved: (jobId, bytes) => void removed.push(`${jobId}: ${bytes}`),
  });
}

test('the logs of ended jobs go, the oldest first, and no more than has to', async () => {
  for (const [job, age] of [
    [1, 50],
    [2, 400],
    [3, 300],
    [4, 500],
  ] as const)
    await write(job, 1_000, age);
  live.set(4, 1);
  const budget = aBudget(2_500);
  await budget.run();
  expect(removed).toEqual([`${jobIdOf(2)}: 1000`, `${jobIdOf(3)}: 1000`]);
  expect(budget.usedBytes).toBe(2_000);
  await budget.run();
  expect(removed).toHaveLength(2);
});

test('logs that cannot be removed keep no others', async () => {
  await write(1, 1_000, 300);
  await write(2, 1_000, 200);
  await write(3, 1_000, 100);
  const clear = logs.clear.bind(logs);
  logs.clear = (jobId, ...why) =>
    jobId === jobIdOf(1) ? Promise.reject(new Error('EPERM')) : clear(jobId, ...why);
  const warnings: unknown[] = [];
  await aBudget(2_500, { ...silentLogger, warn: (fields) => void warnings.push(fields) }).run();
  expect(removed).toEqual([`${jobIdOf(2)}: 1000`]);
  expect(warnings).toEqual([{ jobId: jobIdOf(1), error: 'EPERM' }]);
});

test('what was there before counts', async () => {
  await write(1, 1_000, 100);
  await logs.close();
  logs = new LogStore(directory);
  await write(2, 1_000, 0);
  const budget = aBudget(1_500);
  await budget.run();
  expect(removed).toEqual([`${jobIdOf(1)}: 1000`]);
});

test('of running jobs nothing goes; who has more than an even share waits, and the others do not', async () => {
  live.set(1, 1).set(2, 1);
  await write(1, 1_900, 0);
  await write(2, 200, 0);
  const budget = aBudget(2_000);
  await budget.run();
  expect(removed).toEqual([]);
  expect([budget.holds(taskOf(1)), budget.holds(taskOf(2))]).toEqual([true, false]);
  // Its job ends: what it wrote makes room.
  live.delete(1);
  await write(2, 200, 0);
  await budget.run();
  expect(removed).toEqual([`${jobIdOf(1)}: 1900`]);
  expect(budget.holds(taskOf(2))).toBe(false);
});

test('earlier attempts of a job that goes on go after the ended jobs, and its newest one stays', async () => {
  live.set(1, 3);
  for (const attempt of [1, 2, 3]) await write(1, 1_000, 500, attempt);
  await write(2, 1_000, 0);
  await aBudget(3_500).run();
  expect(removed).toEqual([`${jobIdOf(2)}: 1000`]);
  removed = [];
  await write(3, 1_000, 0);
  live.set(3, 1);
  const budget = aBudget(2_500);
  await budget.run();
  expect(removed).toEqual([`${jobIdOf(1)}: 2000`]);
  expect(await logs.read(taskOf(1, 3), 0, 10)).toHaveLength(10);
  expect(await logs.gapAt(taskOf(1, 2), 0)).toEqual({ to: 1_000, reason: 'budget' });
});

test('tasks whose files had to be closed for others are held all the same', async () => {
  const jobs = 600;
  for (let job = 1; job <= jobs; job += 1) {
    live.set(job, 1);
    await write(job, job === 1 ? 2_000 : 10, 0);
  }
  const budget = aBudget(4_000);
  await budget.run();
  expect(logs.writtenCount).toBe(jobs);
  // The first one's file is no longer open.
  expect([budget.holds(taskOf(1)), logs.writtenBytes(taskOf(1))]).toEqual([true, 2_000]);
  await logs.clear(jobIdOf(1), 'removed');
  expect([logs.writtenCount, logs.writtenBytes(taskOf(1))]).toEqual([jobs - 1, 0]);
});
