/** Tasks whose guard is stopped: it holds them and answers nothing. */
import { readFileSync } from 'node:fs';
import { silentLogger } from '@muster/common/log';
import { describe, expect, it } from 'vitest';
import { waitFor } from '../../../../../test/support/services.ts';
import { canContain, idleScript, outputContains, outputOf, processesOf, useGuards } from './guardFixture.ts';

const aGuard = useGuards();
const saving = `trap 'echo saved' TERM; echo training; ${idleScript}`;
const savingOnce = `trap 'echo saved; exit 0' TERM; echo training; ${idleScript}`;
const impatient = { probeMs: 300 };
const lost = { exitCode: null, signal: null, statusLost: true };

describe.each(['session', 'cgroup2', 'freezer'] as const)('a guard that hangs (%s)', (containment) => {
  const canTry = containment === 'session' || canContain(containment);
  const which = canTry ? '' : ' (needs control groups that we may make; try as root)';

  it.skipIf(!canTry)(`does not keep a task from its signal and its time to save${which}`, async () => {
    const guard = aGuard({ containment });
    const driver = guard.driver(impatient);
    const task = await guard.script(savingOnce);
    await driver.start(task);
    await outputContains(task, 'training\n');
    await guard.hang();
    expect(await driver.stop(task, { signal: 'SIGTERM', graceMs: 120_000 })).toMatchObject(lost);
    expect(outputOf(task)).toBe('training\nsaved\n');
    // The guard saw the end of its child, and its word counts once it continues.
    guard.resume();
    await waitFor('the guard to report the exit', async () => {
      const observed = await driver.recover(task);
      return observed.kind === 'exited' && observed.exit.exitCode === 0;
    });
  });

  it.skipIf(!canTry)(`does not keep a task running after its grace${which}`, async () => {
    const guard = aGuard({ containment });
    const driver = guard.driver(impatient);
    const task = await guard.script(saving);
    await driver.start(task);
    await outputContains(task, 'training\n');
    await guard.hang();
    expect(await driver.stop(task, { signal: 'SIGTERM', graceMs: 100 })).toMatchObject(lost);
    expect(processesOf(task)).toEqual([]);
    expect(outputOf(task)).toBe('training\nsaved\n');
  });

  it.skipIf(!canTry)(`signals a task once, however often it hangs in the grace${which}`, async () => {
    const guard = aGuard({ containment });
    const takeOvers: string[] = [];
    const driver = guard.driver({
      ...impatient,
      log: { ...silentLogger, warn: (_, message) => takeOvers.push(message) },
    });
    const task = await guard.script(saving);
    await driver.start(task);
    await outputContains(task, 'training\n');
    const stopped = driver.stop(task, { signal: 'SIGTERM', graceMs: 120_000 });
    await outputContains(task, 'saved\n');
    await guard.hang();
    await waitFor('the agent to take over', () => takeOvers.length > 0);
    guard.resume();
    const killed = await driver.stop(task, { signal: 'SIGKILL', graceMs: 0 });
    await stopped;
    expect(killed).toMatchObject({ signal: 'SIGKILL' });
    expect(readFileSync(`${task.directory}/output.log`, 'utf8').match(/saved/g)).toHaveLength(1);
  });
});
