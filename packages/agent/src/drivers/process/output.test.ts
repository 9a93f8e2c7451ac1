/** What a guard does about tasks that write too much: real processes that write as fast as they can. */
import { appendFileSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readBootId } from '@muster/common/boot';
import { describe, expect, test, vi } from 'vitest';
import { writeLease } from '../../fence/leaseFile.ts';
import { readOutputRecord } from '../../logs/outputRecord.ts';
import { boottimeMs } from '../../probes/boot.ts';
import type { TaskLaunch } from '../driver.ts';
import { groupOf } from './driver.ts';
import { GuardFixture, idleScript, mainPid } from './guardFixture.ts';

const mebibyte = 1024 * 1024;
const outputLimits = { capBytes: 8 * mebibyte, rateBytes: 8 * mebibyte, reserveBytes: 0 };

const outputOf = (task: TaskLaunch) => join(task.directory, 'output.log');
const storedBytes = (task: TaskLaunch) => statSync(outputOf(task)).blocks * 512;
const sizeOf = (task: TaskLaunch) => statSync(outputOf(task)).size;
const isHeldBack = (task: TaskLaunch) => readOutputRecord(outputOf(task)).heldBack;

/** More than the cap and the burst together. */
const floodBytes = 64 * mebibyte;
/** Writes a first line, then as much as it can until that file is there, then a last line, and waits. */
const floodUntil = (path: string) => `echo first
until [ -e ${path} ]; do head -c ${mebibyte} /dev/zero | tr '\\0' x; done
echo; echo last; ${idleScript}`;

describe.each(['auto', 'session'] as const)('a task that writes too much (%s)', (containment) => {
  test('is held back, and of its output the beginning and the end are kept, with lines that say so', async () => {
    const guard = new GuardFixture({ containment, outputLimits });
    const driver = guard.driver();
    const enough = join(guard.root, 'enough');
    const task = await guard.script(floodUntil(enough));
    await driver.start(task);
    // A guard that is late, as on a busy machine, may at first see a task that is slow.
    await vi.waitFor(() => expect(isHeldBack(task) && sizeOf(task) > floodBytes).toBe(true));
    writeFileSync(enough, '');
    await vi.waitFor(() => expect(readFileSync(outputOf(task)).subarray(-5).toString()).toBe('last\n'));
    await vi.waitFor(() => expect(storedBytes(task)).toBeLessThanOrEqual(outputLimits.capBytes));
    // The line about what was dropped is written once its blocks are free, and more may be dropped after that.
    const text = await vi.waitFor(() => {
      const { dropped } = readOutputRecord(outputOf(task));
      const written = readFileSync(outputOf(task)).toString('latin1');
      const lines = written.match(/^\[muster\] .*$/gm)?.map((line) => line.replace(/\d+/, 'N'));
      // The second one stands where it began, too, if that is among what is kept.
      expect([...new Set(lines)].sort()).toEqual([
        '[muster] N bytes of output were dropped here: over the limit of one task',
        '[muster] this task writes more than N MiB of output per second and is throttled',
      ]);
      // A guard that is late, as on a busy machine, throttles a task that has written all: its line is the last one then.
      expect(written.slice(dropped?.to)).toMatch(
        /^x+\n[^\0]*last\n(?:\n\[muster\] this task writes more [^\n]*\n)?$/,
      );
      return written;
    });
    expect(text.slice(0, 10)).toBe('first\nxxxx');
    expect(text.length, 'positions stay').toBeGreaterThan(floodBytes);
    // The throttled task keeps running, and is not reported as frozen.
    await vi.waitFor(async () => expect(await driver.recover(task)).toMatchObject({ frozen: false }));
    const exit = await driver.stop(task, { signal: 'SIGTERM', graceMs: 10_000 });
    expect(exit).toMatchObject({ signal: 'SIGTERM' });
  });
});

test('a task that was held back when its guard was killed goes on under the next one', async () => {
  const guard = new GuardFixture({ outputLimits });
  const driver = guard.driver();
  const task = await guard.script('while :; do head -c 4000000 /dev/zero; done');
  await driver.start(task);
  const group = groupOf(task);
  await vi.waitFor(() => expect(isHeldBack(task) && group?.isFrozen()).toBe(true));
  await guard.killGuard();
  // Whatever the killed one did last: as if it had stopped the task.
  group?.freeze();
  const before = sizeOf(task);
  await guard.startGuard();
  await vi.waitFor(() => expect(sizeOf(task)).toBeGreaterThan(before));
  await driver.stop(task, { signal: 'SIGKILL', graceMs: 0 });
});

test('a task is not let go on when the lease of its agent has ended before that of the guard', async () => {
  const guard = new GuardFixture({ outputLimits });
  const driver = guard.driver();
  const task = await guard.script('while :; do head -c 4000000 /dev/zero; done');
  await driver.start(task);
  const group = groupOf(task);
  await vi.waitFor(() => expect(isHeldBack(task) && group?.isFrozen()).toBe(true));
  // As an agent does whose coordinator has taken time away.
  writeLease(task.directory, readBootId(), boottimeMs() - 1);
  await driver.freeze(task);
  const manyLooks = async () => {
    const watched = await guard.script(`for i in 1 2 3 4 5; do head -c 100 /dev/zero; sleep 0.1; done`);
    await driver.start(watched);
    await driver.wait(watched, new AbortController().signal);
  };
  // A look that had begun before may thaw it for a moment, and stops it again.
  await manyLooks();
  const size = sizeOf(task);
  await manyLooks();
  expect([sizeOf(task), group?.isFrozen()]).toEqual([size, true]);
  await driver.stop(task, { signal: 'SIGKILL', graceMs: 0 });
});

test('what a task does to its own files hurts nobody', async () => {
  const guard = new GuardFixture({ outputLimits });
  const driver = guard.driver();
  const task = await guard.script(
    `cd "$DIR" && rm output.log && mkfifo output.log output.json; echo gone; ${idleScript}`,
  );
  const own = { ...task, env: { ...task.env, DIR: task.directory } };
  await driver.start(own);
  await vi.waitFor(() => expect(statSync(outputOf(task)).isFIFO()).toBe(true));
  const other = await guard.script('echo well');
  await driver.start(other);
  await driver.wait(other, new AbortController().signal);
  expect(readFileSync(outputOf(other), 'utf8')).toBe('well\n');
  appendFileSync(join(other.directory, 'output.json'), 'not JSON');
  expect(readOutputRecord(outputOf(other))).toMatchObject({ dropped: null, heldBack: false });
  await driver.stop(task, { signal: 'SIGKILL', graceMs: 0 });
});

test('a task that is in the way of what is noted of it is bounded all the same', async () => {
  const guard = new GuardFixture({ outputLimits });
  const driver = guard.driver();
  const flood = `head -c ${floodBytes} /dev/zero | tr '\\0' x; echo; ${idleScript}`;
  const task = await guard.task(['/bin/sh', '-c', `mkdir "$DIR/output.json"; ${flood}`]);
  await driver.start({ ...task, env: { ...task.env, DIR: task.directory } });
  await vi.waitFor(() => expect(sizeOf(task)).toBeGreaterThan(floodBytes));
  await vi.waitFor(() => expect(storedBytes(task)).toBeLessThanOrEqual(outputLimits.capBytes));
  await driver.stop(task, { signal: 'SIGKILL', graceMs: 0 });
});

test('a task that removes its own directory is held back and frozen all the same, and its guard logs that once', async () => {
  const guard = new GuardFixture({ outputLimits });
  const driver = guard.driver();
  const started = join(guard.root, 'started');
  const task = await guard.script(
    `until [ -e ${started} ]; do :; done; cd /; rm -r "$DIR"; while :; do head -c 4000000 /dev/zero; done`,
  );
  await driver.start({ ...task, env: { ...task.env, DIR: task.directory } });
  writeFileSync(started, '');
  const pid = await mainPid(driver, task);
  await vi.waitFor(() => expect(statSync(`/proc/${pid}/fd/1`).size).toBeGreaterThan(floodBytes));
  const logged = (text: string) => guard.guardLog().split(text).length - 1;
  expect([logged('is throttled'), logged('cannot look')]).toEqual([1, 0]);
  expect(await driver.freeze(task)).toBe('frozen');
  // One that has not seen the record only has the word of the guard.
  await expect(guard.driver().freeze(task)).rejects.toThrow(/the record of task .* is gone/);
  await driver.stop(task, { signal: 'SIGKILL', graceMs: 0 });
  expect(await guard.driver().freeze(task)).toBe('ended');
});
