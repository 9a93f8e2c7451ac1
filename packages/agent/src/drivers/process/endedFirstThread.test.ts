/** A task whose first thread has ended while another one works: /proc shows the process as a zombie, and it is none. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { waitFor } from '../../../../../test/support/services.ts';
import { hasEnded, hasRightsOf, readStat } from '../../fence/processes.ts';
import type { TaskLaunch } from '../driver.ts';
import { type GuardFixture, mainPid, processesOf, processGone, useGuards } from './guardFixture.ts';

const aGuard = useGuards();

/** Ends its first thread alone, as pthread_exit does; another one counts in a file for as long as it runs. */
const program = `
import ctypes, os, platform, sys, threading, time
def count():
    number = 0
    while True:
        number += 1
        with open(sys.argv[1], "w") as file:
            file.write(str(number))
        time.sleep(0.01)
threading.Thread(target=count).start()
exit_of_thread = {"x86_64": 60, "aarch64": 93}[platform.machine()]
ctypes.CDLL(None).syscall(exit_of_thread, 0)
`;

async function aTask(guard: GuardFixture): Promise<{ task: TaskLaunch; count: () => number }> {
  const path = join(guard.root, 'count');
  const task = await guard.task(['/usr/bin/python3', '-c', program, path]);
  const count = () => {
    try {
      return Number(readFileSync(path, 'utf8'));
    } catch {
      return 0;
    }
  };
  return { task, count };
}

/** Of this process; a task of it has the same. */
function ownRights(): { uid: number; gid: number; groups: readonly number[] } {
  const groups = /^Groups:[ \t]*(.*)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]?.trim() ?? '';
  return {
    uid: process.getuid?.() ?? -1,
    gid: process.getgid?.() ?? -1,
    groups: groups === '' ? [] : groups.split(/\s+/).map(Number),
  };
}

function threadStates(pid: number): string[] {
  const stats = readdirSync(`/proc/${pid}/task`).map((thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8'),
  );
  return stats.map((stat) => stat.slice(stat.lastIndexOf(')') + 2)[0] ?? '').sort();
}

describe.each(['session', 'auto'] as const)('a task whose first thread has ended (%s)', (containment) => {
  it('runs for every guard, is frozen and thawed, and ends only with its last thread', async () => {
    const guard = aGuard({ containment });
    const { task, count } = await aTask(guard);
    const first = guard.driver();
    await first.start(task);
    const pid = await mainPid(first, task);
    await waitFor('the first thread to end', () => readStat(pid)?.state === 'Z');
    await waitFor('the other thread to count', () => count() > 0);
    const stat = readStat(pid);
    expect(stat !== null && hasEnded(stat)).toBe(false);
    expect(hasRightsOf(pid, ownRights())).toBe(true);

    // The next guard is not its parent, and knows it only by what /proc shows.
    await first.close();
    await guard.killGuard();
    await guard.startGuard();
    const driver = guard.driver();
    const ended = driver.wait(task, new AbortController().signal);
    const before = count();
    await waitFor('it to count under the next guard', () => count() > before);
    expect(await driver.recover(task)).toMatchObject({ kind: 'running', pid, frozen: false });
    expect(processesOf(task)).toEqual([pid]);

    expect(await driver.freeze(task)).toBe('frozen');
    if (containment === 'session') expect(threadStates(pid)).toEqual(['T', 'Z']);
    const frozenAt = count();
    expect(await driver.recover(task)).toMatchObject({ kind: 'running', pid, frozen: true });
    expect(count()).toBe(frozenAt);
    await driver.thaw(task);
    await waitFor('it to count after the thaw', () => count() > frozenAt);

    await driver.stop(task, { signal: 'SIGTERM', graceMs: 60_000 });
    expect(await ended).toMatchObject({ statusLost: true });
    await processGone(pid);
    expect(processesOf(task)).toEqual([]);
  });
});
