import type { TaskLocation } from '../drivers/driver.ts';
import {
  allProcesses,
  carriesMarker,
  isZombie,
  type ProcessIdentity,
  type ProcessStat,
  readStat,
} from '../guard/processes.ts';
import type { TaskGroup } from './taskGroup.ts';

/**
 * A task without a control group: what shares the session of its main process, or carries its marker.
 *
 * Frozen means stopped here, one by one, until all that are seen are stopped. That is weaker than a control group: a
 * process that left the session and cleared its environment is not seen, and whoever sends SIGCONT undoes it.
 */
export class SessionGroup implements TaskGroup {
  /** A process in the middle of an exec shows no environment for an instant. */
  readonly sightings = 2;
  readonly #task: TaskLocation;
  /**
   * null: the number cannot be trusted. While the main process or any process of its session is there, the kernel
   * does not give the number to anyone else; a guard that came later cannot know whether it did in between.
   */
  readonly #session: ProcessIdentity | null;

  constructor(task: TaskLocation, main: ProcessIdentity | null) {
    this.#task = task;
    this.#session = main !== null && readStat(main.pid)?.startTicks === main.startTicks ? main : null;
  }

  pids(): number[] {
    return this.#members().map((process) => process.pid);
  }

  isEmpty(): boolean {
    return this.#members().length === 0;
  }

  kill(): boolean {
    return this.#send('SIGKILL');
  }

  freeze(): void {
    this.#send('SIGSTOP');
  }

  isFrozen(): boolean {
    const members = this.#members();
    return members.length > 0 && members.every(isStopped);
  }

  thaw(): void {
    this.#send('SIGCONT');
  }

  release(): boolean {
    return true;
  }

  /** @returns whether it reached all */
  #send(signal: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT'): boolean {
    let reachedAll = true;
    for (const { pid, startTicks } of this.#members()) {
      if (readStat(pid)?.startTicks !== startTicks) continue;
      try {
        process.kill(pid, signal);
      } catch (error) {
        // ESRCH: gone already. Else not ours: then it is still a member, and the task is neither frozen nor ended.
        reachedAll &&= (error as NodeJS.ErrnoException).code === 'ESRCH';
      }
    }
    return reachedAll;
  }

  #members(): ProcessStat[] {
    const session = this.#session;
    const leader = session === null ? null : readStat(session.pid);
    const ownSession = session !== null && (leader === null || leader.startTicks === session.startTicks);
    const members: ProcessStat[] = [];
    for (const process of allProcesses()) {
      if (isZombie(process)) continue;
      // Nothing in the task is older than its main process; it saves reading most environments.
      if (session !== null && process.startTicks < session.startTicks) continue;
      const inSession = ownSession && process.session === session.pid;
      if (inSession || carriesMarker(process.pid, this.#task)) members.push(process);
    }
    return members;
  }
}

/** By a signal (`T`) or by a debugger (`t`). */
function isStopped({ state }: ProcessStat): boolean {
  return state === 'T' || state === 't';
}
