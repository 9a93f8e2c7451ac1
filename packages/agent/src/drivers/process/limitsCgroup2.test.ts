/**
 * CPU and memory limits of bare processes with control groups of version 2 alone, as most machines have them now. The groups are the
 * kernel's own. What stands for the unit of systemd is a group that the test makes beside its own, with a process in it.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { waitFor } from '../../../../../test/support/services.ts';
import { parseCgroupHomes } from '../../fence/cgroupMounts.ts';
import { removeEmptyGroups } from '../../fence/controlGroup.ts';
import type { TaskLaunch } from '../driver.ts';
import {
  aForeignProcess,
  cgroupOf,
  type GuardFixture,
  idleScript,
  mainPid,
  never,
  outputContains,
  processGone,
  useGuards,
} from './guardFixture.ts';

const mountinfo = readFileSync('/proc/self/mountinfo', 'utf8');
const homes = parseCgroupHomes(mountinfo, readFileSync('/proc/self/cgroup', 'utf8'));
const slice = dirname(homes.cgroup2 ?? '/nowhere/of-nobody');
const isPossible = canPassOn(slice);
const missing = isPossible
  ? ''
  : ' (needs cpu and memory in version 2, root, and a service or a scope as place)';

const aGuard = useGuards();
/** Allocates and fills memory until it is stopped by somebody. */
const leak = 'tail /dev/zero';

function canPassOn(group: string): boolean {
  const passed = read(join(group, 'cgroup.subtree_control')).split(/\s+/);
  if (!passed.includes('cpu') || !passed.includes('memory')) return false;
  try {
    mkdirSync(join(group, `muster-probe-${process.pid}`));
    rmdirSync(join(group, `muster-probe-${process.pid}`));
    return true;
  } catch {
    return false;
  }
}

function read(path: string): string {
  return existsSync(path) ? readFileSync(path, 'utf8').trim() : '';
}

let units = 0;

/** A guard beside a unit whose process is in the unit's own group, as systemd starts it. */
function aGuardWithUnit(): { node: GuardFixture; unit: string; unitPid: number } {
  units += 1;
  const name = `muster-tasks-${process.pid}-${units}.service`;
  const unit = join(slice, name);
  mkdirSync(unit);
  const unitPid = aForeignProcess({}, 'exec sleep 100000');
  writeFileSync(join(unit, 'cgroup.procs'), String(unitPid));
  const node = aGuard({ containment: 'cgroup2', tasksUnit: name });
  // Guard and process have been ended by then, as after each test.
  onTestFinished(async () => {
    await processGone(unitPid);
    await waitFor(`${unit} to be empty`, () => removeEmptyGroups(unit));
  });
  return { node, unit, unitPid };
}

function aTask(node: GuardFixture, script: string, more: Partial<TaskLaunch>): Promise<TaskLaunch> {
  return node.task(['/bin/sh', '-c', script], more);
}

describe.runIf(isPossible)(`limits with version 2${missing}`, () => {
  test('every process of a task is in a group with its limits, beside the process of the unit; the group goes with it', async () => {
    const { node, unit, unitPid } = aGuardWithUnit();
    const driver = node.driver();
    const task = await aTask(node, `(${idleScript}) & echo "child $!"; ${idleScript}`, {
      cpus: 1.5,
      memoryMb: 100,
    });
    await driver.start(task);
    await outputContains(task, 'child');
    const group = cgroupOf(task) ?? '';
    expect(dirname(dirname(group))).toBe(unit);
    const values = ['cpu.max', 'memory.max', 'memory.oom.group'].map((name) => read(join(group, name)));
    expect(values).toEqual(['150000 100000', `${100 * 1024 * 1024}`, '1']);
    const members = read(join(group, 'cgroup.procs')).split('\n').map(Number);
    expect(members).toEqual(
      expect.arrayContaining([await mainPid(driver, task), ...(driver.processes(task) ?? [])]),
    );
    expect(read(join(unit, 'cgroup.procs'))).toBe('');
    expect(read(join(unit, 'main/cgroup.procs'))).toBe(String(unitPid));
    await driver.stop(task, { signal: 'SIGKILL', graceMs: 0 });
    await driver.remove(task);
    expect(existsSync(group)).toBe(false);
  });

  test('a task that exceeds its memory is killed as a whole, and its end has that cause; other tasks are untouched', async () => {
    const { node } = aGuardWithUnit();
    const driver = node.driver();
    const other = await aTask(node, idleScript, { memoryMb: 48 });
    await driver.start(other);
    const task = await aTask(node, `${leak}; echo "it ended with $?"; exit 3`, { memoryMb: 48 });
    await driver.start(task);
    expect(await driver.wait(task, never())).toMatchObject({
      exitCode: null,
      signal: 'SIGKILL',
      oomKilled: true,
    });
    expect(await driver.recover(other)).toMatchObject({ kind: 'running' });
  });

  test('a guard that is started while the task runs still freezes it, and sees that memory ran out', async () => {
    const { node } = aGuardWithUnit();
    const driver = node.driver();
    const pipe = join(node.root, 'pipe');
    execFileSync('mkfifo', [pipe]);
    const task = await aTask(node, `read -r line < "${pipe}"; ${leak}`, { memoryMb: 48 });
    await driver.start(task);
    await node.killGuard();
    await node.startGuard();
    const next = node.driver();
    const ended = next.wait(task, never());
    expect(await next.freeze(task)).toBe('frozen');
    await next.thaw(task);
    execFileSync('sh', ['-c', 'echo go > "$1"', 'sh', pipe]);
    expect(await ended).toMatchObject({ statusLost: true, oomKilled: true });
  });

  test('a unit whose process has ended, and one that is gone with its groups, cost no task and no limit', async () => {
    const { node, unit, unitPid } = aGuardWithUnit();
    const driver = node.driver();
    const first = await aTask(node, idleScript, { memoryMb: 48 });
    await driver.start(first);
    process.kill(unitPid, 'SIGKILL');
    await processGone(unitPid);
    const second = await aTask(node, leak, { memoryMb: 48 });
    await driver.start(second);
    expect(await driver.wait(second, never())).toMatchObject({ oomKilled: true });
    expect(await driver.recover(first)).toMatchObject({ kind: 'running' });
    await driver.stop(first, { signal: 'SIGKILL', graceMs: 0 });
    // systemd removes the groups of a unit without processes, and makes them again when it starts the unit.
    await waitFor('the groups to be gone', () => removeEmptyGroups(unit));
    const without = await aTask(node, 'exit 0', { memoryMb: 48 });
    await driver.start(without);
    expect(await driver.wait(without, never())).toMatchObject({ exitCode: 0 });
    mkdirSync(unit);
    const again = await aTask(node, leak, { memoryMb: 48 });
    await driver.start(again);
    expect(await driver.wait(again, never())).toMatchObject({ oomKilled: true });
  });
});
