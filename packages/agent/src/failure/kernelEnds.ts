/**
 * Ends of bare tasks that the kernel log alone explains. For want of memory the kernel kills one process: to whoever waits
 * for the task that is a SIGKILL like any other, or, when it was a worker, an error of the process that waited for it. Of
 * a segmentation fault it tells the library. The log names a pid, which by then belongs to nobody; so the pids of running
 * tasks are noted while they live.
 *
 * That a container was short of memory is told by its engine.
 */

import type { TaskFailure } from '@muster/common/gangs';
import { type TaskRef, taskKey } from '@muster/common/ids';
import type { CauseKind } from '@muster/common/spec/causes';
import type { TaskLocation } from '../drivers/driver.ts';
import type { KernelRecord } from '../health/kernelRecord.ts';
import { parseOomKill, parseSegfault } from '../health/processLines.ts';
import type { EndOfTask } from './taskFailure.ts';
import { mainProcessOf, pidsOf } from './taskPids.ts';

export interface KernelEndsParts {
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
const endsMax = 256;

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

interface KernelEnd {
  readonly what: 'oom' | 'segfault';
  readonly pid: number;
  readonly text: string;
  readonly atBoottimeMs: number;
}

export class KernelEnds {
  private readonly parts: KernelEndsParts;
  /** The newest last. */
  private ends: readonly KernelEnd[] = [];
  /** Pids of running tasks, and when each was seen last. */
  private readonly pids = new Map<string, Map<number, number>>();

  constructor(parts: KernelEndsParts) {
    this.parts = parts;
  }

  kernelRecord(record: KernelRecord): void {
    if (!record.fromKernel) return;
    const oom = parseOomKill(record.text);
    const found = oom ?? parseSegfault(record.text);
    if (found === null) return;
    const { pid, text } = found;
    const what = oom === null ? 'segfault' : 'oom';
    this.ends = [...this.ends, { what, pid, text, atBoottimeMs: record.uptimeMs } as const].slice(-endsMax);
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
   * @returns the same, or what the kernel did to a process of it
   */
  explain(location: TaskLocation, end: EndOfTask, failure: TaskFailure): TaskFailure {
    if (end.exit.oomKilled || !outranked.has(failure.kind)) return failure;
    this.parts.readKernelLog();
    const found = this.ends.filter((each) => this.isOf(location, each));
    const oom = found.findLast(({ what }) => what === 'oom');
    if (oom !== undefined) return { ...byKernel(failure, oom), kind: 'host_oom', blame: 'job' };
    // The exit says no more than that; where the output says more, that is the better evidence.
    const segfault = failure.source === 'exit' ? found.at(-1) : undefined;
    return segfault === undefined ? failure : byKernel(failure, segfault);
  }

  private isOf({ key, directory }: TaskLocation, { pid, atBoottimeMs }: KernelEnd): boolean {
    if (this.parts.boottimeMs() - atBoottimeMs > consequenceMs) return false;
    if (mainProcessOf({ key, directory })?.pid === pid) return true;
    const seenAtMs = this.pids.get(key)?.get(pid);
    return seenAtMs !== undefined && atBoottimeMs - seenAtMs < pidMemoryMs;
  }
}

function byKernel(failure: TaskFailure, { text, atBoottimeMs }: KernelEnd): TaskFailure {
  return {
    ...failure,
    source: 'kernel',
    consequence: false,
    rank: null,
    line: null,
    message: text,
    atBoottimeMs: Math.min(atBoottimeMs, failure.atBoottimeMs),
  };
}
