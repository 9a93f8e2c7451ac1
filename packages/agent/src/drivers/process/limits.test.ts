/** CPU and memory limits of bare processes, with the kernel's own control groups of version 1. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { silentLogger } from '@muster/common/log';
import { describe, expect, test } from 'vitest';
import { waitFor } from '../../../../../test/support/services.ts';
import { cgroupDirectory, parseCgroupHomes } from '../../fence/cgroupMounts.ts';
import { removeEmptyGroups } from '../../fence/controlGroup.ts';
import { ResourceLimits } from '../../guard/resources.ts';
import type { TaskLaunch } from '../driver.ts';
import {
  aForeignProcess,
  canContain,
  type GuardFixture,
  idleScript,
  mainPid,
  never,
  outputContains,
  processGone,
  useGuards,
} from './guardFixture.ts';

const aGuard = useGuards();
const mountinfo = readFileSync('/proc/self/mountinfo', 'utf8');
const homes = parseCgroupHomes(mountinfo, readFileSync('/proc/self/cgroup', 'utf8'));
const hasControllers = homes.cpu !== null && homes.memory !== null;
const isPossible = hasControllers && (canContain('cgroup2') || canContain('freezer'));

/** Allocates and fills memory until it is stopped by somebody. */
const leak = 'tail /dev/zero';

function aTask(node: GuardFixture, script: string, more: Partial<TaskLaunch>): Promise<TaskLaunch> {
  return node.task(['/bin/sh', '-c', script], more);
}

/** The group of a process for a controller, as the kernel names it. */
function groupOf(pid: number, controller: 'cpu' | 'memory'): string {
  const cgroups = readFileSync(`/proc/${pid}/cgroup`, 'utf8');
  return (
    parseCgroupHomes(mountinfo, cgroups)[controller] ?? cgroupDirectory(mountinfo, controller, '/') ?? ''
  );
}

describe.runIf(isPossible)('limits', () => {
  test('a process that exceeds its memory is killed, and its end has that cause; the node and other tasks are untouched', async () => {
    const node = aGuard();
    const driver = node.driver();
    const other = await aTask(node, idleScript, {});
    await driver.start(other);
    const task = await aTask(node, leak, { memoryMb: 48 });
    await driver.start(task);
    expect(await driver.wait(task, never())).toMatchObject({ oomKilled: true });
    const child = await aTask(node, `${leak}; echo "it ended with $?"; exit 3`, { memoryMb: 48 });
    await driver.start(child);
    expect(await driver.wait(child, never())).toMatchObject({ exitCode: 3, oomKilled: true });
    const tolerant = await aTask(node, `${leak} || true`, { memoryMb: 48 });
    await driver.start(tolerant);
    expect(await driver.wait(tolerant, never())).toMatchObject({ exitCode: 0, oomKilled: false });
    expect(await driver.recover(other)).toMatchObject({ kind: 'running' });
  });

  test('every process of a task is in the groups of its limits, which go with it', async () => {
    const node = aGuard();
    const driver = node.driver();
    const task = await aTask(node, `(${idleScript}) & echo "child $!"; ${idleScript}`, {
      cpus: 1.5,
      memoryMb: 100,
    });
    await driver.start(task);
    const pid = await mainPid(driver, task);
    await outputContains(task, 'child');
    const [cpu, memory] = [groupOf(pid, 'cpu'), groupOf(pid, 'memory')];
    expect(readFileSync(join(cpu, 'cpu.cfs_quota_us'), 'utf8')).toBe('150000\n');
    expect(readFileSync(join(memory, 'memory.limit_in_bytes'), 'utf8')).toBe(`${100 * 1024 * 1024}\n`);
    const pids = driver.processes(task) ?? [];
    expect(pids.length).toBeGreaterThan(1);
    const members = readFileSync(join(memory, 'cgroup.procs'), 'utf8').trim().split('\n').map(Number);
    expect(members).toEqual(expect.arrayContaining([...pids]));
    expect(groupOf(await node.livePid(), 'memory')).not.toBe(memory);
    await driver.stop(task, { signal: 'SIGKILL', graceMs: 0 });
    await driver.remove(task);
    expect([existsSync(cpu), existsSync(memory)]).toEqual([false, false]);
  });

  test('a guard that is started while the task runs still sees that memory ran out', async () => {
    const node = aGuard();
    const driver = node.driver();
    const task = await aTask(node, `read -r line < "$0"; ${leak}`.replace('"$0"', join(node.root, 'pipe')), {
      memoryMb: 48,
    });
    execFileSync('mkfifo', [join(node.root, 'pipe')]);
    await driver.start(task);
    await node.killGuard();
    await node.startGuard();
    const next = node.driver();
    const ended = next.wait(task, never());
    execFileSync('sh', ['-c', 'echo go > "$1"', 'sh', join(node.root, 'pipe')]);
    expect(await ended).toMatchObject({ statusLost: true, oomKilled: true });
  });

  test('memory that a process has taken before its limit is set does not go unnoticed', async () => {
    const node = aGuard();
    const limits = new ResourceLimits(homes, `limits-test-${process.pid}`, silentLogger);
    const task = { key: 'job.1.0', directory: node.root };
    const [group = ''] = limits.groupsOf(task, { cpus: null, memoryMb: 8 });
    mkdirSync(group, { recursive: true });
    const [go, done] = [join(node.root, 'go'), join(node.root, 'done')];
    const script = `while [ ! -e ${go} ]; do sleep 0.05; done; x=$(head -c 40000000 /dev/zero | tr '\\0' a); : > ${done}; ${idleScript}`;
    const pid = aForeignProcess({}, script);
    writeFileSync(join(group, 'cgroup.procs'), String(pid));
    expect(limits.set(task, { cpus: null, memoryMb: 500 }, null)).toBe(true);
    writeFileSync(go, '');
    await waitFor('the process to need memory', () => existsSync(done));
    expect(limits.set(task, { cpus: null, memoryMb: 8 }, null)).toBe(false);
    process.kill(-pid, 'SIGKILL');
    await processGone(pid);
    await waitFor('the group to be empty', () => removeEmptyGroups(group));
    limits.close();
  });

  test('a task without limits has no group for them', async () => {
    const node = aGuard();
    const driver = node.driver();
    const task = await aTask(node, idleScript, {});
    await driver.start(task);
    const pid = await mainPid(driver, task);
    expect(groupOf(pid, 'memory')).toBe(groupOf(await node.livePid(), 'memory'));
  });
});
