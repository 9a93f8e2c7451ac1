/** The guard as fence of tasks that it did not start: what it is told are control groups, which need not be there yet. */

import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readBootId } from '@muster/common/boot';
import { describe, expect, it, onTestFinished } from 'vitest';
import { waitFor } from '../../../../../test/support/services.ts';
import { parseCgroupHomes } from '../../fence/cgroupMounts.ts';
import { ControlGroup } from '../../fence/controlGroup.ts';
import { boottimeMs } from '../../probes/boot.ts';
import type { Lease } from '../../taskFacts/execution.ts';
import { aForeignProcess, canContain, idleScript, processGone, useGuards } from './guardFixture.ts';

const aGuard = useGuards();
const why = 'needs control groups that we may make; try as root';

/** Paths of a group that does not exist; what a test makes there is removed after it. */
function aGroup(kind: 'cgroup2' | 'freezer', name: string): { path: string; begin: () => number } {
  const homes = parseCgroupHomes(
    readFileSync('/proc/self/mountinfo', 'utf8'),
    readFileSync('/proc/self/cgroup', 'utf8'),
  );
  const path = join(homes[kind] ?? '/nowhere', `muster-fences-${process.pid}-${name}`);
  const group = new ControlGroup(path);
  onTestFinished(async () => {
    if (!existsSync(path)) return;
    group.kill();
    group.thaw();
    await waitFor('the group to be empty', () => group.isEmpty());
    rmdirSync(path);
  });
  const begin = () => {
    mkdirSync(path);
    const pid = aForeignProcess({});
    writeFileSync(join(path, 'cgroup.procs'), String(pid));
    return pid;
  };
  return { path, begin };
}

function leaseFor(ms: number, onExpiry: Lease['onExpiry'] = 'freeze'): Lease {
  return { deadlineBoottimeMs: boottimeMs() + ms, bootId: readBootId(), onExpiry };
}

describe.each(['cgroup2', 'freezer'] as const)('a container without an agent (%s)', (kind) => {
  const missing = canContain(kind) ? '' : ` (${why})`;

  it.skipIf(missing !== '')(`is frozen as soon as it is there, if that is too late${missing}`, async () => {
    const guard = aGuard();
    const task = await guard.task(['true']);
    const { path, begin } = aGroup(kind, 'late');
    await guard.fence().renew(task, leaseFor(0), ['/sys/fs/cgroup/nowhere', path]);
    begin();
    const group = new ControlGroup(path);
    await waitFor('the group to be frozen', () => group.isFrozen() && !group.isEmpty());
    await waitFor('the log to say so', () => /has run out: (it was )?frozen/.test(guard.guardLog()));
    expect(guard.guardLog()).toContain(task.key);
    await guard.fence().forget(task);
  });

  it.skipIf(missing !== '')(`is killed where the lease says so${missing}`, async () => {
    const guard = aGuard();
    const task = await guard.task(['true']);
    const { path, begin } = aGroup(kind, 'kill');
    const pid = begin();
    new ControlGroup(path).freeze();
    await guard.fence().renew(task, leaseFor(100, 'kill'), [path]);
    await processGone(pid);
    await waitFor('the log to say so', () => guard.guardLog().includes('has run out: killed'));
    await guard.fence().forget(task);
  });

  it.skipIf(missing !== '')(
    `is left alone once it is forgotten, and was never touched before${missing}`,
    async () => {
      const guard = aGuard();
      const [task, other] = [await guard.task(['true']), await guard.task(['true'])];
      const forgotten = aGroup(kind, 'forgotten');
      const expired = aGroup(kind, 'expired');
      forgotten.begin();
      expired.begin();
      const fence = guard.fence();
      // Long enough to be forgotten before it runs out, on a busy machine too; the other one runs out later.
      const lease = leaseFor(5_000);
      await fence.renew(task, lease, [forgotten.path]);
      await fence.forget(task);
      const later = { ...lease, deadlineBoottimeMs: lease.deadlineBoottimeMs + 100 };
      await fence.renew(other, later, [expired.path]);
      await waitFor('the other one to be frozen', () => new ControlGroup(expired.path).isFrozen());
      expect(new ControlGroup(forgotten.path).isFrozen()).toBe(false);
      await fence.forget(other);
    },
  );
});

describe('a guard that holds the lease of a container', () => {
  it('stays without clients, and also when asked to leave; and goes when the container has ended', async () => {
    const guard = aGuard({ idleExitMs: 100 });
    const task = await guard.task(['true']);
    const fence = guard.fence();
    await fence.renew(task, leaseFor(600_000), ['/sys/fs/cgroup/nowhere']);
    fence.close();
    const pid = await guard.livePid();
    process.kill(pid, 'SIGTERM');
    await waitFor('the guard to refuse', () => guard.guardLog().includes('asked to stop while tasks run'));
    const next = guard.fence();
    await next.forget(task);
    next.close();
    await processGone(pid);
  });

  it('refuses a lease of another boot, and groups that could be anywhere', async () => {
    const guard = aGuard();
    const task = await guard.task(['true']);
    const fence = guard.fence();
    const ofAnotherBoot = { ...leaseFor(1_000), bootId: 'another' };
    await expect(fence.renew(task, ofAnotherBoot, ['/sys/fs/cgroup/x'])).rejects.toThrow('another boot');
    await expect(fence.renew(task, leaseFor(1_000), ['x'])).rejects.toThrow('not absolute');
  });

  it('says so of a later lease that it cannot write down: the next guard would freeze at the earlier one', async () => {
    const guard = aGuard();
    const task = await guard.task(['true']);
    const fence = guard.fence();
    const path = join(guard.runtimeDir, 'leases', `${task.key}.json`);
    const [first, later] = [leaseFor(500), leaseFor(600_000)];
    await fence.renew(task, first, ['/sys/fs/cgroup/nowhere']);
    mkdirSync(`${path}.tmp`);
    await expect(fence.renew(task, later, ['/sys/fs/cgroup/nowhere'])).rejects.toThrow(`${path}.tmp`);
    expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({ lease: first });
    rmdirSync(`${path}.tmp`);
    await fence.renew(task, later, ['/sys/fs/cgroup/nowhere']);
    expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({ lease: later });
    await fence.forget(task);
  });

  it('does not take over what was armed before the machine started', async () => {
    const guard = aGuard();
    const task = await guard.script(idleScript);
    const driver = guard.driver();
    await driver.start(task);
    await guard.killGuard();
    const path = join(guard.runtimeDir, 'leases', `${task.key}.json`);
    const lease = { ...leaseFor(0), bootId: 'another' };
    writeFileSync(path, JSON.stringify({ version: 1, ...task, lease, groups: null }));
    expect(await driver.recover(task)).toMatchObject({ kind: 'running', frozen: false });
    expect(existsSync(path)).toBe(false);
  });

  it('keeps what is armed in a directory of its own, and nothing of what has ended', async () => {
    const guard = aGuard();
    const launch = await guard.task(['/bin/sh', '-c', idleScript], { lease: leaseFor(600_000) });
    const path = join(guard.runtimeDir, 'leases', `${launch.key}.json`);
    const driver = guard.driver();
    await driver.start(launch);
    expect(existsSync(path)).toBe(true);
    await driver.stop(launch, { signal: 'SIGKILL', graceMs: 0 });
    await waitFor('the lease to be gone', () => !existsSync(path));
  });
});
