/**
 * Ends of tasks that the kernel log alone explains. For lack of memory the kernel kills one process: who waits for the
 * task sees a SIGKILL like any other, or, when it was a worker, an error of the process that waited for it. Of a
 * segmentation fault the log names the library.
 *
 * The log names a pid, which by then belongs to nobody; so the pids of running bare tasks are noted while they live. Of a
 * process that was killed for lack of memory it also names the control group, which carries the id of the task's
 * container. An engine reports such an end too, but one that is late finds the control group of version 1 removed, and
 * never learns why the container ended.
 */
import { basename } from 'node:path';
import type { TaskFailure } from '@muster/common/gangs';
import { type TaskRef, taskKey } from '@muster/common/ids';
import type { CauseKind } from '@muster/common/spec/causes';
import { readContainerGroups } from '../drivers/docker/containerFences.ts';
import { ControlGroup } from '../fence/controlGroup.ts';
import { isRunning, type ProcessIdentity } from '../fence/processes.ts';
import { readStoredTask } from '../guard/records.ts';
import { type OomSummary, parseOomKill, parseOomSummary, parseSegfault } from '../health/kernelLines.ts';
import type { KernelRecord } from '../health/kernelLog.ts';
import { namesIn, readKernelFileUnlessGone } from '../host/kernelFiles.ts';
import type { TaskLocation } from '../taskFacts/execution.ts';
import type { EndOfTask } from './taskFailure.ts';

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

/** What the output shows of those who lost a process to SIGKILL. Another cause that it names stands. */
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
  /** Of its memory, relative to the root of the hierarchy. null: the log does not name it. */
  readonly controlGroup: string | null;
  readonly text: string;
  readonly atBoottimeMs: number;
}

export class KernelEnds {
  private readonly parts: KernelEndsParts;
  /** The newest last. */
  private ends: readonly KernelEnd[] = [];
  /** The kernel ends one process at a time and writes its summary first. */
  private summary: OomSummary | null = null;
  /** Pids of running tasks, and when each was seen last. */
  private readonly pids = new Map<string, Map<number, number>>();

  constructor(parts: KernelEndsParts) {
    this.parts = parts;
  }

  kernelRecord(record: KernelRecord): void {
    if (!record.fromKernel) return;
    this.summary = parseOomSummary(record.text) ?? this.summary;
    const oom = parseOomKill(record.text);
    const found = oom ?? parseSegfault(record.text);
    if (found === null) return;
    const { pid, text } = found;
    const what = oom === null ? 'segfault' : 'oom';
    const controlGroup = oom !== null && this.summary?.pid === pid ? this.summary.controlGroup : null;
    const end: KernelEnd = { what, pid, controlGroup, text, atBoottimeMs: record.uptimeMs };
    this.ends = [...this.ends, end].slice(-endsMax);
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
   * @param failure what output and exit show of it
   * @returns the same, or what the kernel did to a process of it
   */
  explain(location: TaskLocation, end: EndOfTask, failure: TaskFailure): TaskFailure {
    if (end.exit.oomKilled || !outranked.has(failure.kind)) return failure;
    this.parts.readKernelLog();
    const found = this.ends.filter((each) => this.isOf(location, each));
    const oom = found.findLast(({ what }) => what === 'oom');
    if (oom !== undefined) return { ...byKernel(failure, oom), kind: 'host_oom', blame: 'job' };
    // The exit shows no more than that; where the output shows more, that is the better evidence.
    const segfault = failure.source === 'exit' ? found.at(-1) : undefined;
    return segfault === undefined ? failure : byKernel(failure, segfault);
  }

  private isOf({ key, directory }: TaskLocation, end: KernelEnd): boolean {
    const { pid, controlGroup, atBoottimeMs } = end;
    if (this.parts.boottimeMs() - atBoottimeMs > consequenceMs) return false;
    if (controlGroup !== null && isOfContainer(controlGroup, { key, directory })) return true;
    if (mainProcessOf({ key, directory })?.pid === pid) return true;
    const seenAtMs = this.pids.get(key)?.get(pid);
    return seenAtMs !== undefined && atBoottimeMs - seenAtMs < pidMemoryMs;
  }
}

/** The groups of a container have the same name in each hierarchy, and no other container's has it. */
function isOfContainer(controlGroup: string, task: TaskLocation): boolean {
  const parts = controlGroup.split('/');
  return readContainerGroups(task)?.some((group) => parts.includes(basename(group))) ?? false;
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

/** Far more than a training has on one node; a fork bomb must not cost the agent more than this. */
const pidsMax = 4_096;

/** null: it has none, because it is a container's or has not been started. */
function mainProcessOf(location: TaskLocation): ProcessIdentity | null {
  return readStoredTask(location, '')?.main ?? null;
}

/** What lives now of the task's control group, or, where it has none, of the children of its main process. */
function pidsOf(location: TaskLocation): readonly number[] {
  const record = readStoredTask(location, '');
  if (record === null) return [];
  if (record.cgroup !== null) return new ControlGroup(record.cgroup).pids().slice(0, pidsMax);
  return record.main !== null && isRunning(record.main) ? descendantsOf(record.main.pid) : [];
}

/**
 * The process itself and those below it, by /proc/PID/task/TID/children (proc(5)): the kernel lists a child with the thread that started
 * it, and loaders of data start theirs from many.
 */
function descendantsOf(pid: number): readonly number[] {
  const found = [pid];
  for (let index = 0; index < found.length && found.length < pidsMax; index += 1) {
    for (const thread of namesIn(`/proc/${found[index]}/task`)) {
      const children =
        readKernelFileUnlessGone(`/proc/${found[index]}/task/${thread}/children`)?.trim() ?? '';
      if (children !== '') found.push(...children.split(' ').map(Number));
    }
  }
  return found.slice(0, pidsMax);
}
