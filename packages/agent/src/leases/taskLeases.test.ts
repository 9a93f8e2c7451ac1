import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type JobId, type TaskRef, taskKey } from '@muster/common/ids';
import { silentLogger } from '@muster/common/log';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { FakeDriver } from '../drivers/fakeDriver.ts';
import { TaskLeases } from './taskLeases.ts';

const task: TaskRef = { jobId: 'job_0123456789ab' as JobId, attempt: 1, nodeRank: 0 };
const key = taskKey(task);

/** A running task under a lease of 10 s that was asked for at 1,000 ms, on clocks that a test moves. */
async function aLeasedTask(onExpiry: 'freeze' | 'kill' = 'freeze', leaseMs = 10_000) {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const directory = mkdtempSync(join(tmpdir(), 'leases-'));
  onTestFinished(() => {
    vi.useRealTimers();
    rmSync(directory, { recursive: true });
  });
  const clock = { nowMs: 1_000 };
  const driver = new FakeDriver('process', () => clock.nowMs);
  const changes: boolean[] = [];
  const problems: string[] = [];
  const note = (_: object, message: string) => void problems.push(message);
  const open = () =>
    new TaskLeases({
      bootId: 'boot-1',
      boottimeMs: () => clock.nowMs,
      log: { ...silentLogger, error: note },
      onChange: () => void changes.push(keeper.isFrozen(task)),
    });
  const keeper = open();
  onTestFinished(() => keeper.close());
  const fenced = { driver, location: { key, directory }, onExpiry };
  keeper.grant(task, 1_000, leaseMs);
  keeper.onStarting(task, fenced);
  driver.addRunning(key, keeper.leaseOf(task));
  keeper.onRunning(task);
  driver.calls.length = 0;
  changes.length = 0;
  /** Time goes by, as the timers and CLOCK_BOOTTIME see it. */
  const pass = async (ms: number) => {
    for (let left = ms; left > 0; left -= 10) {
      clock.nowMs += Math.min(10, left);
      await vi.advanceTimersByTimeAsync(Math.min(10, left));
    }
  };
  const settle = () => vi.advanceTimersByTimeAsync(0);
  return { keeper, open, driver, fenced, clock, changes, problems, pass, settle };
}

describe('at the deadline', () => {
  test('a task is frozen, not before, and that is reported', async () => {
    const { driver, keeper, changes, pass } = await aLeasedTask();
    await pass(9_990);
    expect(driver.calls).toEqual([]);
    await pass(20);
    expect(driver.calls).toEqual([`freeze ${key}`]);
    expect([keeper.isFrozen(task), changes]).toEqual([true, [true]]);
    await pass(60_000);
    expect(driver.calls).toHaveLength(1);
  });

  test('that passed while the whole agent was stopped, or the machine slept, it is frozen at once', async () => {
    const { driver, clock } = await aLeasedTask();
    clock.nowMs += 3_600_000;
    await vi.advanceTimersByTimeAsync(1_000);
    expect(driver.isFrozen(key)).toBe(true);
  });

  test('a task that is never fenced runs on, and nothing wakes the agent for it', async () => {
    const { driver } = await aLeasedTask('freeze', 0);
    expect(vi.getTimerCount()).toBe(0);
    expect(driver.calls).toEqual([]);
  });

  test('one that cannot be frozen is tried again every second', async () => {
    const { driver, problems, pass } = await aLeasedTask();
    driver.fail('freeze', 'before');
    await pass(12_500);
    expect(driver.calls.length).toBeGreaterThanOrEqual(2);
    expect(problems).toContain('a task whose lease has run out could not be fenced');
    driver.mend('freeze');
    await pass(1_010);
    expect(driver.isFrozen(key)).toBe(true);
  });

  test('a call to the second fence that hangs holds up nothing', async () => {
    const { driver, keeper, pass } = await aLeasedTask();
    driver.hold('renew');
    keeper.grant(task, 1_500, 10_000);
    await pass(10_520);
    expect(driver.isFrozen(key)).toBe(true);
  });

  test('neither does a thaw that hangs: it is frozen again, and once more after it', async () => {
    const { driver, keeper, clock, pass, settle } = await aLeasedTask();
    await pass(10_010);
    const letThaw = driver.hold('thaw');
    keeper.grant(task, clock.nowMs, 2_000);
    await settle();
    expect(driver.calls.at(-1)).toBe(`thaw ${key}`);
    await pass(2_010);
    letThaw();
    await pass(1_010);
    expect(driver.isFrozen(key)).toBe(true);
    expect(keeper.isFrozen(task)).toBe(true);
  });

  test('a task that is starting is frozen as soon as it is there', async () => {
    const { driver, keeper, fenced, pass, settle, clock } = await aLeasedTask();
    driver.loseAll();
    keeper.onStarting(task, fenced);
    await pass(10_010);
    driver.addRunning(key);
    keeper.onRunning(task);
    await settle();
    expect(driver.isFrozen(key)).toBe(true);
    expect(clock.nowMs).toBeGreaterThan(11_000);
  });

  test('a task whose start got no answer is frozen when it comes into being after all', async () => {
    const { driver, keeper, fenced, pass } = await aLeasedTask();
    driver.loseAll();
    keeper.onStarting(task, fenced);
    await pass(12_000);
    driver.addRunning(key);
    await pass(1_010);
    expect(driver.isFrozen(key)).toBe(true);
  });

  test('a task that is to be killed is frozen first, then killed, and no lease brings it back', async () => {
    const { driver, keeper, clock, pass, settle } = await aLeasedTask('kill');
    driver.fail('stop', 'before');
    await pass(10_010);
    expect(driver.calls).toEqual([`freeze ${key}`, `stop ${key} SIGKILL 0`]);
    keeper.grant(task, clock.nowMs, 10_000);
    await settle();
    expect(driver.calls).not.toContain(`thaw ${key}`);
    driver.mend('stop');
    await pass(1_010);
    expect(driver.isRunning(key)).toBe(false);
  });
});

describe('a fresh lease', () => {
  test('is given to the second fence before the task is thawed', async () => {
    const { driver, keeper, clock, changes, pass, settle } = await aLeasedTask();
    await pass(10_010);
    driver.calls.length = 0;
    const letRenew = driver.hold('renew');
    keeper.grant(task, clock.nowMs, 10_000);
    await settle();
    expect(driver.calls).toEqual([`renew ${key} ${clock.nowMs + 10_000}`]);
    letRenew();
    await settle();
    expect(driver.calls.at(-1)).toBe(`thaw ${key}`);
    expect([driver.isFrozen(key), keeper.isFrozen(task), changes.at(-1)]).toEqual([false, false, false]);
  });

  test('thaws a task even when the second fence does not take it: the first one holds', async () => {
    const { driver, keeper, clock, pass, settle } = await aLeasedTask();
    await pass(10_010);
    driver.fail('renew', 'before');
    keeper.grant(task, clock.nowMs, 10_000);
    await settle();
    expect(driver.isFrozen(key)).toBe(false);
    driver.mend('renew');
    keeper.grant(task, clock.nowMs + 10, 10_000);
    await settle();
    expect(driver.leaseOf(key)?.deadlineBoottimeMs).toBe(clock.nowMs + 10_010);
  });

  test('that has run out when its answer comes changes nothing for a frozen task', async () => {
    const { driver, keeper, pass, settle } = await aLeasedTask();
    await pass(30_000);
    driver.calls.length = 0;
    keeper.grant(task, 12_000, 10_000);
    await settle();
    expect(driver.calls).not.toContain(`thaw ${key}`);
    expect(driver.isFrozen(key)).toBe(true);
  });

  test('that comes while the task is being frozen thaws it afterwards', async () => {
    const { driver, keeper, clock, pass, settle } = await aLeasedTask();
    const letFreeze = driver.hold('freeze');
    await pass(10_010);
    keeper.grant(task, clock.nowMs, 10_000);
    await settle();
    letFreeze();
    await settle();
    expect(driver.calls.at(-1)).toBe(`thaw ${key}`);
    expect(driver.isFrozen(key)).toBe(false);
  });

  test('that came in time here, and a moment too late for the second fence, undoes what that did', async () => {
    const { driver, keeper, clock, pass, settle } = await aLeasedTask();
    await pass(9_900);
    const letRenew = driver.hold('renew');
    keeper.grant(task, clock.nowMs, 10_000);
    await pass(200);
    driver.freezeFromOutside(key);
    letRenew();
    await settle();
    expect(driver.isFrozen(key)).toBe(false);
    expect(driver.calls).not.toContain(`freeze ${key}`);
  });

  test('goes to the second fence one at a time, and the newest deadline wins', async () => {
    const { driver, keeper, settle } = await aLeasedTask();
    const letRenew = driver.hold('renew');
    for (const askedMs of [2_000, 3_000, 4_000]) keeper.grant(task, askedMs, 10_000);
    await settle();
    expect(driver.calls).toEqual([`renew ${key} 12000`]);
    letRenew();
    await settle();
    expect(driver.calls).toEqual([`renew ${key} 12000`, `renew ${key} 14000`]);
  });

  test('of an older question changes nothing', async () => {
    const { driver, keeper, pass } = await aLeasedTask();
    keeper.grant(task, 900, 60_000);
    await pass(10_010);
    expect(driver.isFrozen(key)).toBe(true);
  });

  test('that comes during the start goes to the second fence when there is something to fence', async () => {
    const { driver, keeper, fenced, settle } = await aLeasedTask();
    keeper.onStarting(task, fenced);
    keeper.grant(task, 2_000, 10_000);
    await settle();
    expect(driver.calls).toEqual([]);
    keeper.onRunning(task);
    await settle();
    expect(driver.calls).toEqual([`renew ${key} 12000`]);
  });
});

describe('a new agent', () => {
  test('goes on with the deadline that was', async () => {
    const { keeper, open, driver, fenced, pass } = await aLeasedTask();
    keeper.grant(task, 3_000, 10_000);
    keeper.close();
    await pass(5_000);
    const next = open();
    onTestFinished(() => next.close());
    next.adopt(task, fenced, false);
    await pass(6_990);
    expect(driver.isFrozen(key)).toBe(false);
    await pass(20);
    expect(driver.isFrozen(key)).toBe(true);
  });

  test('freezes a task at once whose lease ran out before it came', async () => {
    const { keeper, open, driver, fenced, clock, settle } = await aLeasedTask();
    keeper.close();
    clock.nowMs += 20_000;
    const next = open();
    onTestFinished(() => next.close());
    next.adopt(task, fenced, false);
    await settle();
    expect(driver.isFrozen(key)).toBe(true);
  });

  test('thaws one that its predecessor had given a lease, and died', async () => {
    const { keeper, open, driver, fenced, clock, pass, settle } = await aLeasedTask();
    await pass(10_010);
    const letThaw = driver.hold('thaw');
    keeper.grant(task, clock.nowMs, 10_000);
    await settle();
    keeper.close();
    const next = open();
    onTestFinished(() => next.close());
    next.adopt(task, fenced, true);
    letThaw();
    await settle();
    await pass(1_010);
    expect(driver.isFrozen(key)).toBe(false);
  });
});

test('a keeper that is closed leaves tasks to the second fence', async () => {
  const { keeper, driver, pass } = await aLeasedTask();
  keeper.close();
  expect(vi.getTimerCount()).toBe(0);
  await pass(11_000);
  expect(driver.calls).toEqual([]);
});
