/**
 * Keeps the output of tasks from filling the node's disk. A task writes to its file itself (docs/decisions/output-limits.md),
 * so what it writes cannot be refused: it is looked at often, a task that writes too fast is stopped for moments, and of a
 * file that is too large the middle is given back to the disk.
 *
 * A task is thawed only while its lease lasts, both as this guard knows it and as its agent does: the kernel does not
 * distinguish a stop for the lease from a stop for the output.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, fstatSync, openSync, type Stats, statfsSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '@muster/common/errors';
import type { Logger } from '@muster/common/log';
import { outputMark } from '@muster/common/outputMark';
import type { TaskGroup } from '../fence/taskGroup.ts';
import { type OutputRecord, readOutputRecord, writeOutputRecord } from '../logs/outputRecord.ts';
import type { TaskLocation, TaskName } from '../taskFacts/execution.ts';
import { withoutWaiting } from '../taskFacts/taskFile.ts';
import type { Ballast } from './ballast.ts';
import {
  allowanceOn,
  type Disk,
  firstPace,
  nextLookMs,
  nextPace,
  type OutputAllowance,
  type OutputLimits,
  type OutputPace,
  outputDefaults,
  rangeToDrop,
  reserveOf,
} from './outputPace.ts';

export interface OutputWatchParts {
  readonly monotonicMs: () => number;
  /** Whether the task's lease lasts: the task is thawed only then. */
  readonly mayRun: (location: TaskLocation) => boolean;
  readonly ballast: Ballast;
  readonly log: Logger;
}

/** A task whose output is looked at. */
export interface WatchedTask {
  readonly location: TaskLocation;
  /** What it consists of now; empty: nothing is there yet, or any longer. */
  readonly groups: () => readonly TaskGroup[];
  /** It has been signalled to end, and needs its time to save. */
  readonly isStopping: () => boolean;
}

interface Watched {
  task: WatchedTask;
  readonly path: string;
  /** null: there is no such file yet. */
  file: number | null;
  pace: OutputPace | null;
  held: boolean;
  /** A part of it is being dropped. */
  isDropping: boolean;
  /** Nothing of it can be dropped. */
  isWhole: boolean;
  /** The agent copies it from a container engine, which keeps all of it. */
  isCopied: boolean;
  /** What is logged once, also of a task that removes its record. */
  isThrottleLogged: boolean;
  isProblemLogged: boolean;
  /** The task can write to the record beside its file, so what was dropped is known here. */
  dropped: OutputRecord['dropped'];
}

/** A disk that many tasks write to is asked once. */
type Disks = Map<number, Disk>;

export class OutputWatch {
  private readonly parts: OutputWatchParts;
  private readonly watched = new Map<TaskName, Watched>();
  private limits = outputDefaults;
  private isLooking = false;

  constructor(parts: OutputWatchParts) {
    this.parts = parts;
  }

  setLimits(limits: OutputLimits): void {
    this.limits = limits;
  }

  /** Of a task that runs or is about to; a second call changes what the task consists of. */
  watch(task: WatchedTask): void {
    const { key, directory } = task.location;
    const known = this.watched.get(key);
    if (known === undefined) {
      const path = join(directory, 'output.log');
      const fresh = {
        // Now, if it is there: the task may remove it before the first look.
        file: openIfThere(path),
        pace: null,
        held: false,
        isDropping: false,
        isWhole: false,
        isCopied: false,
        isThrottleLogged: false,
        isProblemLogged: false,
        dropped: null,
      };
      this.watched.set(key, { task, path, ...fresh });
    } else known.task = task;
    if (!this.isLooking) this.lookIn(0);
  }

  /** It has ended. */
  forget(key: TaskName): void {
    const output = this.watched.get(key);
    if (output === undefined) return;
    this.watched.delete(key);
    // Dropping a part of it still needs the descriptor.
    if (!output.isDropping) close(output);
  }

  /** Whether it is stopped only because it wrote too fast. */
  isHeld(key: TaskName): boolean {
    const output = this.watched.get(key);
    return output?.held === true && this.parts.mayRun(output.task.location);
  }

  private lookIn(headroomBytes: number): void {
    this.isLooking = true;
    setTimeout(() => this.look(), nextLookMs(headroomBytes));
  }

  private look(): void {
    const nowMs = this.parts.monotonicMs();
    const disks: Disks = new Map();
    let headroom = Number.POSITIVE_INFINITY;
    for (const output of this.watched.values()) {
      try {
        headroom = Math.min(headroom, this.lookAt(output, nowMs, disks));
      } catch (error) {
        const fields = { task: output.task.location.key, error: messageOf(error) };
        if (!output.isProblemLogged) this.parts.log.error(fields, 'cannot look at the output of a task');
        output.isProblemLogged = true;
      }
    }
    this.parts.ballast.look();
    this.isLooking = false;
    if (this.watched.size > 0) this.lookIn(headroom);
  }

  /** @returns bytes that may be written before it has to be looked at again */
  private lookAt(output: Watched, nowMs: number, disks: Disks): number {
    const stat = this.stat(output);
    if (stat === null) return Number.POSITIVE_INFINITY;
    const { size } = stat;
    const storedBytes = stat.blocks * 512;
    const disk = diskOf(output.file, stat, disks);
    const limits = this.limits;
    const keptBytes = output.isCopied ? size : output.isWhole ? storedBytes : 0;
    const isOverCap = keptBytes > allowanceOn(disk, limits, false).capBytes;
    const allowance = allowanceOn(disk, limits, isOverCap);
    const pace = nextPace(output.pace ?? this.paceAtFirst(output, size, nowMs), size, nowMs, allowance);
    output.pace = pace;
    this.holdOrRelease(output, allowance);
    this.dropWhatIsTooMuch(output, size, storedBytes, allowance);
    // One that is held, or has just been, is looked at as often as can be.
    return Math.max(0, Math.min(pace.roomBytes, disk.freeBytes - reserveOf(limits, disk)));
  }

  /** A task that an earlier guard had stopped when that guard was killed is thawed by this one. */
  private paceAtFirst(output: Watched, size: number, nowMs: number): OutputPace {
    const { dropped, heldBack, copied } = readOutputRecord(output.path);
    output.held = heldBack && output.task.groups().some((group) => group.isFrozen());
    output.dropped = dropped === null || dropped.to > size ? null : dropped;
    output.isCopied = copied;
    return firstPace(size, nowMs);
  }

  private holdOrRelease(output: Watched, allowance: OutputAllowance): void {
    const isTooFast = (output.pace?.roomBytes ?? 0) < 0 && !output.task.isStopping();
    if (!isTooFast) {
      if (output.held) this.release(output);
      return;
    }
    const groups = output.task.groups().filter((group) => !group.isEmpty());
    if (!output.held) {
      // Stopped already, by its lease or by somebody: this guard must not thaw it.
      if (groups.length === 0 || groups.some((group) => group.isFrozen())) return;
      if (!this.noteHeldBack(output, allowance)) return;
      output.held = true;
    }
    for (const group of groups) if (!group.isFrozen()) group.freeze();
  }

  private release(output: Watched): void {
    // It stays held for as long as its lease does not allow it to run: the renewal of the lease thaws it.
    if (!this.parts.mayRun(output.task.location)) return;
    const groups = output.task.groups();
    for (const group of groups) group.thaw();
    // The agent's lease may have ended between the look and the thaw, and the agent have stopped it before the thaw: nobody
    // would stop it again. A lease is ended before its task is stopped, so this look cannot miss it.
    if (this.parts.mayRun(output.task.location)) output.held = false;
    else for (const group of groups) group.freeze();
  }

  /** Before it is stopped for the first time: the next guard has to know. @returns false: it could not be noted */
  private noteHeldBack(output: Watched, { rateBytes }: OutputAllowance): boolean {
    const record = this.recordOf(output);
    if (record.heldBack) return true;
    if (!this.note(output, { ...record, heldBack: true })) return false;
    if (output.isThrottleLogged) return true;
    output.isThrottleLogged = true;
    const { key } = output.task.location;
    this.parts.log.warn(
      { task: key, bytesPerSecond: rateBytes },
      'a task writes its output too fast and is throttled',
    );
    if (!record.copied) this.write(output, `\n${this.heldBackLine()}`, null);
    return true;
  }

  private heldBackLine(): string {
    const rate = Math.round(this.limits.rateBytes / (1024 * 1024));
    return `${outputMark} this task writes more than ${rate} MiB of output per second and is throttled\n`;
  }

  private recordOf(output: Watched): OutputRecord {
    const record = readOutputRecord(output.path);
    output.isCopied = record.copied;
    return { ...record, dropped: output.dropped };
  }

  /** @returns false: the disk is full; the caller must try later */
  private note(output: Watched, record: OutputRecord): boolean {
    try {
      writeOutputRecord(output.path, record);
      return true;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      // The task has put something else in its place, or taken the directory away: what it loses by that is its own.
      if (code !== 'ENOSPC' && code !== 'EDQUOT') return true;
      // What the ballast held is free for the next look.
      this.parts.ballast.drop();
      return false;
    }
  }

  private dropWhatIsTooMuch(
    output: Watched,
    size: number,
    storedBytes: number,
    { capBytes }: OutputAllowance,
  ): void {
    if (output.isDropping || output.isWhole || output.file === null) return;
    const range = rangeToDrop(size, storedBytes, capBytes);
    if (range === null) return;
    // Of a file that the task has cut, nothing is known any longer.
    const before = output.dropped === null || output.dropped.to > size ? null : output.dropped;
    if (before !== null && range.to <= before.to) return;
    const dropped = { from: Math.min(before?.from ?? range.from, range.from), to: range.to };
    if (!this.note(output, { ...this.recordOf(output), dropped })) return;
    output.dropped = dropped;
    output.isDropping = true;
    const { from } = dropped;
    void this.drop(output, output.file, from, range.to);
  }

  private async drop(output: Watched, file: number, from: number, to: number): Promise<void> {
    const { key } = output.task.location;
    try {
      await punchHole(file, from, to);
      const dropped = `\n${outputMark} ${to - from} bytes of output were dropped here: over the limit of one task\n`;
      // The line that announced it may be among what was dropped.
      const text = this.recordOf(output).heldBack ? dropped + this.heldBackLine() : dropped;
      if (this.watched.get(key) === output) this.write(output, text, from);
      this.parts.log.info({ task: key, from, to }, 'a part of the output of a task was dropped');
    } catch (error) {
      output.isWhole = true;
      this.parts.log.error({ task: key, error: messageOf(error) }, 'output over its cap cannot be dropped');
    } finally {
      output.isDropping = false;
      if (this.watched.get(key) !== output) close(output);
    }
  }

  /** @param position null: at the end */
  private write(output: Watched, text: string, position: number | null): void {
    if (output.file === null) return;
    let file: number | null = null;
    try {
      const append = position === null ? constants.O_APPEND : 0;
      file = openSync(`/proc/self/fd/${output.file}`, constants.O_WRONLY | constants.O_NONBLOCK | append);
      writeSync(file, text, position);
    } catch (error) {
      const fields = { task: output.task.location.key, error: messageOf(error) };
      this.parts.log.warn(fields, 'a line about the output of a task could not be written into it');
    } finally {
      if (file !== null) closeSync(file);
    }
  }

  /** Of the file that was there first: one that a task removes while it writes takes space anyway. */
  private stat(output: Watched): Stats | null {
    output.file ??= openIfThere(output.path);
    return output.file === null ? null : fstatSync(output.file);
  }
}

function openIfThere(path: string): number | null {
  let file: number;
  try {
    file = openSync(path, constants.O_RDONLY | withoutWaiting);
  } catch {
    return null;
  }
  if (fstatSync(file).isFile()) return file;
  closeSync(file);
  return null;
}

function close(output: Watched): void {
  if (output.file !== null) closeSync(output.file);
  output.file = null;
}

/** Of an open file: the task may have removed the directory that it was in. */
function diskOf(file: number | null, { dev }: Stats, disks: Disks): Disk {
  const known = disks.get(dev);
  if (known !== undefined) return known;
  const { blocks, bavail, bsize } = statfsSync(`/proc/self/fd/${file}`);
  const disk = { sizeBytes: blocks * bsize, freeBytes: bavail * bsize };
  disks.set(dev, disk);
  return disk;
}

/**
 * By util-linux's fallocate, in a process of its own: a large file takes the kernel a while, and fences must not wait.
 * @param file a descriptor of it
 * @throws {Error} when this file system cannot do it, or there is no such program
 */
async function punchHole(file: number, from: number, to: number): Promise<void> {
  const range = ['--punch-hole', '--offset', String(from), '--length', String(to - from)];
  const child = spawn('fallocate', [...range, '/proc/self/fd/3'], {
    stdio: ['ignore', 'ignore', 'pipe', file],
    env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' },
  });
  let stderr = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(0, 500);
  });
  const [status] = await once(child, 'close');
  if (status !== 0)
    throw new Error(`fallocate could not drop a part of an output: ${stderr.trim() || `status ${status}`}`);
}
