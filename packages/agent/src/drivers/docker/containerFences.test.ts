import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLogger } from '@muster/common/log';
import { expect, onTestFinished, test, vi } from 'vitest';
import { RecordingFence } from '../recordingFence.ts';
import { ContainerFences, candidateGroups } from './containerFences.ts';

const lease = { deadlineBoottimeMs: 1_000, bootId: 'boot-1', onExpiry: 'freeze' } as const;

/** A container that an earlier agent has started, of which this one knows only where it is. */
function aFoundContainer(clock: { nowMs: number }) {
  const directory = mkdtempSync(join(tmpdir(), 'fences-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const write = (groups: readonly string[]) =>
    writeFileSync(join(directory, 'container.json'), JSON.stringify({ version: 1, groups }));
  write([]);
  const fence = new RecordingFence();
  const options = { fence, bootId: 'boot-1', log: silentLogger };
  const fences = new ContainerFences({ ...options, boottimeMs: () => clock.nowMs });
  onTestFinished(() => fences.close());
  return { fences, fence, task: { key: 'job_0123456789ab.1.0', directory }, write };
}

test('a container without a lease is made known to the guard, which watches its output, and starts without the guard', async () => {
  const { fences, fence, task } = aFoundContainer({ nowMs: 500 });
  const groups = candidateGroups(readFileSync('/proc/self/mountinfo', 'utf8'), 'c1');
  await fences.arm(task, null, 'c1');
  expect(fence.groups.get(task.key)).toEqual(groups.length === 0 ? undefined : groups);
  fence.renew = () => Promise.reject(new Error('there is no guard'));
  await fences.arm(task, null, 'c2');
});

test('a container without a lease is made known again, to a guard that was started since, until it has a lease', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const { fences, fence, task, write } = aFoundContainer({ nowMs: 500 });
  write([task.directory]);
  await fences.renew(task, null);
  await vi.advanceTimersByTimeAsync(25_000);
  const sent = `renew ${task.key} never`;
  expect(fence.calls).toEqual([sent, sent, sent]);
  await fences.renew(task, lease);
  await vi.advanceTimersByTimeAsync(25_000);
  expect(fence.calls.slice(3)).toEqual([`renew ${task.key} 1000`]);
});

test('a container whose lease this agent never received may not run to save what it has', async () => {
  const clock = { nowMs: 500 };
  const { fences, task } = aFoundContainer(clock);
  expect(fences.mayRun(task)).toBe(false);
  await fences.renew(task, lease);
  expect(fences.mayRun(task)).toBe(true);
  clock.nowMs = 1_000;
  expect(fences.mayRun(task)).toBe(false);
  await fences.renew(task, null);
  expect(fences.mayRun(task)).toBe(true);
});
