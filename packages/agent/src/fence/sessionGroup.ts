import type { TaskLocation } from '../taskFacts/execution.ts';
import {
  allProcesses,
  carriesMarker,
  hasEnded,
  isStopped,
  type ProcessIdentity,
  type ProcessStat,
  readStat,
} from './processes.ts';
import type { TaskGroup } from './taskGroup.ts';

/**
 * The processes of a task without a control group: those in the session of its main process, and those with its mark in their
 * environment.
 *
 * A freeze stops each process with a signal, until all that are found are stopped. This is weaker than a control group: a
 * process that has left the session and cleared its environment is not found, and SIGCONT from anyone undoes the freeze.
 */
export class SessionGroup implements TaskGroup {
  /** More than one, because a process shows no environment for a moment during an exec. */
  readonly looksNeeded = 2;
  private readonly task: TaskLocation;
  /**
   * The session of the task. null: the number may belong to other processes. The kernel does not use it again while a process
   * of the session exists, but a guard that started later cannot know whether one always did.
   */
  private readonly session: ProcessIdentity | null;

  constructor(task: TaskLocation, main: ProcessIdentity | null) {
    this.task = task;
    this.session = main !== null && readStat(main.pid)?.startTicks === main.startTicks ? main : null;
  }

  pids(): number[] {
    return this.members().map((process) => process.pid);
  }

  isEmpty(): boolean {
    return this.members().length === 0;
  }

  kill(): boolean {
    return this.send('SIGKILL');
  }

  freeze(): void {
    this.send('SIGSTOP');
  }

  isFrozen(): boolean {
    const members = this.members();
    return members.length > 0 && members.every(isStopped);
  }

  thaw(): void {
    this.send('SIGCONT');
  }

  release(): boolean {
    return true;
  }

  /** @returns whether every process was reached */
  private send(signal: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT'): boolean {
    let reachedAll = true;
    for (const { pid, startTicks } of this.members()) {
      if (readStat(pid)?.startTicks !== startTicks) continue;
      try {
        process.kill(pid, signal);
      } catch (error) {
        // ESRCH: the process is gone. Otherwise this user may not signal it, and the task counts as neither frozen nor ended.
        reachedAll &&= (error as NodeJS.ErrnoException).code === 'ESRCH';
      }
    }
    return reachedAll;
  }

  private members(): ProcessStat[] {
    const session = this.session;
    const leader = session === null ? null : readStat(session.pid);
    const ownSession = session !== null && (leader === null || leader.startTicks === session.startTicks);
    const members: ProcessStat[] = [];
    for (const process of allProcesses()) {
      if (hasEnded(process)) continue;
      // No process of the task is older than its main process, so most environments need not be read.
      if (session !== null && process.startTicks < session.startTicks) continue;
      const inSession = ownSession && process.session === session.pid;
      if (inSession || carriesMarker(process.pid, this.task)) members.push(process);
    }
    return members;
  }
}
