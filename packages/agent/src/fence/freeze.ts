/**
 * Makes sure that a task executes nothing: it is frozen within a second, or killed. Only the kernel is needed for that, so it
 * works without network, container engine and coordinator.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { TaskGroup } from './taskGroup.ts';

/** `given up`: the freeze was no longer wanted, and some processes may be frozen. */
export type FreezeOutcome = 'frozen' | 'killed' | 'ended' | 'given up';

/** A process that has not frozen by then waits in the kernel, or may not be frozen by this user. */
const freezeDeadlineMs = 1_000;
/** How long to wait for killed processes to be gone. None of them executes anything, gone or not. */
const killConfirmMs = 1_000;
const pollMs = { first: 1, most: 25 };

/**
 * Freezes a group, and kills it if that fails.
 * @throws {Error} when the group could be neither frozen nor killed; its processes keep running
 */
export async function freezeOrKill(group: TaskGroup): Promise<Exclude<FreezeOutcome, 'given up'>> {
  return killUnlessFrozen(group, await freezeInTime(group, () => true));
}

/**
 * Freezes or kills a group for as long as that is wanted.
 * @param isWanted called repeatedly: a lease may come while a task freezes, and the task must not be killed then
 * @throws {Error} when the group could be neither frozen nor killed; its processes keep running
 */
export async function freezeOrKillWhile(group: TaskGroup, isWanted: () => boolean): Promise<FreezeOutcome> {
  const attempt = await freezeInTime(group, isWanted);
  return isWanted() ? killUnlessFrozen(group, attempt) : 'given up';
}

interface FreezeAttempt {
  /** Nothing of the group executes. */
  readonly isFrozen: boolean;
  /** Why the last request failed; null: none did. */
  readonly problem: unknown;
}

async function freezeInTime(group: TaskGroup, isWanted: () => boolean): Promise<FreezeAttempt> {
  let problem: unknown = null;
  const isFrozen = await within(freezeDeadlineMs, async () => {
    if (!isWanted()) return true;
    try {
      group.freeze();
      return await seenRepeatedly(group, () => group.isFrozen() || group.isEmpty());
    } catch (error) {
      problem = error;
      return false;
    }
  });
  return { isFrozen, problem };
}

async function killUnlessFrozen(
  group: TaskGroup,
  { isFrozen, problem }: FreezeAttempt,
): Promise<Exclude<FreezeOutcome, 'given up'>> {
  if (isFrozen) return (await isGroupGone(group)) ? 'ended' : 'frozen';
  if (await killUntilGone(group)) return 'killed';
  throw new Error('its processes could be neither frozen nor killed', { cause: problem });
}

/**
 * Sends SIGKILL to all processes and thaws them, until none is left or a second has passed.
 * @returns whether every process was sent the signal. If so, nothing executes, but processes that wait in the kernel may
 *   still exist
 */
export async function killUntilGone(group: TaskGroup): Promise<boolean> {
  let reachedAll = false;
  await within(killConfirmMs, async () => {
    try {
      reachedAll = killFrozen(group);
      return await isGroupGone(group);
    } catch {
      // The files of the kernel could not be read, for example with too many open files. The next attempt may succeed.
      return false;
    }
  });
  return reachedAll;
}

/**
 * Kills a group once. In a frozen group, SIGKILL may take effect only after a thaw, so the group is thawed.
 * @returns whether every process was reached. If not, the group stays frozen, because the others would run after a thaw
 */
export function killFrozen(group: TaskGroup): boolean {
  const reachedAll = group.kill();
  if (reachedAll) group.thaw();
  return reachedAll;
}

/** Whether nothing of the group is left. A check that fails counts as no. */
export async function isGroupGone(group: TaskGroup): Promise<boolean> {
  return seenRepeatedly(group, () => group.isEmpty());
}

async function seenRepeatedly(group: TaskGroup, look: () => boolean): Promise<boolean> {
  for (let looks = 1; looks <= group.looksNeeded; looks++) {
    if (looks > 1) await delay(pollMs.first);
    if (!look()) return false;
  }
  return true;
}

/** Repeats a check until it is true. @returns false: it was not within the time */
async function within(deadlineMs: number, ask: () => Promise<boolean>): Promise<boolean> {
  const untilMs = performance.now() + deadlineMs;
  for (let pauseMs = pollMs.first; ; pauseMs = Math.min(pauseMs * 2, pollMs.most)) {
    if (await ask()) return true;
    if (performance.now() >= untilMs) return false;
    await delay(pauseMs);
  }
}
