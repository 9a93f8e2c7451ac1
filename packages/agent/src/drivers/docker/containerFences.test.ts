import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLogger } from '@muster/common/log';
import { expect, onTestFinished, test } from 'vitest';
import { RecordingFence } from '../recordingFence.ts';
import { ContainerFences } from './containerFences.ts';

const lease = { deadlineBoottimeMs: 1_000, bootId: 'boot-1', onExpiry: 'freeze' } as const;

/** A container that an earlier agent has started, of which this one knows only where it is. */
function aFoundContainer(clock: { nowMs: number }) {
  const directory = mkdtempSync(join(tmpdir(), 'fences-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  writeFileSync(join(directory, 'container.json'), '{"version":1,"groups":[]}\n');
  const options = { fence: new RecordingFence(), bootId: 'boot-1', log: silentLogger };
  const fences = new ContainerFences({ ...options, boottimeMs: () => clock.nowMs });
  return { fences, task: { key: 'job_0123456789ab.1.0', directory } };
}

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
