/**
 * Reads the output file of one task from its beginning to its end, a slice at a time, while the task writes it. What is
 * written faster than it can be read is skipped, and its reader is notified.
 */
import type { FileHandle } from 'node:fs/promises';
import { closeOutput, isOutputEmpty, openOutput, outputFileSize } from '../logs/outputFile.ts';

/** Of one turn: a few milliseconds even if every line has metrics, after which heartbeats and everybody else have theirs. */
export const outputSliceBytes = 64 * 1024;
/** Programs print their totals at the beginning, so it is read even of an output that is skipped. */
const headBytes = 1024 * 1024;

export interface FollowerParts {
  readonly path: string;
  readonly onBytes: (bytes: Buffer) => void;
  /** What comes next does not follow what came before. */
  readonly onSkipped: (bytes: number) => void;
  /** Another file is there, or this one was emptied: what comes next is its beginning. */
  readonly onStartedOver: () => void;
}

/** By the wall clock. */
export interface OutputTimes {
  readonly begunMs: number;
  readonly lastMs: number;
}

export class OutputFollower {
  private readonly parts: FollowerParts;
  private file: FileHandle | null = null;
  private position = 0;
  private isClosed = false;

  constructor(parts: FollowerParts) {
    this.parts = parts;
  }

  /** @returns bytes in the file now; 0 as well when there is none, or something else in its place */
  async size(): Promise<number> {
    if (this.file === null && this.isEmpty) return 0;
    this.file ??= await openOutput(this.parts.path);
    // Closed meanwhile or before: nobody would close it any longer.
    if (this.isClosed) this.close();
    return this.file === null ? 0 : outputFileSize(this.file);
  }

  /** When it was begun and last written to; null: there is none. */
  async times(): Promise<OutputTimes | null> {
    const stat = await this.file?.stat();
    return stat === undefined ? null : { begunMs: stat.birthtimeMs, lastMs: stat.mtimeMs };
  }

  /** Nothing was read, and there is nothing to read. A system call and no thread. */
  get isEmpty(): boolean {
    return this.position === 0 && isOutputEmpty(this.parts.path);
  }

  /** How much has been read or skipped. */
  get read(): number {
    return this.position;
  }

  /**
   * Reads the next slice.
   * @param buffer as long as a slice; its contents are of no use afterwards
   * @param end what lies behind it is left alone
   * @param backlogBytesMax if more than this is left to read, it is cut down to that
   * @returns bytes read; 0: there is nothing to read
   */
  async readSlice(buffer: Buffer, end: number, backlogBytesMax: number): Promise<number> {
    if (end < this.position) {
      this.position = 0;
      this.parts.onStartedOver();
    }
    const skipped = end - this.position - backlogBytesMax;
    if (skipped > 0 && this.position >= headBytes) {
      this.position += skipped;
      this.parts.onSkipped(skipped);
    }
    const length = Math.min(buffer.length, end - this.position);
    if (length <= 0 || this.file === null) return 0;
    const { bytesRead } = await this.file.read(buffer, 0, length, this.position);
    this.position += bytesRead;
    if (bytesRead > 0 && !this.isClosed) this.parts.onBytes(buffer.subarray(0, bytesRead));
    return bytesRead;
  }

  close(): void {
    this.isClosed = true;
    closeOutput(this.file);
    this.file = null;
  }
}
