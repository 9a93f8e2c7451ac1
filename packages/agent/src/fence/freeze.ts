/**
 * Makes sure that a task runs no instruction: frozen within a second, or killed. It asks nobody but the kernel, so it
 * works without network, container engine and coordinator.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { TaskGroup } from './taskGroup.ts';

/** `given up`: it was no longer needed, and may be frozen in part. */
export type FreezeOutcome = 'frozen' | 'killed' | 'ended' | 'given up';

/** A process that does not freeze by then waits in the kernel for something, or is not ours to freeze. */
const FREEZE_DEADLINE_MS = 1_000;
/** How long killed processes are waited for. Whether they are gone by then or not, none runs an instruction. */
const KILL_CONFIRM_MS = 1_000;
const POLL_MS = { first: 1, most: 25 };

/**
 * @param isWanted asked again and again: a lease may come while a task freezes, and then it must not be killed
 * @throws {Error} when the group could be neither frozen nor killed; then its processes run on
 */
export function freezeOrKill(group: TaskGroup): Promise<Exclude<FreezeOutcome, 'given up'>>;
export function freezeOrKill(group: TaskGroup, isWanted: () => boolean): Promise<FreezeOutcome>;
export async function freezeOrKill(
  group: TaskGroup,
  isWanted: () => boolean = () => true,
): Promise<FreezeOutcome> {
  let problem: unknown = null;
  const isFrozen = await within(FREEZE_DEADLINE_MS, async () => {
    if (!isWanted()) return true;
    try {
      group.freeze();
      return await seenRepeatedly(group, () => group.isFrozen() || group.isEmpty());
    } catch (error) {
      problem = error;
      return false;
    }
  });
  if (!isWanted()) return 'given up';
  if (isFrozen) return (await isGone(group)) ? 'ended' : 'frozen';
  if (await killUntilGone(group)) return 'killed';
  throw new Error('its processes could be neither frozen nor killed', { cause: problem });
}

/**
 * SIGKILL to all, thaw, until nothing is left or a second has passed.
 * @returns false: not every process could even be sent the signal. With true nothing runs any more, but what the kernel
 *   holds on to may still be there
 */
export async function killUntilGone(group: TaskGroup): Promise<boolean> {
  let reachedAll = false;
  await within(KILL_CONFIRM_MS, async () => {
    try {
      reachedAll = killFrozen(group);
      return await isGone(group);
    } catch {
      // The kernel's files could not be read (too many open files?): the next try may.
      return false;
    }
  });
  return reachedAll;
}

/**
 * One round: also for a group that is frozen, where SIGKILL may only take effect once it is thawed.
 * @returns whether every process was reached. If not it stays frozen: thawed, those would run on.
 */
export function killFrozen(group: TaskGroup): boolean {
  const reachedAll = group.kill();
  if (reachedAll) group.thaw();
  return reachedAll;
}

/** Never true because a look failed: what cannot be seen is not gone. */
export async function isGone(group: TaskGroup): Promise<boolean> {
  return seenRepeatedly(group, () => group.isEmpty());
}

async function seenRepeatedly(group: TaskGroup, look: () => boolean): Promise<boolean> {
  for (let sighting = 1; sighting <= group.sightings; sighting++) {
    if (sighting > 1) await delay(POLL_MS.first);
    if (!look()) return false;
  }
  return true;
}

/** Asks until the answer is yes; false: it was not by then. */
async function within(deadlineMs: number, ask: () => Promise<boolean>): Promise<boolean> {
  const untilMs = performance.now() + deadlineMs;
  for (let pauseMs = POLL_MS.first; ; pauseMs = Math.min(pauseMs * 2, POLL_MS.most)) {
    if (await ask()) return true;
    if (performance.now() >= untilMs) return false;
    await delay(pauseMs);
  }
}
