import type { TaskLocation } from '../drivers/driver.ts';
import type { TaskGroup } from './containment.ts';
import {
  allProcesses,
  carriesMarker,
  isZombie,
  type ProcessIdentity,
  type ProcessStat,
  readStat,
} from './processes.ts';

/** A task without a control group: what shares the session of its main process, or carries its marker. */
export class SessionGroup implements TaskGroup {
  /** A process in the middle of an exec shows no environment for an instant. */
  readonly emptySightings = 2;
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

  kill(): void {
    for (const { pid, startTicks } of this.#members()) {
      if (readStat(pid)?.startTicks !== startTicks) continue;
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // Gone already, or not ours to kill: then it is still a member, and the task is not called ended.
      }
    }
  }

  release(): boolean {
    return true;
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
