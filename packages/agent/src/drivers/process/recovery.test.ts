import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import {
  allProcesses,
  isRunning,
  type ProcessIdentity,
  readStat,
  taskMarker,
} from '../../fence/processes.ts';
import { guardSocketPath } from '../../guard/protocol.ts';
import type { TaskExit, TaskLocation } from '../../taskFacts/execution.ts';
import {
  aForeignProcess,
  type GuardFixture,
  idleScript,
  mainPid,
  never,
  outputContains,
  processesOf,
  processGone,
  useGuards,
  writeRecord,
} from './guardFixture.ts';

const aGuard = useGuards();

const lost: Partial<TaskExit> = { exitCode: null, signal: null, statusLost: true };

describe('a guard that is killed', () => {
  it('leaves its tasks running; the next guard finds them and ends them whole', async () => {
    const guard = aGuard();
    const daemon = `setsid /bin/sh -c 'trap "" TERM HUP; echo daemon; ${idleScript}'`;
    const task = await guard.script(`(${daemon} &); echo ready; ${idleScript}`);
    const driver = guard.driver();
    await driver.start(task);
    await outputContains(task, 'daemon\n');
    const before = await driver.recover(task);
    const waiting = driver.wait(task, never());
    await guard.killGuard();

    const found = await driver.recover(task);
    expect(found).toMatchObject({ kind: 'running' });
    expect(found).toEqual(before);
    expect(await guard.driver().list()).toEqual([task.key]);
    const stopped = await driver.stop(task, { signal: 'SIGTERM', graceMs: 200 });
    expect(stopped).toMatchObject(lost);
    expect(await waiting).toEqual(stopped);
    expect(processesOf(task)).toEqual([]);
  });

  it('costs the exit status of a task that ends meanwhile, and what it left behind is killed', async () => {
    const guard = aGuard();
    const daemon = `setsid /bin/sh -c 'trap "" TERM HUP; echo daemon; ${idleScript}'`;
    const task = await guard.script(`(${daemon} &); echo ready; ${idleScript}`);
    const driver = guard.driver();
    await driver.start(task);
    await outputContains(task, 'daemon\n');
    const pid = await mainPid(driver, task);
    await driver.close();
    await guard.killGuard();
    process.kill(pid, 'SIGKILL');
    await processGone(pid);

    const next = guard.driver();
    expect(await next.wait(task, never())).toMatchObject(lost);
    expect(processesOf(task)).toEqual([]);
    expect(await next.recover(task)).toMatchObject({ kind: 'exited', exit: lost });
  });

  it('keeps the exit status it had already seen', async () => {
    const guard = aGuard();
    const task = await guard.task(['true']);
    const mainExit = { exitCode: 5, signal: null, finishedAtMs: 1, statusLost: false };
    await writeRecord(task, { pid: 1, startTicks: 0, mainExit });
    expect(await guard.driver().wait(task, never())).toMatchObject(mainExit);
  });

  it('between announcing a start and noting the pid leaves a process that is ended, not started again', async () => {
    const guard = aGuard({ containment: 'session' });
    const task = await guard.script('echo started again');
    const orphan = aForeignProcess(taskMarker(task));
    await announce(guard, task);
    const driver = guard.driver();
    await driver.start(task);
    expect(await driver.wait(task, never())).toMatchObject(lost);
    await processGone(orphan);
    expect(existsSync(join(task.directory, 'output.log'))).toBe(false);
  });

  it('leaves a socket behind that does not stop the next one', async () => {
    const guard = aGuard();
    const driver = guard.driver();
    expect(await driver.list()).toEqual([]);
    const first = await guard.guardPid();
    await guard.killGuard();
    expect(existsSync(guardSocketPath(guard.runtimeDir))).toBe(true);
    expect(await driver.list()).toEqual([]);
    expect(await guard.guardPid()).not.toBe(first);
  });
});

describe('records of an earlier guard', () => {
  it.each(['auto', 'session'] as const)(
    'do not make it kill another process with a reused pid (%s)',
    async (containment) => {
      const guard = aGuard({ containment });
      const task = await guard.task(['true']);
      const other = aForeignProcess({});
      await writeRecord(task, { pid: other, startTicks: 1 });
      const driver = guard.driver();
      expect(await driver.recover(task)).toMatchObject({ kind: expect.stringMatching('running|exited') });
      await driver.signal(task, 'SIGTERM');
      expect(await driver.stop(task, { signal: 'SIGTERM', graceMs: 0 })).toMatchObject(lost);
      expect(isRunning({ pid: other, startTicks: readStat(other)?.startTicks ?? -1 })).toBe(true);
    },
  );

  it('do not make it kill another process in a session whose number was the pid of a task', async () => {
    const guard = aGuard({ containment: 'session' });
    const task = await guard.task(['true']);
    const { leader, member } = await anOrphanedSession();
    await writeRecord(task, { pid: leader, startTicks: 1 });
    expect(await guard.driver().wait(task, never())).toMatchObject(lost);
    expect(isRunning(member)).toBe(true);
  });

  it('of another boot mean the task is dead, whoever has its pid and start time now', async () => {
    const guard = aGuard();
    const task = await guard.task(['true']);
    const other = aForeignProcess({});
    const startTicks = readStat(other)?.startTicks ?? -1;
    await writeRecord(task, { pid: other, startTicks, bootId: 'another boot' });
    const driver = guard.driver();
    expect(await driver.recover(task)).toMatchObject({ kind: 'exited', exit: lost });
    await driver.stop(task, { signal: 'SIGKILL', graceMs: 0 });
    expect(isRunning({ pid: other, startTicks })).toBe(true);
  });

  it('that are torn count as a start under way', async () => {
    const guard = aGuard();
    const task = await guard.task(['true']);
    await writeFile(join(task.directory, 'process.jsonl'), '{"pid": 12');
    expect(await guard.driver().wait(task, never())).toMatchObject(lost);
  });
});

describe('an agent that is killed', () => {
  it('in the grace of a stop does not save the task from its SIGKILL', async () => {
    const guard = aGuard();
    const task = await guard.script(`trap 'echo told' TERM; echo ready; ${idleScript}`);
    const agent = spawn(
      process.execPath,
      [
        fileURLToPath(new URL('./stoppingAgent.ts', import.meta.url)),
        JSON.stringify({
          guardCommand: guard.guardArgv,
          runtimeDir: guard.runtimeDir,
          task,
          // Longer than it takes, on a busy machine, to see that the agent is gone.
          graceMs: 8_000,
        }),
      ],
      { stdio: ['ignore', 'ignore', 'inherit'] },
    );
    const agentEnded = once(agent, 'exit');
    await outputContains(task, 'told\n');
    agent.kill('SIGKILL');
    await agentEnded;
    expect(processesOf(task).length).toBeGreaterThan(0);

    const next = guard.driver();
    expect(await next.wait(task, never())).toMatchObject({
      exitCode: null,
      signal: 'SIGKILL',
      statusLost: false,
    });
    expect(processesOf(task)).toEqual([]);
  });
});

/** What a guard does before it spawns. */
async function announce(guard: GuardFixture, task: TaskLocation): Promise<void> {
  await mkdir(join(guard.runtimeDir, 'tasks'), { recursive: true });
  await symlink(task.directory, join(guard.runtimeDir, 'tasks', task.key));
}

/** A session whose leader has ended; its number stays taken for as long as a member lives. */
async function anOrphanedSession(): Promise<{ leader: number; member: ProcessIdentity }> {
  const leader = aForeignProcess({}, `sleep 1000 & exit`);
  await processGone(leader);
  const member = [...allProcesses()].find((process) => process.session === leader && process.pid !== leader);
  if (member === undefined) throw new Error(`session ${leader} has no member`);
  return { leader, member };
}
