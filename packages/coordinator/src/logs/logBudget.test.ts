import { mkdtempSync, rmSync, utimesSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLogger } from '@muster/common/log';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { jobIdOf } from '../modelFixture.ts';
import { LogBudget } from './logBudget.ts';
import { LogStore } from './logStore.ts';

let directory: string;
let logs: LogStore;
let live: Set<number>;
let removed: string[];
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-budget-'));
  logs = new LogStore(directory);
  live = new Set();
  removed = [];
});
afterEach(async () => {
  await logs.close();
  rmSync(directory, { recursive: true });
});

const taskOf = (job: number) => ({ jobId: jobIdOf(job), attempt: 1, nodeRank: 0 });

/** Output of a job, last written `age` seconds ago. */
async function write(job: number, bytes: number, age: number): Promise<void> {
  const task = taskOf(job);
  await logs.append(task, await logs.size(task), Buffer.alloc(bytes, 'x'));
  const at = Date.now() / 1_000 - age;
  utimesSync(join(logs.directoryOf(task.jobId), '1.0.log'), at, at);
}

function aBudget(bytesMax: number): LogBudget {
  return new LogBudget({
    ...{ logs, bytesMax, log: silentLogger },
    isLive: (jobId) => [...live].some((job) => jobIdOf(job) === jobId),
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
  live.add(4);
  const budget = aBudget(2_500);
  await budget.run();
  expect(removed).toEqual([`${jobIdOf(2)}: 1000`, `${jobIdOf(3)}: 1000`]);
  expect(budget.usedBytes).toBe(2_000);
  await budget.run();
  expect(removed).toHaveLength(2);
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
  live.add(1).add(2);
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
