/**
 * What every driver must do about leases: freeze and thaw, start nothing too late, and be fenced at the deadline whatever
 * has died by then. A task counts as frozen when its output no longer grows; a report of the driver alone is no evidence.
 */

import { readBootId } from '@muster/common/boot';
import { describe, expect, it } from 'vitest';
import { waitFor } from '../../../../test/support/services.ts';
import { boottimeMs } from '../probes/boot.ts';
import { LeaseExpired } from '../taskFacts/errors.ts';
import type { Lease } from '../taskFacts/execution.ts';
import { exitedWith, never, outputOf } from './conformanceTasks.ts';
import type { TaskDriver, TaskLaunch } from './driver.ts';

/** What holds the leases without an agent. */
export interface ConformanceGuard {
  livePid(): Promise<number>;
  killGuard(): Promise<void>;
  startGuard(): Promise<void>;
  guardLog(): string;
}

export interface FenceSuite {
  aScript(script: string, lease?: Lease | null): Promise<TaskLaunch>;
  openDriver(): Promise<TaskDriver>;
  /** Pids of the last task, oldest first. */
  processes(): Promise<number[]>;
  guard(): ConformanceGuard;
}

const countPeriodMs = 50;

/** Writes a line again and again; traps run at once, as in IDLE. */
const countScript = 'while :; do echo on; { sleep 0.05 & wait $!; } 2>/dev/null; done';

export function describeFences({ aScript, openDriver, processes, guard }: FenceSuite): void {
  describe('fences', () => {
    /** Starts a task that counts, and waits until it does. */
    async function aCounter(lease: Lease | null = null, before = ''): Promise<[TaskDriver, TaskLaunch]> {
      const launch = await aScript(`${before} ${countScript}`, lease);
      const driver = await openDriver();
      await driver.start(launch);
      await countsOn(launch);
      return [driver, launch];
    }

    /** One whose lease runs out soon, however long the start takes on a busy machine. */
    async function aCounterFor(
      ms: number,
      { onExpiry = 'freeze', before = '' }: { onExpiry?: Lease['onExpiry']; before?: string } = {},
    ): Promise<[TaskDriver, TaskLaunch, Lease]> {
      const [driver, launch] = await aCounter(null, before);
      const lease = leaseFor(ms, onExpiry);
      await driver.renew(launch, lease);
      return [driver, launch, lease];
    }

    it('freezes every process, and lets the same ones go on', async () => {
      const [driver, launch] = await aCounter(null, `setsid /bin/sh -c '${countScript}' &`);
      const pids = await processes();
      expect(await driver.recover(launch)).toMatchObject({ kind: 'running', frozen: false });
      expect(await driver.freeze(launch)).toBe('frozen');
      await standsStill(launch);
      expect(await driver.recover(launch)).toMatchObject({ kind: 'running', frozen: true });
      expect(await driver.freeze(launch)).toBe('frozen');
      await driver.thaw(launch);
      await driver.thaw(launch);
      await countsOn(launch);
      expect(await driver.recover(launch)).toMatchObject({ kind: 'running', frozen: false });
      expect((await processes())[0]).toBe(pids[0]);
    });

    it('freezes while the guard is stopped', async () => {
      const [driver, launch] = await aCounter(leaseFor(600_000));
      const pid = await guard().livePid();
      process.kill(pid, 'SIGSTOP');
      try {
        expect(await driver.freeze(launch)).toBe('frozen');
        await standsStill(launch);
        await driver.thaw(launch);
        await countsOn(launch);
      } finally {
        process.kill(pid, 'SIGCONT');
      }
    });

    it('takes a freeze and a thaw of what has ended, or never was, without an error', async () => {
      const launch = await aScript('exit 0');
      const driver = await openDriver();
      await driver.start(launch);
      await driver.wait(launch, never());
      expect(await driver.freeze(launch)).toBe('ended');
      await driver.thaw(launch);
      await driver.renew(launch, leaseFor(600_000));
      expect(await driver.recover(launch)).toMatchObject({ kind: 'exited', exit: exitedWith(0) });
    });

    it('freezes at the deadline although the agent is gone', async () => {
      const [driver, launch] = await aCounter(leaseFor(3_000));
      await driver.close();
      await standsStill(launch);
      const next = await openDriver();
      expect(await next.recover(launch)).toMatchObject({ kind: 'running', frozen: true });
    });

    it('freezes at the deadline although the guard was killed and started again', async () => {
      const [driver, launch] = await aCounterFor(1_000);
      await driver.close();
      await guard().killGuard();
      await guard().startGuard();
      await standsStill(launch);
      const next = await openDriver();
      expect(await next.recover(launch)).toMatchObject({ kind: 'running', frozen: true });
    });

    it('freezes what ran out of its lease while there was no guard at all', async () => {
      const [driver, launch, lease] = await aCounterFor(500);
      await driver.close();
      await guard().killGuard();
      await waitFor('the lease to run out', async () => boottimeMs() > lease.deadlineBoottimeMs);
      await countsOn(launch);
      await guard().startGuard();
      await standsStill(launch);
    });

    it('goes on with a later lease and a thaw, the same processes', async () => {
      const [driver, launch] = await aCounterFor(300);
      const pids = await processes();
      // A lease that comes while the guard is at it would end that with a thaw.
      const isReport = (line: string) =>
        line.includes(launch.key) && /has run out: (?:it was )?frozen/.test(line);
      await waitFor('the guard to be done', async () => guard().guardLog().split('\n').some(isReport));
      expect(await isFrozen(driver, launch)).toBe(true);
      await driver.renew(launch, leaseFor(600_000));
      await standsStill(launch);
      await driver.thaw(launch);
      await countsOn(launch);
      expect((await processes())[0]).toBe(pids[0]);
    });

    it('freezes again what is thawed without a lease', async () => {
      const [driver, launch] = await aCounterFor(300);
      await waitFor('the task to be frozen', () => isFrozen(driver, launch));
      await driver.thaw(launch);
      await waitFor('the task to be frozen again', () => isFrozen(driver, launch));
      await standsStill(launch);
    });

    it('lets an earlier deadline take nothing back, and nobody move one', async () => {
      const [driver, launch] = await aCounter(leaseFor(600_000));
      const earlier = leaseFor(300);
      await driver.renew(launch, earlier);
      await waitFor('the earlier deadline', async () => boottimeMs() > earlier.deadlineBoottimeMs + 600);
      await countsOn(launch);
      expect(await isFrozen(driver, launch)).toBe(false);
      await expect(driver.renew(launch, { ...leaseFor(900_000), bootId: 'another' })).rejects.toThrow(
        'another boot',
      );
      await driver.renew(launch, null);
      await countsOn(launch);
    });

    it('holds a lease that comes to a task without one', async () => {
      const [driver, launch] = await aCounter();
      await driver.renew(launch, leaseFor(300));
      await standsStill(launch);
      expect(await isFrozen(driver, launch)).toBe(true);
    });

    it('kills at the deadline where the lease says so, frozen or not', async () => {
      const [driver, launch] = await aCounterFor(500, { onExpiry: 'kill' });
      await driver.freeze(launch);
      await waitFor('nothing to be left', async () => (await processes()).length === 0);
      expect(await driver.wait(launch, never())).toMatchObject({ exitCode: null, signal: 'SIGKILL' });
    });

    it('starts nothing once the lease has run out', async () => {
      const driver = await openDriver();
      for (const lease of [leaseFor(0), { ...leaseFor(600_000), bootId: 'another' }]) {
        const launch = await aScript('echo ran', lease);
        await expect(driver.start(launch)).rejects.toBeInstanceOf(LeaseExpired);
        expect(await driver.recover(launch)).toEqual({ kind: 'absent' });
        expect(await driver.list()).not.toContain(launch.key);
        expect(await outputOf(launch)).toBe('');
      }
    });

    it('thaws a frozen task that is stopped, so that it can save', async () => {
      const [driver, launch] = await aCounter(leaseFor(600_000), `trap 'echo saved; exit 7' TERM;`);
      await driver.freeze(launch);
      const exit = await driver.stop(launch, { signal: 'SIGTERM', graceMs: 60_000 });
      expect(exit).toMatchObject(exitedWith(7));
      expect(await outputOf(launch)).toMatch(/saved\n$/);
    });

    it('does not let a stopped task run once its lease has run out, and ends it', async () => {
      const [driver, launch] = await aCounterFor(300, { before: `trap 'echo saved; exit 7' TERM;` });
      await waitFor('the task to be frozen', () => isFrozen(driver, launch));
      const output = await outputOf(launch);
      const exit = await driver.stop(launch, { signal: 'SIGTERM', graceMs: 500 });
      expect(exit).toMatchObject({ exitCode: null });
      expect(await outputOf(launch)).toBe(output);
      expect(await processes()).toEqual([]);
    });

    it('lets a stopped task save when the lease comes after the order to stop', async () => {
      const [driver, launch] = await aCounterFor(300, { before: `trap 'echo saved; exit 7' TERM;` });
      await waitFor('the task to be frozen', () => isFrozen(driver, launch));
      const stopping = driver.stop(launch, { signal: 'SIGTERM', graceMs: 60_000 });
      await standsStill(launch);
      await driver.renew(launch, leaseFor(600_000));
      expect(await stopping).toMatchObject(exitedWith(7));
      expect(await outputOf(launch)).toMatch(/saved\n$/);
    });

    it('ends a frozen task with SIGKILL, without an instruction more', async () => {
      const leftover = `setsid /bin/sh -c 'trap "" TERM HUP; ${countScript}' &`;
      const [driver, launch] = await aCounter(leaseFor(600_000), leftover);
      await driver.freeze(launch);
      await standsStill(launch);
      const output = await outputOf(launch);
      const exit = await driver.stop(launch, { signal: 'SIGKILL', graceMs: 0 });
      expect(exit).toMatchObject({ exitCode: null, signal: 'SIGKILL' });
      expect(await outputOf(launch)).toBe(output);
      expect(await processes()).toEqual([]);
      expect(await driver.recover(launch)).toMatchObject({ kind: 'exited' });
      await driver.remove(launch);
      expect(await driver.recover(launch)).toEqual({ kind: 'absent' });
    });

    it('starts what was prepared, as often as that was', async () => {
      const launch = await aScript('echo ran');
      const driver = await openDriver();
      await driver.prepare(launch, () => {});
      await driver.prepare(launch, () => {});
      expect(await driver.recover(launch)).toEqual({ kind: 'absent' });
      expect(await driver.list()).not.toContain(launch.key);
      await driver.start(launch);
      expect(await driver.wait(launch, never())).toMatchObject(exitedWith(0));
      const reason = new Error('no longer needed');
      await expect(driver.prepare(launch, () => {}, AbortSignal.abort(reason))).rejects.toBe(reason);
    });
  });
}

function leaseFor(ms: number, onExpiry: Lease['onExpiry'] = 'freeze'): Lease {
  return { deadlineBoottimeMs: boottimeMs() + ms, bootId: readBootId(), onExpiry };
}

async function isFrozen(driver: TaskDriver, launch: TaskLaunch): Promise<boolean> {
  const observed = await driver.recover(launch);
  return observed.kind === 'running' && observed.frozen;
}

/** Its output grows from now on. */
async function countsOn(launch: TaskLaunch): Promise<void> {
  const before = await outputOf(launch);
  await waitFor('the task to count on', async () => (await outputOf(launch)).length > before.length);
}

/** Its output grows no more: not a line in the time of ten. */
async function standsStill(launch: TaskLaunch): Promise<void> {
  await waitFor('the task to stand still', async () => {
    const before = await outputOf(launch);
    await new Promise((resolve) => setTimeout(resolve, 10 * countPeriodMs));
    return (await outputOf(launch)) === before;
  });
}
