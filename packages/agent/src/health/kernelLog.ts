/**
 * Reads the kernel log for as long as the agent runs. The file is opened without blocking and read on a timer: a read
 * that waits would occupy a thread of the pool for ever and keep the process from ending.
 *
 * Each read of /dev/kmsg returns one record. A plain file or a pipe in its place (a test, a log that was forwarded) is
 * read as lines and followed as it grows.
 */
import { spawnSync } from 'node:child_process';
import { closeSync, constants, openSync, readSync } from 'node:fs';
import { messageOf } from '@muster/common/errors';
import type { Logger } from '@muster/common/log';

const idleIntervalMs = 1_000;
/** While there is more to read. With the bound below: 10,000 records a second, at a few per cent of a core. */
const busyIntervalMs = 50;
/** Of one tick, which holds up everything else that the agent does. */
const recordsPerTickMax = 500;
/** /dev/kmsg refuses a buffer that is smaller than the record, 8 KiB at most. */
const bufferBytes = 16 * 1024;

/**
 * As a path: the log was opened by what started the agent and is its standard input. The kernel asks for CAP_SYSLOG where
 * the log is opened, and not where it is read, so that the agent needs none.
 */
export const kernelLogOnStdin = '-';
const stdinFile = 0;
const dd = ['dd', 'iflag=nonblock', 'count=0', 'status=none'] as const;

export interface KernelLogParts {
  readonly path: string;
  /** @param history it was there before the log was opened */
  readonly onRecord: (record: KernelRecord, history: boolean) => void;
  readonly log: Logger;
}

export type KernelLogState =
  | { readonly kind: 'closed' }
  /** `overruns`: how often records were overwritten before they could be read. */
  | { readonly kind: 'reading'; readonly overruns: number }
  /** One sentence, with the remedy. */
  | { readonly kind: 'unavailable'; readonly message: string };

export class KernelLog {
  private readonly parts: KernelLogParts;
  private readonly buffer = Buffer.alloc(bufferBytes);
  private current: KernelLogState = { kind: 'closed' };
  private file: number | null = null;
  private timer: NodeJS.Timeout | null = null;
  private partialLine = '';
  private history = true;

  constructor(parts: KernelLogParts) {
    this.parts = parts;
  }

  get state(): KernelLogState {
    return this.current;
  }

  /** Never throws: a kernel log that cannot be read is logged once, and the agent continues without it. */
  open(): void {
    try {
      this.file = openKernelLog(this.parts.path);
      this.current = { kind: 'reading', overruns: 0 };
    } catch (error) {
      this.giveUp(error);
      return;
    }
    this.tick();
  }

  close(): void {
    this.release();
    this.current = { kind: 'closed' };
  }

  /** Takes in what is there now, without waiting for the next look. At most as much as one look takes. */
  readNow(): void {
    if (this.file === null) return;
    try {
      this.readSome();
    } catch (error) {
      this.giveUp(error);
    }
  }

  private tick(): void {
    try {
      const more = this.readSome();
      if (this.file === null) return;
      this.timer = setTimeout(() => this.tick(), more ? busyIntervalMs : idleIntervalMs);
    } catch (error) {
      this.giveUp(error);
    }
  }

  /** @returns whether the bound of a tick ended it, and not the end of the log */
  private readSome(): boolean {
    let records = 0;
    for (let reads = 0; reads < recordsPerTickMax && records < recordsPerTickMax; reads += 1) {
      // A listener may have closed the log.
      if (this.file === null) return false;
      const text = this.readOnce(this.file);
      if (text === null) {
        this.history = false;
        return false;
      }
      records += this.take(text);
    }
    return true;
  }

  /** @returns null: nothing to read for now; empty: a record was lost */
  private readOnce(file: number): string | null {
    try {
      const size = readSync(file, this.buffer, 0, bufferBytes, null);
      return size === 0 ? null : this.buffer.toString('utf8', 0, size);
    } catch (error) {
      switch (codeOf(error)) {
        case 'EAGAIN':
          return null;
        case 'EPIPE':
          // The ring was overwritten under the reader; the next read continues at its oldest record.
          this.noteOverrun();
          return '';
        case 'EINVAL':
          // A record larger than the buffer: passed over by the kernel.
          return '';
        default:
          throw error;
      }
    }
  }

  /** @returns how many lines there were */
  private take(text: string): number {
    const lines = (this.partialLine + text).split('\n');
    const last = lines.pop() ?? '';
    this.partialLine = last.length > bufferBytes ? '' : last;
    for (const line of lines) {
      const record = parseKernelRecord(line);
      if (record !== null) this.parts.onRecord(record, this.history);
    }
    return lines.length;
  }

  private noteOverrun(): void {
    if (this.current.kind !== 'reading') return;
    const overruns = this.current.overruns + 1;
    this.current = { kind: 'reading', overruns };
    // Logged once: a flood of the kernel log would flood our log too.
    if (overruns > 1) return;
    const { log, path } = this.parts;
    log.warn({ path }, 'the kernel log was overwritten before it could be read; Xids may have been missed');
  }

  private giveUp(error: unknown): void {
    this.release();
    const message = refusal(this.parts.path, error);
    this.current = { kind: 'unavailable', message };
    this.parts.log.warn({ path: this.parts.path, err: messageOf(error) }, message);
  }

  private release(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    if (this.file !== null && this.file !== stdinFile) closeSync(this.file);
    this.file = null;
  }
}

/**
 * @returns its descriptor, from which a read never waits
 * @throws {Error} of the file system, or when standard input cannot be read without waiting
 */
export function openKernelLog(path: string): number {
  if (path !== kernelLogOnStdin) return openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  // Node cannot change the flags of an open file. They belong to the open file, which the child shares: what it sets is set.
  const [program, ...args] = dd;
  const { error, status } = spawnSync(program, args, { stdio: [stdinFile, 'ignore', 'ignore'] });
  if (error === undefined && status === 0) return stdinFile;
  throw error ?? new Error(`\`${dd.join(' ')}\` on standard input ended with status ${status}`);
}

function refusal(path: string, error: unknown): string {
  const consequence = 'Xids are seen only where NVML announces them, SXids not at all';
  switch (codeOf(error)) {
    case 'ENOENT':
      return `there is no kernel log at ${path}: ${consequence}; make ${path} visible to the agent`;
    case 'EPERM':
    case 'EACCES':
      return `the agent may not read the kernel log ${path}: ${consequence}; run it as root or with CAP_SYSLOG`;
    default:
      return `the kernel log ${path} cannot be read (${messageOf(error)}): ${consequence}; see what is at ${path}`;
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : null;
}

/**
 * A record of /dev/kmsg (the kernel's Documentation/ABI/testing/dev-kmsg), one per line:
 *
 *     3,1822,118740221,-;NVRM: The NVIDIA GPU 0000:b3:00.0\x0aNVRM: (PCI ID: …) installed in this system has
 *      SUBSYSTEM=pci
 *
 * priority and facility, sequence, microseconds, flags; text. Lines that begin with a blank belong to the record before
 * and hold nothing of interest here.
 */
export interface KernelRecord {
  /**
   * Whether the kernel itself wrote it. Programs can write into /dev/kmsg, but not with the kernel's facility: what they
   * write must not pass for a broken GPU.
   */
  readonly fromKernel: boolean;
  /** Counts up by one from boot to boot. */
  readonly sequence: number;
  /** Since boot. */
  readonly uptimeMs: number;
  /** With line breaks, without other control characters. */
  readonly text: string;
}

/** Longer than any record that the kernel makes (PRINTK_MESSAGE_MAX is 2048). */
const textLengthMax = 4096;

/** @returns null for a continuation line and for anything that is no record */
export function parseKernelRecord(line: string): KernelRecord | null {
  const match = /^(\d{1,9}),(\d{1,15}),(\d{1,15}),[^;]{0,200};/.exec(line);
  if (match === null) return null;
  const [head, priority, sequence, microseconds] = match;
  return {
    fromKernel: Number(priority) >> 3 === 0,
    sequence: Number(sequence),
    uptimeMs: Math.floor(Number(microseconds) / 1000),
    text: readable(unescape(line.slice(head.length, head.length + textLengthMax))),
  };
}

/** The kernel writes every byte that is no printable ASCII character, and the backslash, as `\xNN`. */
function unescape(text: string): string {
  return text.replace(/(?:\\x[0-9a-f]{2})+/gi, (bytes) =>
    Buffer.from(bytes.replaceAll('\\x', ''), 'hex').toString('utf8'),
  );
}

/** Log lines end up on terminals, where an escape sequence would be obeyed. */
function readable(text: string): string {
  return text.replace(/(?!\n)[\p{Cc}\p{Bidi_Control}]/gu, ' ');
}
