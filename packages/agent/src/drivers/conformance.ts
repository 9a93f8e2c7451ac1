/**
 * What every driver must do, run against the real thing: bare processes and containers pass the same scenarios.
 *
 * The tasks use only `/bin/sh` and commands that busybox has too. Every task carries a marker in its environment, and
 * the suite looks for that marker in /proc: "nothing is left" is checked from outside, not asked of the driver. So the
 * suite must run on the machine that runs the tasks, as a user who may read their environment.
 */

import { createHash, randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { testPatienceMs } from '../../../../test/support/patience.ts';
import { waitFor } from '../../../../test/support/services.ts';
import { boottimeMs } from '../probes/boot.ts';
import { DriverError } from '../taskFacts/errors.ts';
import type { Lease, TaskExit } from '../taskFacts/execution.ts';
import { type ConformanceGuard, describeFences } from './conformanceFences.ts';
import {
  exitedWith,
  markerVariable,
  never,
  outputContains,
  outputOf,
  processesCarrying,
} from './conformanceTasks.ts';
import type { TaskDriver, TaskLaunch } from './driver.ts';
import { aLaunch } from './launchFixture.ts';

export interface ConformanceSetup {
  /** A fresh instance for the same agent: closing one and asking for the next is an agent restart. */
  driver(): Promise<TaskDriver>;
  /** Holds the leases without an agent. */
  readonly guard: ConformanceGuard;
  /** Adds what this driver needs to run a plain command (an image, say); key, directory, command and env stay. */
  makeLaunch(launch: TaskLaunch): TaskLaunch;
  cleanup(): Promise<void>;
}

const searchPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/**
 * Keeps a shell alive so that its traps run at once: a signal interrupts `wait`, not a foreground `sleep`. Some shells
 * would report a sleep that got the signal too, on stderr, between the lines that a scenario looks for.
 */
const idleScript = 'while :; do { sleep 1 & wait $!; } 2>/dev/null; done';

/** @param missing what the machine lacks for this driver; then the scenarios are shown as skipped for that reason */
export function describeDriver(
  name: string,
  setup: () => Promise<ConformanceSetup>,
  missing: string | null = null,
): void {
  const why = missing === null ? '' : ` (${missing})`;
  describe.skipIf(missing !== null)(`${name} driver conformance${why}`, { timeout: testPatienceMs }, () => {
    let conformance: ConformanceSetup;
    let root: string;
    let marker: string;
    let drivers: TaskDriver[] = [];
    let launches: TaskLaunch[] = [];

    beforeAll(async () => {
      conformance = await setup();
      root = await mkdtemp(join(tmpdir(), 'driver-conformance-'));
    }, testPatienceMs);

    afterAll(async () => {
      await conformance?.cleanup();
      if (root !== undefined) await rm(root, { recursive: true, force: true });
    }, testPatienceMs);

    afterEach(async () => {
      const driver = await conformance.driver();
      for (const launch of launches) {
        await driver.stop(launch, { signal: 'SIGKILL', graceMs: 0 });
        await driver.remove(launch);
      }
      const left = marker === undefined ? [] : await processesCarrying(marker);
      await Promise.all([...drivers, driver].map((each) => each.close()));
      launches = [];
      drivers = [];
      expect(left, 'processes left behind').toEqual([]);
    }, testPatienceMs);

    async function openDriver(): Promise<TaskDriver> {
      const driver = await conformance.driver();
      drivers.push(driver);
      return driver;
    }

    async function aTask(task: Partial<TaskLaunch> & Pick<TaskLaunch, 'command'>): Promise<TaskLaunch> {
      const key = task.key ?? `c${randomUUID().slice(0, 13)}.1.0`;
      const directory = join(root, key);
      await mkdir(directory);
      marker = `${key}-${randomUUID()}`;
      const env = { PATH: searchPath, ...task.env, [markerVariable]: marker };
      const launch = conformance.makeLaunch(aLaunch({ ...task, key, directory, env }));
      launches.push(launch);
      return launch;
    }

    const aScript = (script: string, lease: Lease | null = null): Promise<TaskLaunch> =>
      aTask({ command: ['/bin/sh', '-c', script], lease });

    async function runToEnd(launch: TaskLaunch): Promise<TaskExit> {
      const driver = await openDriver();
      await driver.start(launch);
      return driver.wait(launch, never());
    }

    it('keeps the output of a task that ends at once, and its exit code 0', async () => {
      const launch = await aScript('echo first; echo last >&2');
      expect(await runToEnd(launch)).toMatchObject(exitedWith(0));
      expect(await outputOf(launch)).toBe('first\nlast\n');
    });

    it('reports when a task ended', async () => {
      const before = Date.now();
      const exit = await runToEnd(await aScript('exit 0'));
      expect(exit.finishedAtMs).toBeGreaterThanOrEqual(before - 1000);
    });

    it('tells an end that it saw on the clock that does not jump, too', async () => {
      const launch = await aScript(`trap 'exit 0' TERM; echo ready; ${idleScript}`);
      const driver = await openDriver();
      await driver.start(launch);
      await outputContains(launch, 'ready\n');
      const before = boottimeMs();
      const end = driver.wait(launch, never());
      await driver.signal(launch, 'SIGTERM');
      const { finishedBoottimeMs } = await end;
      expect(finishedBoottimeMs).toBeGreaterThanOrEqual(before);
      expect(finishedBoottimeMs).toBeLessThanOrEqual(boottimeMs());
    });

    it('keeps stdout and stderr in the order they were written', async () => {
      const launch = await aScript(
        'i=0; while [ $i -lt 300 ]; do echo "out $i"; echo "err $i" >&2; i=$((i+1)); done',
      );
      await runToEnd(launch);
      const expected = Array.from({ length: 300 }, (_, i) => `out ${i}\nerr ${i}\n`).join('');
      expect(await outputOf(launch)).toBe(expected);
    });

    it('reports the exit code', async () => {
      expect(await runToEnd(await aScript('exit 3'))).toMatchObject(exitedWith(3));
    });

    // A container engine reports 128 + n for a signal; the driver explains it.
    it('reports the signal that ended a task', async () => {
      const launch = await aScript(`echo ready; ${idleScript}`);
      const driver = await openDriver();
      await driver.start(launch);
      await outputContains(launch, 'ready\n');
      await driver.signal(launch, 'SIGKILL');
      expect(await driver.wait(launch, never())).toMatchObject({
        exitCode: null,
        signal: 'SIGKILL',
        oomKilled: false,
        statusLost: false,
      });
    });

    it('passes the environment unchanged', async () => {
      const env = {
        PLAIN: 'value',
        EMPTY: '',
        SPACES: '  two  spaces ',
        LINES: 'first\nsecond\n',
        QUOTES: `"double" 'single' \`back\` $HOME \\n`,
        UNICODE: 'Grüße, 世界 🚀',
        EQUALS: 'a=b=c',
        'dotted.and-dashed': 'not a shell name',
      };
      const launch = await aTask({ command: ['env', '-0'], env });
      expect(await runToEnd(launch)).toMatchObject(exitedWith(0));
      const seen = Object.fromEntries(
        (await outputOf(launch))
          .split('\0')
          .filter((entry) => entry.includes('='))
          .map((entry) => [entry.slice(0, entry.indexOf('=')), entry.slice(entry.indexOf('=') + 1)]),
      );
      expect(seen).toMatchObject(env);
    });

    it('passes arguments unchanged', async () => {
      const launch = await aTask({ command: ['printf', '[%s]\\n', 'a b', '', `"q" it's`, '$HOME *', 'ü\n'] });
      expect(await runToEnd(launch)).toMatchObject(exitedWith(0));
      expect(await outputOf(launch)).toBe(`[a b]\n[]\n["q" it's]\n[$HOME *]\n[ü\n]\n`);
    });

    it('starts in the working directory asked for', async () => {
      const launch = await aTask({ command: ['/bin/sh', '-c', 'pwd'], workdir: '/proc' });
      await runToEnd(launch);
      expect(await outputOf(launch)).toBe('/proc\n');
    });

    it('gives a task an empty stdin', async () => {
      const launch = await aScript('cat; echo after');
      expect(await runToEnd(launch)).toMatchObject(exitedWith(0));
      expect(await outputOf(launch)).toBe('after\n');
    });

    it('names a command that does not exist and leaves nothing behind', async () => {
      const launch = await aTask({ command: ['no-such-command-anywhere', '--flag'] });
      const driver = await openDriver();
      const error = await driver.start(launch).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(DriverError);
      expect(error).toMatchObject({ causeKind: 'command_not_found' });
      expect((error as DriverError).message).toContain('no-such-command-anywhere');
      expect(await driver.recover(launch)).toEqual({ kind: 'absent' });
      expect(await driver.list()).not.toContain(launch.key);
    });

    it('starts a task once however often it is asked to', async () => {
      const launch = await aScript(`trap 'exit 0' USR1; echo started; ${idleScript}`);
      const first = await openDriver();
      const second = await openDriver();
      await Promise.all([first.start(launch), first.start(launch), second.start(launch)]);
      await outputContains(launch, 'started\n');
      await second.start(launch);
      await first.signal(launch, 'SIGUSR1');
      expect(await second.wait(launch, never())).toMatchObject(exitedWith(0));
      await first.start(launch);
      expect(await first.recover(launch)).toMatchObject({ kind: 'exited' });
      expect(await outputOf(launch)).toBe('started\n');
    });

    it('does not start a task that was given up before', async () => {
      const launch = await aScript(idleScript);
      const driver = await openDriver();
      const reason = new Error('no longer needed');
      await expect(driver.start(launch, AbortSignal.abort(reason))).rejects.toBe(reason);
      expect(await driver.recover(launch)).toEqual({ kind: 'absent' });
      expect(await driver.list()).not.toContain(launch.key);
    });

    it('leaves nothing of a start that is given up in the middle, or a task that runs', async () => {
      const driver = await openDriver();
      for (const delayMs of [0, 1, 5, 20, 60, 200]) {
        const launch = await aScript(idleScript);
        const reason = new Error('no longer needed');
        const abort = new AbortController();
        const timer = setTimeout(() => abort.abort(reason), delayMs);
        const started = await driver.start(launch, abort.signal).then(
          () => true,
          (error: unknown) => {
            expect(error).toBe(reason);
            return false;
          },
        );
        clearTimeout(timer);
        expect(await driver.recover(launch)).toMatchObject({ kind: started ? 'running' : 'absent' });
        expect((await driver.list()).includes(launch.key)).toBe(started);
        await driver.stop(launch, { signal: 'SIGKILL', graceMs: 0 });
        expect(await processesCarrying(marker)).toEqual([]);
      }
    });

    it('lets a task end by itself within the grace', async () => {
      const launch = await aScript(`trap 'echo saved; exit 7' TERM; echo ready; ${idleScript}`);
      const driver = await openDriver();
      await driver.start(launch);
      await outputContains(launch, 'ready\n');
      expect(await driver.stop(launch, { signal: 'SIGTERM', graceMs: 60_000 })).toMatchObject(exitedWith(7));
      expect(await outputOf(launch)).toBe('ready\nsaved\n');
    });

    it('stops with the signal the job asked for', async () => {
      const launch = await aScript(`trap 'exit 1' TERM; trap 'exit 8' USR1; echo ready; ${idleScript}`);
      const driver = await openDriver();
      await driver.start(launch);
      await outputContains(launch, 'ready\n');
      expect(await driver.stop(launch, { signal: 'SIGUSR1', graceMs: 60_000 })).toMatchObject(exitedWith(8));
    });

    it('kills a task that ignores the signal when the grace is over', async () => {
      const launch = await aScript(`trap '' TERM; echo ready; ${idleScript}`);
      const driver = await openDriver();
      await driver.start(launch);
      await outputContains(launch, 'ready\n');
      expect(await driver.stop(launch, { signal: 'SIGTERM', graceMs: 300 })).toMatchObject({
        exitCode: null,
        signal: 'SIGKILL',
        statusLost: false,
      });
    });

    it('answers every stop of the same task with the same end', async () => {
      const launch = await aScript(`trap 'exit 7' TERM; echo ready; ${idleScript}`);
      const driver = await openDriver();
      await driver.start(launch);
      await outputContains(launch, 'ready\n');
      const options = { signal: 'SIGTERM', graceMs: 60_000 };
      const exits = await Promise.all([driver.stop(launch, options), driver.stop(launch, options)]);
      exits.push(await driver.stop(launch, options));
      expect(exits).toEqual([exits[0], exits[0], exits[0]]);
      expect(exits[0]).toMatchObject(exitedWith(7));
    });

    it('stops children and daemons that left the session and ignore signals', async () => {
      const daemon = `setsid /bin/sh -c 'trap "" TERM HUP; echo daemon; ${idleScript}'`;
      const launch = await aScript(`(${daemon} &); sleep 1000 & echo ready; ${idleScript}`);
      const driver = await openDriver();
      await driver.start(launch);
      await outputContains(launch, 'ready\n');
      await outputContains(launch, 'daemon\n');
      expect((await processesCarrying(marker)).length).toBeGreaterThanOrEqual(3);
      await driver.stop(launch, { signal: 'SIGTERM', graceMs: 300 });
      expect(await processesCarrying(marker)).toEqual([]);
    });

    it('kills what the main process leaves behind and keeps its exit code', async () => {
      const leftover = `setsid /bin/sh -c 'trap "" TERM HUP; echo leftover; ${idleScript}'`;
      const launch = await aScript(`trap 'exit 4' USR1; (${leftover} &); ${idleScript}`);
      const driver = await openDriver();
      await driver.start(launch);
      await outputContains(launch, 'leftover\n');
      await driver.signal(launch, 'SIGUSR1');
      expect(await driver.wait(launch, never())).toMatchObject(exitedWith(4));
      expect(await processesCarrying(marker)).toEqual([]);
    });

    it('stops one task and leaves its neighbours alone, even with keys that begin alike', async () => {
      const job = `c${randomUUID().slice(0, 13)}`;
      const command = ['/bin/sh', '-c', `trap 'exit 6' TERM; echo ready; ${idleScript}`];
      const one = await aTask({ key: `${job}.1.1`, command });
      const oneMarker = marker;
      const ten = await aTask({ key: `${job}.1.10`, command });
      const driver = await openDriver();
      await Promise.all([driver.start(one), driver.start(ten)]);
      await Promise.all([outputContains(one, 'ready\n'), outputContains(ten, 'ready\n')]);
      await driver.stop(one, { signal: 'SIGTERM', graceMs: 60_000 });
      expect(await processesCarrying(oneMarker)).toEqual([]);
      expect(await driver.recover(ten)).toMatchObject({ kind: 'running' });
      expect(await driver.stop(ten, { signal: 'SIGTERM', graceMs: 60_000 })).toMatchObject(exitedWith(6));
    });

    it('finds a running task again after an agent restart', async () => {
      const launch = await aScript(`trap 'echo told; exit 9' USR1; echo ready; ${idleScript}`);
      const before = await conformance.driver();
      await before.start(launch);
      await outputContains(launch, 'ready\n');
      const pids = await processesCarrying(marker);
      await before.close();

      const after = await openDriver();
      expect(await after.list()).toContain(launch.key);
      expect(await after.recover(launch)).toMatchObject({ kind: 'running' });
      expect(pids[0]).toBeDefined();
      expect(await processesCarrying(marker)).toContain(pids[0]);
      const ended = after.wait(launch, never());
      await after.signal(launch, 'SIGUSR1');
      expect(await ended).toMatchObject(exitedWith(9));
      expect(await outputOf(launch)).toBe('ready\ntold\n');
    });

    it('knows the end and the whole output of a task that ended while no agent was there', async () => {
      const launch = await aScript('seq 1 2000; sleep 0.5; seq 2001 4000; exit 5');
      const before = await conformance.driver();
      await before.start(launch);
      await before.close();
      await waitFor('the task to end', async () => (await processesCarrying(marker)).length === 0);

      const after = await openDriver();
      // The processes are gone a moment before anyone who watches them has written that down.
      await waitFor('the end to be known', async () => (await after.recover(launch)).kind === 'exited');
      expect(await after.recover(launch)).toMatchObject({ kind: 'exited', exit: exitedWith(5) });
      expect(await after.wait(launch, never())).toMatchObject(exitedWith(5));
      expect(await outputOf(launch)).toBe(numbered(4000));
    });

    it('leaves the task alone when a wait is aborted', async () => {
      const launch = await aScript(`trap 'exit 2' TERM; echo ready; ${idleScript}`);
      const driver = await openDriver();
      await driver.start(launch);
      await outputContains(launch, 'ready\n');
      const abort = new AbortController();
      const reason = new Error('the agent is going down');
      const waiting = driver.wait(launch, abort.signal);
      const other = driver.wait(launch, never());
      abort.abort(reason);
      await expect(waiting).rejects.toBe(reason);
      await expect(driver.wait(launch, abort.signal)).rejects.toBe(reason);
      expect(await driver.recover(launch)).toMatchObject({ kind: 'running' });
      await driver.stop(launch, { signal: 'SIGTERM', graceMs: 60_000 });
      expect(await other).toMatchObject(exitedWith(2));
    });

    it('forgets a removed task and keeps its output', async () => {
      const launch = await aScript('echo kept');
      const driver = await openDriver();
      await driver.start(launch);
      expect(await driver.list()).toContain(launch.key);
      await driver.wait(launch, never());
      expect(await driver.list()).toContain(launch.key);
      await driver.remove(launch);
      await driver.remove(launch);
      expect(await driver.recover(launch)).toEqual({ kind: 'absent' });
      expect(await driver.list()).not.toContain(launch.key);
      expect(await outputOf(launch)).toBe('kept\n');
    });

    it('keeps 20 MB of output byte for byte', async () => {
      const lines = 2_700_000;
      const launch = await aScript(`seq 1 ${lines}`);
      expect(await runToEnd(launch)).toMatchObject(exitedWith(0));
      const expected = createHash('sha256');
      for (let line = 1; line <= lines; line += 100_000) {
        expected.update(numbered(Math.min(line + 99_999, lines), line));
      }
      const seen = createHash('sha256');
      for await (const chunk of createReadStream(join(launch.directory, 'output.log'))) seen.update(chunk);
      expect(seen.digest('hex')).toBe(expected.digest('hex'));
    });

    it('answers calmly about a task it never saw', async () => {
      const launch = await aScript('exit 0');
      const driver = await openDriver();
      expect(await driver.recover(launch)).toEqual({ kind: 'absent' });
      await driver.signal(launch, 'SIGTERM');
      await driver.remove(launch);
      expect(await driver.stop(launch, { signal: 'SIGTERM', graceMs: 1000 })).toMatchObject({
        exitCode: null,
        signal: null,
        statusLost: true,
      });
      expect(await driver.list()).not.toContain(launch.key);
    });

    it('takes a signal to an ended task without an error', async () => {
      const launch = await aScript('exit 0');
      const driver = await openDriver();
      await driver.start(launch);
      await driver.wait(launch, never());
      await driver.signal(launch, 'SIGTERM');
      expect(await driver.stop(launch, { signal: 'SIGTERM', graceMs: 0 })).toMatchObject(exitedWith(0));
    });

    describeFences({
      aScript,
      openDriver,
      processes: () => processesCarrying(marker),
      guard: () => conformance.guard,
    });
  });
}

/** `seq first last`. */
function numbered(last: number, first = 1): string {
  let text = '';
  for (let line = first; line <= last; line++) text += `${line}\n`;
  return text;
}
