/** The reader as its parent sees it: a process that answers, hangs or is gone. */
import { closeSync, openSync, readSync } from 'node:fs';
import { JsonLinesChild } from '@muster/common/jsonLinesChild';
import type { XidEvent } from '../gpuSource.ts';
import { functionNames, type NvmlFunction } from './functions.ts';
import {
  type NvmlListing,
  type NvmlSampling,
  none,
  type ReaderMessage,
  type ReaderRequest,
  readerLineLengthMax,
  tracePage,
} from './protocol.ts';

export interface ReaderOptions {
  /** argv of the reader; name of the library and flags follow. */
  readonly command: readonly string[];
  readonly library: string;
  readonly gpm: boolean;
  readonly onXid: (event: XidEvent) => void;
  /** Functions that this library does not have. */
  readonly onOpened: (missing: readonly string[]) => void;
}

/** How long the reader is waited for, and how long it is left alone after it has failed. */
export interface NvmlDeadlines {
  /** Opening the driver and listing: seconds per card where nothing keeps the cards initialised. */
  readonly listMs: number;
  readonly sampleMs: number;
  /** Before a card at which a reader hung or crashed is read again; doubles each time, up to the maximum. */
  readonly avoidMs: number;
  readonly avoidMaxMs: number;
  /** Before a reader is started again that ended for no reason of one card; likewise. */
  readonly restartMs: number;
  readonly restartMaxMs: number;
  /**
   * Age of a reader from which on a listing starts over with a new one while a card is missing: a driver that is open
   * does not notice its return.
   */
  readonly refreshMs: number;
}

export const nvmlDeadlines: NvmlDeadlines = {
  listMs: 60_000,
  sampleMs: 3_000,
  avoidMs: 60_000,
  avoidMaxMs: 30 * 60_000,
  restartMs: 1_000,
  restartMaxMs: 60_000,
  refreshMs: 60_000,
};

/** Where a reader hangs, or crashed. */
export interface Standing {
  readonly cardIndex: number;
  readonly call: NvmlFunction;
}

/** Why a reader is gone. */
export interface ReaderEnd {
  /** The library cannot be loaded: it reports that itself. */
  readonly unavailable: string | null;
  /** `signal SIGSEGV: what it printed last` */
  readonly description: string;
}

type Answer = Extract<ReaderMessage, { id: number }>;

export class ReaderProcess {
  /** Resolves when the process is really gone; one that hangs in the kernel survives SIGKILL. */
  readonly gone: Promise<ReaderEnd>;
  private readonly options: ReaderOptions;
  private readonly child: JsonLinesChild<ReaderMessage>;
  private lastId = 0;
  private waiting: { readonly id: number; readonly resolve: (answer: Answer) => void } | null = null;
  private unavailable: string | null = null;
  private traceFd: number | null = null;
  private lastStanding: Standing | null = null;

  constructor(options: ReaderOptions) {
    this.options = options;
    const { command, library, gpm } = options;
    this.child = new JsonLinesChild({
      command: [...command, library, ...(gpm ? ['--gpm'] : [])],
      lineLengthMax: readerLineLengthMax,
      onMessage: (message) => this.receive(message),
    });
    this.gone = this.child.gone.then(({ description }) => {
      this.keepStanding();
      return { unavailable: this.unavailable, description };
    });
  }

  get pid(): number | null {
    return this.child.pid;
  }

  /** One at a time. Never resolves when the reader hangs or ends: that is for the caller to notice. */
  list(avoid: readonly number[]): Promise<NvmlListing> {
    return this.ask('list', avoid).then((answer) => {
      if (answer.kind !== 'listed') throw new Error('the reader of NVML gave samples for a listing');
      return answer.listing;
    });
  }

  sample(avoid: readonly number[]): Promise<NvmlSampling> {
    return this.ask('sample', avoid).then((answer) => {
      if (answer.kind !== 'sampled') throw new Error('the reader of NVML gave a listing for samples');
      return answer.sampling;
    });
  }

  private ask(kind: 'list' | 'sample', avoid: readonly number[]): Promise<Answer> {
    this.lastId += 1;
    const id = this.lastId;
    return new Promise((resolve) => {
      this.waiting = { id, resolve };
      this.child.send({ id, kind, avoid } satisfies ReaderRequest);
    });
  }

  private receive(message: ReaderMessage): void {
    switch (message.kind) {
      case 'started':
        this.traceFd = this.openTrace(message.traceFd);
        return;
      case 'opened':
        this.options.onOpened(message.missing);
        return;
      case 'unavailable':
        this.unavailable = message.reason;
        return;
      case 'xid':
        this.options.onXid(message.event);
        return;
      case 'listed':
      case 'sampled':
        if (this.waiting?.id !== message.id) return;
        this.waiting.resolve(message);
        this.waiting = null;
        return;
      default:
        message satisfies never;
    }
  }

  /** Opened while the reader lives: the page is still there when it has crashed. */
  private openTrace(fd: number | null): number | null {
    if (fd === null) return null;
    try {
      return openSync(`/proc/${this.child.pid}/fd/${fd}`, 'r');
    } catch {
      return null;
    }
  }

  /** @returns null: in no call about a card, or it cannot be determined. Of one that is gone: where it ended */
  get standing(): Standing | null {
    return this.traceFd === null ? this.lastStanding : readTrace(this.traceFd);
  }

  private keepStanding(): void {
    if (this.traceFd === null) return;
    this.lastStanding = readTrace(this.traceFd);
    closeSync(this.traceFd);
    this.traceFd = null;
  }

  kill(): void {
    this.child.kill();
  }
}

function readTrace(fd: number): Standing | null {
  const page = new Int32Array(tracePage.bytes / 4).fill(none);
  readSync(fd, page, 0, tracePage.bytes, 0);
  const cardIndex = page[tracePage.card] ?? none;
  const call = functionNames[page[tracePage.call] ?? none];
  return cardIndex < 0 || call === undefined ? null : { cardIndex, call };
}
