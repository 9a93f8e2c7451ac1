import { readFileSync, writeFileSync } from 'node:fs';
import { chmod, readdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { waitFor } from '../../../../../test/support/services.ts';
import { isRunning, readStat } from '../../fence/processes.ts';
import type { TaskExit } from '../../taskFacts/execution.ts';
import type { TaskLaunch } from '../driver.ts';
import {
  canContain,
  cgroupOf,
  type GuardFixture,
  idleScript,
  mainPid,
  never,
  outputContains,
  outputOf,
  processesOf,
  useGuards,
} from './guardFixture.ts';

const aGuard = useGuards();
const tooLong = 'too long an argument';

describe('a task', () => {
  it('has a session and a process group of its own', async () => {
    const guard = aGuard();
    const driver = guard.driver();
    const task = await guard.script(idleScript);
    await driver.start(task);
    const pid = await mainPid(driver, task);
    expect(readStat(pid)).toMatchObject({ pid, session: pid });
  });

  it('whose shell dies of the signal keeps the grace for what runs below it', async () => {
    const guard = aGuard();
    const driver = guard.driver();
    const training = `trap 'sleep 1; echo saved; exit 0' TERM; echo training; while :; do sleep 0.1; done`;
    const task = await guard.script(`/bin/sh -c "${training}"; echo never`);
    await driver.start(task);
    await outputContains(task, 'training\n');
    const exit = await driver.stop(task, { signal: 'SIGTERM', graceMs: 60_000 });
    expect(exit).toMatchObject({ exitCode: null, signal: 'SIGTERM' });
    expect(outputOf(task)).toContain('saved\n');
  });

  it('without a control group does not leave a child behind that cleared its environment', async () => {
    const guard = aGuard({ containment: 'session' });
    const driver = guard.driver();
    const task = await guard.script(
      `trap 'exit 0' USR1; (trap '' USR1; exec env -i /bin/sleep 1000) & echo $!; ${idleScript}`,
    );
    await driver.start(task);
    await outputContains(task, '\n');
    const child = Number(outputOf(task));
    await waitFor('the child to have cleared its environment', () => !processesOf(task).includes(child));
    const stat = readStat(child);
    await driver.signal(task, 'SIGUSR1');
    expect(await driver.wait(task, never())).toMatchObject({ exitCode: 0 });
    expect(stat).not.toBeNull();
    expect(stat !== null && isRunning(stat)).toBe(false);
  });

  it('that is being stopped is not given more time by a second, more patient stop', async () => {
    const guard = aGuard();
    const driver = guard.driver();
    const task = await guard.script(
      `trap 'echo told' TERM; trap 'echo hurry' INT; echo ready; ${idleScript}`,
    );
    await driver.start(task);
    await outputContains(task, 'ready\n');
    const patient = { signal: 'SIGTERM', graceMs: 3_600_000 };
    const stops = [driver.stop(task, patient)];
    await outputContains(task, 'told\n');
    stops.push(driver.stop(task, patient));
    stops.push(driver.stop(task, { signal: 'SIGINT', graceMs: 3_600_000 }));
    await outputContains(task, 'hurry\n');
    stops.push(driver.stop(task, { signal: 'SIGINT', graceMs: 500 }));
    stops.push(driver.stop(task, { signal: 'SIGINT', graceMs: 3_600_000 }));
    for (const exit of await Promise.all(stops)) expect(exit).toMatchObject({ signal: 'SIGKILL' });
    expect(outputOf(task).match(/told/g)).toHaveLength(1);
  });

  // What the kernel does not let go of: a group below one that is frozen stays so, whatever thaws it.
  it.runIf(canContain('freezer'))(
    'that cannot be killed is not called ended (needs a v1 freezer)',
    async () => {
      const guard = aGuard({ containment: 'freezer' });
      const driver = guard.driver();
      const task = await guard.script(`echo ready; ${idleScript}`);
      await driver.start(task);
      await outputContains(task, 'ready\n');
      const freezer = join(dirname(cgroupOf(task) ?? ''), 'freezer.state');
      let stopping: Promise<TaskExit>;
      try {
        await waitFor('the group to be frozen', () => {
          // Again for as long as a process is just being born.
          writeFileSync(freezer, 'FROZEN');
          return readFileSync(freezer, 'utf8').startsWith('FROZEN');
        });
        let ended = false;
        stopping = driver.stop(task, { signal: 'SIGTERM', graceMs: 0 }).finally(() => {
          ended = true;
        });
        const pid = await mainPid(driver, task);
        await waitFor('SIGKILL to be pending', () => pendingSignals(pid).includes(9));
        expect(await driver.recover(task)).toMatchObject({ kind: 'running', frozen: true });
        expect(await driver.freeze(task)).toBe('frozen');
        await expect(driver.remove(task)).rejects.toThrow(
          `task ${task.key} still runs: stop it before removing it`,
        );
        expect(ended).toBe(false);
      } finally {
        writeFileSync(freezer, 'THAWED');
      }
      expect(await stopping).toMatchObject({ signal: expect.stringMatching('SIGTERM|SIGKILL') });
      expect(processesOf(task)).toEqual([]);
    },
  );

  it('that is one of 200 at once ends like the others, with its own status', async () => {
    const guard = aGuard();
    const driver = guard.driver();
    const tasks = await Promise.all(
      Array.from({ length: 200 }, (_, i) => guard.script(`echo ${i}; exit ${i}`)),
    );
    const exits = await Promise.all(
      tasks.map(async (task) => {
        await driver.start(task);
        return driver.wait(task, never());
      }),
    );
    expect(exits.map((exit) => exit.exitCode)).toEqual(tasks.map((_, i) => i));
    expect(tasks.map(outputOf)).toEqual(tasks.map((_, i) => `${i}\n`));
  });
});

describe('the umask of a task', () => {
  it.each([
    [0o027, '0027'],
    [0o002, '0002'],
  ])('is that of its job: %o', async (umask, shown) => {
    const guard = aGuard();
    const driver = guard.driver();
    const task = { ...(await guard.script('umask; touch made; stat -c %a made')), umask };
    await driver.start(task);
    expect(await driver.wait(task, never())).toMatchObject({ exitCode: 0 });
    expect(outputOf(task)).toBe(`${shown}\n${(0o666 & ~umask).toString(8)}\n`);
    const [own, next] = [await guard.script('umask'), { ...(await guard.script('umask')), umask }];
    await driver.start(next);
    await driver.start(own);
    await driver.wait(own, never());
    expect(outputOf(own), 'the guard keeps its own').toBe(
      `${process.umask().toString(8).padStart(4, '0')}\n`,
    );
  });
});

describe('a preparation', () => {
  it('makes the directories that the job names and are missing, for the user of the task', async () => {
    const guard = aGuard();
    const driver = guard.driver();
    const task = await guard.script('test -w "$MISSING" && echo there');
    const missing = join(task.directory, 'runs/llama');
    const launch = { ...task, env: { ...task.env, MISSING: missing }, directories: [missing] };
    await driver.prepare(launch, () => {});
    await driver.prepare(launch, () => {});
    await driver.start(launch);
    await driver.wait(launch, never());
    expect(outputOf(launch)).toBe('there\n');
  });

  it('names a directory that cannot be made, why, and what to do', async () => {
    const guard = aGuard();
    const task = await guard.task(['true'], { directories: ['/etc/passwd/runs'] });
    await expect(guard.driver().prepare(task, () => {})).rejects.toMatchObject({
      name: 'DriverError',
      causeKind: 'unknown',
      message: expect.stringMatching(
        /^the checkpoint directory \/etc\/passwd\/runs is missing and .* \(a file is in its place\): create it on this node for .*checkpoint\.dir/,
      ),
    });
  });
});

describe('a preparation or a start that fails', () => {
  const cases: [string, (guard: GuardFixture) => Promise<TaskLaunch>, string, RegExp][] = [
    [
      'unknown command',
      (guard) => guard.task(['nope-nope']),
      'command_not_found',
      /^nope-nope was not found in PATH on this node: install it/,
    ],
    [
      'file without its program',
      async (guard) => withScript(await guard.task(['run.hs']), '#!/bin/sh\n', 0o755),
      'command_not_found',
      /^run\.hs was not found in PATH on this node: did you mean \.\/run\.sh in \/.+\?$/,
    ],
    [
      'mistyped program',
      (guard) => guard.task(['touhc', 'x']),
      'command_not_found',
      /^touhc was not found in PATH on this node: did you mean touch\?$/,
    ],
    [
      'mistyped path',
      async (guard) => withScript(await guard.task(['./runn.sh']), '#!/bin/sh\n', 0o755),
      'command_not_found',
      /\/runn\.sh does not exist on this node: did you mean \/.+\/run\.sh\?$/,
    ],
    [
      'command line in one word',
      (guard) => guard.task(["ls 'a b' | wc -l"]),
      'command_not_found',
      /^there is no program named "ls 'a b' \| wc -l" on this node; a shell reads it as sh -c 'ls '\\''a b'\\'' \| wc -l'$/,
    ],
    [
      'unknown path',
      (guard) => guard.task(['./run.sh']),
      'command_not_found',
      /\/run\.sh does not exist on this node: copy it there/,
    ],
    [
      'missing interpreter',
      async (guard) => withScript(await guard.task(['./run.sh']), '#!/no/such/python\n', 0o755),
      'command_not_found',
      /run\.sh exists on this node, but the interpreter/,
    ],
    [
      'not executable',
      async (guard) => withScript(await guard.task(['./run.sh']), '#!/bin/sh\n', 0o644),
      'exit_code',
      /^\.\/run\.sh may not be executed on this node: make it executable/,
    ],
    [
      'missing working directory',
      (guard) => guard.task(['true'], { workdir: '/no/such/place' }),
      'command_not_found',
      /working directory \/no\/such\/place does not exist on this node/,
    ],
    [
      'working directory that is a file',
      (guard) => guard.task(['true'], { workdir: '/etc/passwd' }),
      'command_not_found',
      /working directory \/etc\/passwd is not a directory/,
    ],
    [
      tooLong,
      (guard) => guard.task(['true', 'x'.repeat(200_000)]),
      'exit_code',
      /\(2\d{5} bytes\) exceed the limit of the kernel/,
    ],
  ];

  it.each(cases)('says why and leaves nothing behind: %s', async (name, launch, causeKind, message) => {
    const guard = aGuard();
    const driver = guard.driver();
    const task = await launch(guard);
    const before = await readdir(task.directory);
    const refusal = { name: 'DriverError', causeKind, message: expect.stringMatching(message) };
    // The size of an argument only the kernel judges.
    if (name !== tooLong) await expect(driver.prepare(task, () => {})).rejects.toMatchObject(refusal);
    await expect(driver.start(task)).rejects.toMatchObject(refusal);
    expect(await readdir(task.directory)).toEqual(before);
    expect(await driver.recover(task)).toEqual({ kind: 'absent' });
    expect(await driver.list()).toEqual([]);
    expect(await readdir(join(guard.runtimeDir, 'tasks'))).toEqual([]);
  });
});

async function withScript(task: TaskLaunch, text: string, mode: number): Promise<TaskLaunch> {
  const path = join(task.directory, 'run.sh');
  await writeFile(path, text);
  await chmod(path, mode);
  return task;
}

/** Numbers of the signals that wait for the process to run again. */
function pendingSignals(pid: number): number[] {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const masks = [...status.matchAll(/^(?:SigPnd|ShdPnd):\t([0-9a-f]+)$/gm)].map(([, mask]) =>
    BigInt(`0x${mask}`),
  );
  return Array.from({ length: 64 }, (_, i) => i + 1).filter((signal) =>
    masks.some((mask) => (mask >> BigInt(signal - 1)) & 1n),
  );
}
