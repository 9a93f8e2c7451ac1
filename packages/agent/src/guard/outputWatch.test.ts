import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLogger as log } from '@muster/common/log';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { TaskGroup } from '../fence/taskGroup.ts';
import { writeOutputRecord } from '../logs/outputRecord.ts';
import type { TaskName } from '../taskFacts/execution.ts';
import type { Ballast } from './ballast.ts';
import { OutputWatch } from './outputWatch.ts';

const key = 'job_000000000001.1.0' as TaskName;

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-outputs-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

/** A group that only notes what is done to it. */
function notedGroup() {
  const done: string[] = [];
  let isFrozen = true;
  const group: TaskGroup = {
    pids: () => [1],
    isEmpty: () => false,
    looksNeeded: 1,
    kill: () => true,
    release: () => true,
    isFrozen: () => isFrozen,
    freeze: () => {
      isFrozen = true;
      done.push('freeze');
    },
    thaw: () => {
      isFrozen = false;
      done.push('thaw');
    },
  };
  return { group, done };
}

/** A task that an earlier guard has held back, and that may run again by the pace of its output. */
function watchHeld(mayRun: () => boolean) {
  const path = join(directory, 'output.log');
  writeFileSync(path, 'some\n');
  writeOutputRecord(path, { dropped: null, heldBack: true, copied: false });
  const { group, done } = notedGroup();
  const ballast = { look: () => {}, drop: () => {} } as unknown as Ballast;
  const watch = new OutputWatch({ monotonicMs: () => performance.now(), mayRun, ballast, log });
  const location = { key, directory };
  watch.watch({ location, groups: () => [group], isStopping: () => false });
  return { watch, done };
}

test('a task that was held back goes on once its pace allows it', async () => {
  const { watch, done } = watchHeld(() => true);
  await vi.waitFor(() => expect(done).toEqual(['thaw']));
  expect(watch.isHeld(key)).toBe(false);
  watch.forget(key);
});

test('a task whose lease ends while it is let go on is stopped again, and goes on with the next lease', async () => {
  const answers = [true, false];
  let isRenewed = false;
  const { watch, done } = watchHeld(() => answers.shift() ?? isRenewed);
  // Between the two looks the agent has ended the lease and stopped the task; the thaw came after that.
  await vi.waitFor(() => expect(done).toEqual(['thaw', 'freeze']));
  isRenewed = true;
  await vi.waitFor(() => expect(done).toEqual(['thaw', 'freeze', 'thaw']));
  watch.forget(key);
});
