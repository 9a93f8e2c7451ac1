/**
 * Rows of metrics of jobs, a file for each in `rows/`. Each frame contains its position in the output of its task (rowFormat.ts),
 * so an agent asks from where to continue, after a restart of either.
 *
 * What was appended is in the page cache, and synced when a task has ended: until then its node has all of it, and
 * sends again what was lost with a power failure.
 */
import { type FileHandle, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isJobId, type JobId, type TaskRef } from '@muster/common/ids';
import type { TrainingRow } from '@muster/common/training';
import { ValueTally, valuesIn } from '@muster/common/valueCounts';
import { InOrder } from '../work/inOrder.ts';
import { encodeHead, openIfThere, readFrames, renewHead } from './frameFile.ts';
import {
  framesOf,
  higher,
  type Known,
  markOf,
  marksOf,
  newKnown,
  noteSteps,
  nothingSent,
  type OmittedOfTask,
  omittedAfter,
  omittedOf,
  type RowsHere,
  readKnown,
  rowEndOf,
  rowsHere,
  type SentRows,
  taskRowsKey,
} from './knownRows.ts';
import { type EndMark, encodeFrame, type Frame } from './rowFormat.ts';
import { RowTally, Thinner } from './thinning.ts';

/** Of a job's share, what thinning leaves at most: it must not be done again with the next row. */
const leftShare = 0.75;
/** Jobs of whose files it is known what they hold. */
const knownMax = 4_096;

/** A look at the rows of a job as they are now. */
export interface RowsOfJob {
  readonly isThinned: boolean;
  /** By attempt: the lowest step in its rows. */
  readonly firstSteps: ReadonlyMap<number, number>;
  /** Of the tasks whose rows lack something. */
  readonly omitted: readonly OmittedOfTask[];
  /** In the order in which they came. */
  read(onFrame: (frame: Frame) => void): Promise<void>;
}

export interface RowFile {
  readonly jobId: JobId;
  readonly bytes: number;
  /** Epoch milliseconds. */
  readonly writtenAtMs: number;
}

export class RowStore {
  private readonly directory: string;
  /** The job that was asked for longest ago first. */
  private readonly known = new Map<JobId, Known>();
  private readonly order = new InOrder<JobId>();
  private readonly onTrouble: (jobId: JobId, error: unknown) => void;
  private written = 0;
  /** Values of metrics that were omitted since it was opened: by agents, as they report it, and by thinning here. */
  readonly omittedValues = { too_fast: 0, thinned: 0 };
  /** Told of what was appended. */
  onAppended: (jobId: JobId, frames: readonly Frame[]) => void = () => {};

  /**
   * @param directory absolute; made when first needed
   * @param onTrouble the rows of a job could not be thinned
   */
  constructor(directory: string, onTrouble: (jobId: JobId, error: unknown) => void) {
    this.directory = directory;
    this.onTrouble = onTrouble;
  }

  /** Bytes written less bytes removed since it was opened. */
  get grownBytes(): number {
    return this.written;
  }

  /** @returns the position of the task's output up to which its rows are here; 0: none is */
  position(task: TaskRef): Promise<number> {
    return this.order.run(task.jobId, async () => rowEndOf(await this.load(task.jobId), task).position);
  }

  /** What the output of the task has up to `position`, as far as it was received here. */
  received(task: TaskRef): Promise<SentRows & { readonly position: number }> {
    return this.order.run(task.jobId, async () => {
      const { position, printed, omitted } = rowEndOf(await this.load(task.jobId), task);
      return { position, printed, unreadBytes: omitted.unreadBytes };
    });
  }

  /** How far the rows of a task are here, and whether they end there. */
  here(task: TaskRef): Promise<RowsHere> {
    return this.order.run(task.jobId, async () => rowsHere(await this.load(task.jobId), task));
  }

  /** Stores that no more rows of a task will come, on the disk. It takes back nothing: a task that lost rows stays one. */
  markEnd(task: TaskRef, end: EndMark): Promise<void> {
    return this.order.run(task.jobId, async () => {
      const known = await this.load(task.jobId);
      const { mark } = rowsHere(known, task);
      if (mark === end || mark === 'lost') return;
      await this.write(task.jobId, known, encodeFrame(markOf(known, task, end)), true);
      known.marks.set(taskRowsKey(task), end);
    });
  }

  /**
   * Appends what is not there yet. A row whose position is not above that of the one before it is a repetition, and is
   * omitted.
   * @param shareBytes what the job's rows may take; where they are more, they are thinned
   * @param nowMs wall clock; no row is taken for later than that, and none for earlier than the one before it: an agent that has
   *   started again only estimates when earlier rows were printed
   * @param sent up to the last of the rows. What it has more than the rows do was dropped on the way, and counts as omitted
   * @returns the position up to which the rows of the task are here
   * @throws {Error} of the file system; nothing was appended then
   */
  append(
    task: TaskRef,
    rows: readonly TrainingRow[],
    shareBytes: number,
    nowMs: number,
    sent = nothingSent,
  ): Promise<number> {
    return this.order.run(task.jobId, async () => {
      const known = await this.load(task.jobId);
      const before = rowEndOf(known, task);
      let { position, atMs, step } = before;
      const fresh: TrainingRow[] = [];
      const tally = new ValueTally(before.printed);
      for (const row of rows) {
        if (row.position <= position) continue;
        position = row.position;
        step = higher(step, row.values.step);
        atMs = Math.max(atMs, Math.min(row.atMs, nowMs));
        fresh.push({ ...row, atMs });
        tally.addRow(row);
      }
      const omitted = omittedAfter(before.omitted, tally.counts, sent);
      if (fresh.length === 0 && omitted === null) return position;
      const frames = framesOf(task, fresh, position, omitted);
      await this.write(task.jobId, known, Buffer.concat(frames.map(encodeFrame)));
      if (omitted !== null)
        this.omittedValues.too_fast += valuesIn(omitted.values) - valuesIn(before.omitted.values);
      tally.raiseTo(sent.printed);
      const printed = tally.counts;
      known.ends.set(taskRowsKey(task), {
        position,
        atMs,
        step,
        printed,
        omitted: omitted ?? before.omitted,
      });
      for (const { attempt, rows: stored } of frames) noteSteps(known, attempt, stored);
      this.onAppended(task.jobId, frames);
      await this.keepWithin(task.jobId, known, shareBytes);
      return position;
    });
  }

  /** Thins the rows of a job that take more than its share. */
  keepTo(jobId: JobId, shareBytes: number): Promise<void> {
    return this.order.run(jobId, async () => this.keepWithin(jobId, await this.load(jobId), shareBytes));
  }

  /** Syncs what is there of the job to the disk. */
  sync(jobId: JobId): Promise<void> {
    return this.order.run(jobId, async () => {
      const file = await openIfThere(this.path(jobId));
      try {
        await file?.sync();
      } finally {
        await file?.close();
      }
    });
  }

  /**
   * Has a look at the rows of a job, as they are when it begins.
   * @returns what `use` returns; null: there are none
   */
  async lookAt<T>(jobId: JobId, use: (rows: RowsOfJob) => Promise<T>): Promise<T | null> {
    // Opened in turn: thinning puts another file in its place, and this one stays what it is for anyone who reads it.
    const opened = await this.order.run(jobId, async () => {
      const { bytes, isThinned, firstSteps, ends } = await this.load(jobId);
      const file = bytes === 0 ? null : await openIfThere(this.path(jobId));
      if (file === null) return null;
      return { file, bytes, isThinned, firstSteps: new Map(firstSteps), omitted: omittedOf(ends) };
    });
    if (opened === null) return null;
    const { file, bytes, isThinned, firstSteps, omitted } = opened;
    try {
      const read = async (onFrame: (frame: Frame) => void) => void (await readFrames(file, bytes, onFrame));
      return await use({ isThinned, firstSteps, omitted, read });
    } finally {
      await file.close();
    }
  }

  /** Removes the rows of a job. @returns bytes that are free now */
  remove(jobId: JobId): Promise<number> {
    return this.order.run(jobId, async () => {
      this.known.delete(jobId);
      const bytes = await bytesOf(this.path(jobId));
      await rm(this.path(jobId), { force: true });
      this.written -= bytes;
      return bytes;
    });
  }

  /** Every job of which there are rows. What a crash left of a thinning goes. */
  async files(): Promise<readonly RowFile[]> {
    const found: RowFile[] = [];
    for (const name of await namesIn(this.directory)) {
      const path = join(this.directory, name);
      if (name.endsWith(temporaryEnding)) {
        const jobId = name.slice(0, -temporaryEnding.length);
        if (isJobId(jobId)) await this.order.run(jobId, () => rm(path, { force: true }));
        continue;
      }
      const jobId = name.slice(0, -ending.length);
      if (!name.endsWith(ending) || !isJobId(jobId)) continue;
      const file = await stat(path).catch(() => null);
      if (file !== null) found.push({ jobId, bytes: file.size, writtenAtMs: file.mtimeMs });
    }
    return found;
  }

  /** Resolves when nothing that was requested is in progress any longer. */
  close(): Promise<void> {
    return this.order.settled();
  }

  private path(jobId: JobId): string {
    return join(this.directory, `${jobId}${ending}`);
  }

  /** In turn only. */
  private async load(jobId: JobId): Promise<Known> {
    const known = this.known.get(jobId) ?? (await this.look(jobId));
    this.known.delete(jobId);
    this.known.set(jobId, known);
    for (const oldest of this.known.keys()) {
      if (this.known.size <= knownMax) break;
      this.known.delete(oldest);
    }
    return known;
  }

  private async look(jobId: JobId): Promise<Known> {
    const file = await openIfThere(this.path(jobId));
    if (file === null) return newKnown();
    try {
      return await readKnown(file);
    } finally {
      await file.close();
    }
  }

  /** All of it or, when it throws, nothing. @param syncs it is on the disk when this resolves */
  private async write(jobId: JobId, known: Known, bytes: Buffer, syncs = false): Promise<void> {
    await mkdir(this.directory, { recursive: true, mode: 0o700 });
    const file = await open(this.path(jobId), known.bytes === 0 ? 'w' : 'r+', 0o600);
    try {
      // The head first: an older release must not read what follows as rows of its own.
      if (known.isOlder) await renewHead(file);
      known.isOlder = false;
      if (known.hasRest) await file.truncate(known.bytes);
      known.hasRest = false;
      const data = known.bytes === 0 ? Buffer.concat([encodeHead(false), bytes]) : bytes;
      try {
        await writeAll(file, data, known.bytes);
        if (syncs) await file.sync();
      } catch (error) {
        known.hasRest = true;
        await file.truncate(known.bytes).catch(() => {});
        throw error;
      }
      known.bytes += data.length;
      this.written += data.length;
    } finally {
      await file.close();
    }
  }

  private async keepWithin(jobId: JobId, known: Known, shareBytes: number): Promise<void> {
    if (known.bytes <= Math.max(shareBytes, known.floorBytes)) return;
    try {
      await this.thin(jobId, known, shareBytes);
    } catch (error) {
      // Nothing is lost by it: there is more than there should be, until it succeeds.
      this.onTrouble(jobId, error);
    }
  }

  /** Writes another file and puts it in the place of this one. */
  private async thin(jobId: JobId, known: Known, shareBytes: number): Promise<void> {
    const path = this.path(jobId);
    const temporary = join(this.directory, `${jobId}${temporaryEnding}`);
    const source = await open(path, 'r');
    try {
      const tally = new RowTally();
      const rowsIn = (use: (frame: Frame) => void) => (frame: Frame) => {
        if (frame.end === undefined) use(frame);
      };
      await readFrames(
        source,
        known.bytes,
        rowsIn((frame) => tally.take(frame)),
      );
      const plan = tally.plan(shareBytes * leftShare);
      const frames: Buffer[] = [encodeHead(known.isThinned || plan !== null)];
      const ends = new Map(known.ends);
      const take = (frame: Frame) => {
        frames.push(encodeFrame(frame));
        const end = ends.get(taskRowsKey(frame));
        if (end === undefined || frame.omitted === undefined) return;
        ends.set(taskRowsKey(frame), { ...end, omitted: frame.omitted });
      };
      // Frames of a row each take more than their rows: without a plan they are put together anyway.
      const thinner = new Thinner(plan ?? keepAll, tally.marks, take);
      const target = await open(temporary, 'w', 0o600);
      let bytes = 0;
      const put = async () => {
        const data = Buffer.concat(frames.splice(0));
        await writeAll(target, data, bytes);
        bytes += data.length;
      };
      try {
        const thin = rowsIn((frame) => thinner.take(frame));
        await readFrames(source, known.bytes, thin, put);
        thinner.end();
        frames.push(...marksOf(known).map(encodeFrame));
        await put();
        await target.sync();
      } finally {
        await target.close();
      }
      await rename(temporary, path);
      this.written += bytes - known.bytes;
      known.bytes = bytes;
      known.isOlder = false;
      known.floorBytes = bytes > shareBytes * leftShare ? bytes / leftShare : 0;
      known.isThinned ||= plan !== null;
      for (const [key, end] of ends) {
        const before = known.ends.get(key)?.omitted.values ?? {};
        this.omittedValues.thinned += valuesIn(end.omitted.values) - valuesIn(before);
        known.ends.set(key, end);
      }
    } catch (error) {
      await rm(temporary, { force: true }).catch(() => {});
      throw error;
    } finally {
      await source.close();
    }
  }
}

const ending = '.rows';
const temporaryEnding = '.rows.tmp';
const keepAll = { restStride: 1, evalStride: 1, bucketRows: 1 } as const;

/** A disk that fills up takes a part, and only the next write reports that it is full. */
async function writeAll(file: FileHandle, data: Buffer, position: number): Promise<void> {
  for (let done = 0; done < data.length; ) {
    const { bytesWritten } = await file.write(data, done, data.length - done, position + done);
    done += bytesWritten;
  }
}

async function bytesOf(path: string): Promise<number> {
  return (await stat(path).catch(() => null))?.size ?? 0;
}

async function namesIn(directory: string): Promise<readonly string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return [];
    throw error;
  }
}
