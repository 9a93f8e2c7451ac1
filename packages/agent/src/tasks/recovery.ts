/** What an agent finds when it starts: its own records, and what the drivers know beside them. */
import { messageOf } from '@muster/common/errors';
import { parseTaskKey, type TaskRef, taskKey } from '@muster/common/ids';
import type { Driver } from '../drivers/driver.ts';
import { endPreflight, parsePreflightKey, preflightLocation } from '../rendezvous/preflightRun.ts';
import type { TaskActions } from './actions.ts';
import type { TaskEntry } from './entry.ts';
import type { ManagerParts } from './parts.ts';
import type { TaskPhases } from './phases.ts';

/** The tasks of this node. */
interface Tasks {
  isKnown(task: TaskRef): boolean;
  /** Made when absent. */
  entryOf(task: TaskRef): TaskEntry;
}

export async function recoverTasks(
  parts: ManagerParts,
  phases: TaskPhases,
  actions: TaskActions,
  tasks: Tasks,
): Promise<void> {
  for (const record of parts.records.load()) {
    const entry = tasks.entryOf(record.assignment.task);
    entry.assignment = record.assignment;
    entry.phase = record.phase;
    if (record.phase.kind === 'ended') phases.handOverOutput(entry);
    else await recoverOrWatch(parts, actions, entry, record.bootId);
  }
  for (const driver of Object.values(parts.drivers)) await adoptStrangers(parts, actions, tasks, driver);
}

/** A driver that cannot answer now, because its engine is away, must not keep the agent from its other tasks. */
async function recoverOrWatch(
  parts: ManagerParts,
  actions: TaskActions,
  entry: TaskEntry,
  recordedBootId: string,
): Promise<void> {
  try {
    await actions.recover(entry, recordedBootId);
  } catch (error) {
    parts.log.warn({ task: taskKey(entry.task), error: messageOf(error) }, 'a task cannot be seen yet');
    entry.uncertain = true;
    actions.followUnseen(entry);
  }
}

/**
 * Started by us, and the record is gone: it was being removed when we died, or the data directory was wiped. What has
 * ended is cleaned up; what runs is somebody's work, so it is reported, and the coordinator says what becomes of it.
 */
async function adoptStrangers(
  parts: ManagerParts,
  actions: TaskActions,
  tasks: Tasks,
  driver: Driver,
): Promise<void> {
  try {
    for (const key of await driver.list()) {
      await endOrphanedPreflight(parts, driver, key);
      const task = parseTaskKey(key);
      if (task === null || tasks.isKnown(task)) continue;
      const location = { key, directory: parts.records.directory(task) };
      const observed = await driver.recover(location);
      const fields = { task: key, driver: driver.name, observed: observed.kind };
      parts.log.warn(fields, 'a task has no record here');
      if (observed.kind !== 'running') {
        await driver.remove(location);
        continue;
      }
      const entry = tasks.entryOf(task);
      entry.foundBy = driver.name;
      await actions.recover(entry, parts.bootId);
    }
  } catch (error) {
    const fields = { driver: driver.name, error: messageOf(error) };
    parts.log.warn(fields, 'could not look for tasks without record');
  }
}

/** Whoever wanted to know what it measures is gone. */
async function endOrphanedPreflight(parts: ManagerParts, driver: Driver, key: string): Promise<void> {
  const task = parsePreflightKey(key);
  if (task === null) return;
  const location = { key: taskKey(task), directory: parts.records.directory(task) };
  await endPreflight(driver, preflightLocation(location));
}
