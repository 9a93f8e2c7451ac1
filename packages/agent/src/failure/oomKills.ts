/**
 * Ends of bare tasks for want of memory. The kernel kills one process and says so in its log alone: to whoever waits for
 * the task it is a SIGKILL like any other, or, when it was a worker, an error of the process that waited for it. The log
 * names a pid, which by then belongs to nobody; so the pids of running tasks are noted while they live.
 *
 * A container's end is told by its engine.
 */

import type { TaskFailure } from '@muster/common/gangs';
import { type TaskRef, taskKey } from '@muster/common/ids';
import type { CauseKind } from '@muster/common/spec/causes';
import type { TaskLocation } from '../drivers/driver.ts';
import type { KernelRecord } from '../health/kernelRecord.ts';
import { type OomKill, parseOomKill } from '../health/oomLines.ts';
import type { EndOfTask } from './taskFailure.ts';
import { mainProcessOf, pidsOf } from './taskPids.ts';

export interface OomKillsParts {
  /** Tasks that run on this node. */
  readonly running: () => readonly { readonly task: TaskRef }[];
  readonly directoryOf: (task: TaskRef) => string;
  /** Takes in what the kernel log has by now; does nothing where it cannot be read. */
  readonly readKernelLog: () => void;
  readonly boottimeMs: () => number;
}

/** A worker that was killed takes its program down within this time, or the program did without it. */
const consequenceMs = 60_000;
/** A pid that was seen so long ago may be another process' by now. */
const pidMemoryMs = 10_000;
const killsMax = 256;

/** What the output tells of those who lost a process to SIGKILL. Another cause that it names stands. */
const outranked: ReadonlySet<CauseKind | null> = new Set([
  null,
  'unknown',
  'exit_code',
  'python_exception',
  'nccl_error',
  'nccl_timeout',
  'host_oom',
]);

interface Kill extends OomKill {
  readonly atBoottimeMs: number;
}

export class OomKills {
  private readonly parts: OomKillsParts;
  /** The newest last. */
  private kills: readonly Kill[] = [];
  /** Pids of running tasks, and when each was seen last. */
  private readonly pids = new Map<string, Map<number, number>>();

  constructor(parts: OomKillsParts) {
    this.parts = parts;
  }

  kernelRecord(record: KernelRecord): void {
    const kill = record.fromKernel ? parseOomKill(record.text) : null;
    if (kill !== null)
      this.kills = [...this.kills, { ...kill, atBoottimeMs: record.uptimeMs }].slice(-killsMax);
  }

  /** To be called about once a second. */
  look(): void {
    const nowMs = this.parts.boottimeMs();
    const running = this.parts.running();
    for (const { task } of running) {
      const key = taskKey(task);
      const seen = this.pids.get(key) ?? new Map<number, number>();
      for (const pid of pidsOf({ key, directory: this.parts.directoryOf(task) })) seen.set(pid, nowMs);
      this.pids.set(key, seen);
    }
    const keys = new Set<string>(running.map(({ task }) => taskKey(task)));
    for (const [key, seen] of this.pids) {
      // A task that has just ended is asked for a moment later.
      for (const [pid, seenAtMs] of seen)
        if (nowMs - seenAtMs > consequenceMs + pidMemoryMs) seen.delete(pid);
      if (seen.size === 0 && !keys.has(key)) this.pids.delete(key);
    }
  }

  /**
   * @param end a bad one, of a task that nobody was stopping
   * @param failure what output and exit tell of it
   * @returns the same, or that the kernel killed a process of it
   */
  explain(location: TaskLocation, end: EndOfTask, failure: TaskFailure): TaskFailure {
    if (end.exit.oomKilled || !outranked.has(failure.kind)) return failure;
    this.parts.readKernelLog();
    const kill = this.killIn(location);
    if (kill === null) return failure;
    return {
      ...failure,
      source: 'kernel',
      consequence: false,
      kind: 'host_oom',
      blame: 'job',
      rank: null,
      line: null,
      message: kill.text,
      atBoottimeMs: Math.min(kill.atBoottimeMs, failure.atBoottimeMs),
    };
  }

  private killIn(location: TaskLocation): Kill | null {
    const nowMs = this.parts.boottimeMs();
    const main = mainProcessOf(location)?.pid ?? null;
    const seen = this.pids.get(location.key);
    const isOurs = ({ pid, atBoottimeMs }: Kill) => {
      if (nowMs - atBoottimeMs > consequenceMs) return false;
      const seenAtMs = seen?.get(pid);
      return pid === main || (seenAtMs !== undefined && atBoottimeMs - seenAtMs < pidMemoryMs);
    };
    return this.kills.findLast(isOurs) ?? null;
  }
}
