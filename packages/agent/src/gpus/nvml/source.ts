/**
 * NVML as a source of GPU facts. The library lives in a process of its own, the reader, which this file starts, asks,
 * gives up on and replaces:
 *
 *     none ──start──> answering ──deadline or crash──> leaving ──really gone──> none
 *
 * A reader that does not answer is killed, and no other is started before it is gone: one that hangs in the kernel stays,
 * and a second one would only hang beside it. The card it stood at is left alone for a while, so that the next reader
 * can serve the other ones.
 */
import { withDeadline } from '@muster/common/async';
import type { Clock } from '@muster/common/clock';
import { cardUuid, type DeviceLink } from '@muster/common/hardware';
import type { Logger } from '@muster/common/log';
import { backoffMs } from '@muster/common/retry';
import {
  emptyListing,
  type GpuListing,
  type GpuProblem,
  type GpuSampling,
  type GpuSource,
  nodeProblem,
  type XidEvent,
} from '../gpuSource.ts';
import { KnownCards, Suspects } from './knownCards.ts';
import type { NvmlListing } from './protocol.ts';
import {
  type NvmlDeadlines,
  nvmlDeadlines,
  type ReaderEnd,
  type ReaderOptions,
  ReaderProcess,
} from './readerProcess.ts';
import { cardTitle } from './returnCodes.ts';

export interface NvmlSourceOptions {
  /** Name or path. */
  readonly library: string;
  /** argv that starts the reader; see `nvmlReaderCommand`. */
  readonly command: readonly string[];
  /** Whether to measure activity with GPM where a card can (Hopper and newer). */
  readonly gpm: boolean;
  readonly log: Logger;
  readonly clock: Clock;
  readonly deadlines?: Partial<NvmlDeadlines>;
}

export interface NvmlSource extends GpuSource {
  /** Known after the first listing. */
  readonly profilingSource: 'gpm' | null;
  /** Process id of the reader, for those who watch its memory; null: none runs. */
  readonly readerPid: number | null;
}

/** What the source needs of a reader. */
export type Reader = Pick<ReaderProcess, 'pid' | 'gone' | 'standing' | 'list' | 'sample' | 'kill'>;

export function createNvmlSource(
  options: NvmlSourceOptions,
  startReader: (options: ReaderOptions) => Reader = (each) => new ReaderProcess(each),
): NvmlSource {
  return new Source(options, startReader);
}

/** How long a killed reader is waited for before the caller gets its answer. */
const killMs = 1_000;
/** How many cards one listing may find hanging. */
const listAttemptsMax = 4;

class Source implements NvmlSource {
  readonly name = 'nvml';
  private readonly options: NvmlSourceOptions;
  private readonly deadlines: NvmlDeadlines;
  private readonly start: (options: ReaderOptions) => Reader;
  private readonly xidListeners: ((event: XidEvent) => void)[] = [];
  private isClosed = false;
  private lastTurn: Promise<unknown> = Promise.resolve();

  private reader: Reader | null = null;
  private readerStartedAtMs = 0;
  /** This reader has opened all cards but these; null: none yet. */
  private listedBut: readonly number[] | null = null;
  /** The reader was killed and is not gone yet. */
  private isLeaving = false;

  /** In a row, since something was read. */
  private failures = 0;
  private restartAtMs = 0;
  /** Why the last reader ended, for callers that come before the next one is started. */
  private lastFailure: GpuProblem | Error | null = null;

  private readonly suspects: Suspects;
  private readonly known = new KnownCards();
  /** Of cards that are not there or cannot be opened, as of the last listing. */
  private absent: readonly GpuProblem[] = [];
  private hasLostCards = false;
  private hasGpm = false;
  private listing: GpuListing = emptyListing;

  constructor(options: NvmlSourceOptions, start: (options: ReaderOptions) => Reader) {
    this.options = options;
    this.deadlines = { ...nvmlDeadlines, ...options.deadlines };
    this.start = start;
    const { avoidMs, avoidMaxMs } = this.deadlines;
    this.suspects = new Suspects(options.clock, { initialMs: avoidMs, maxMs: avoidMaxMs });
  }

  get profilingSource(): 'gpm' | null {
    return this.hasGpm ? 'gpm' : null;
  }

  get readerPid(): number | null {
    return this.reader?.pid ?? null;
  }

  readonly onXid = (listener: (event: XidEvent) => void): void => {
    this.xidListeners.push(listener);
  };

  list(): Promise<GpuListing> {
    return this.inTurn(() => this.listNow());
  }

  sample(): Promise<GpuSampling> {
    return this.inTurn(() => this.sampleNow());
  }

  /** A reader does one thing at a time, and must not be taken to hang for what it was asked before. */
  private inTurn<T>(run: () => Promise<T>): Promise<T> {
    const result = this.lastTurn.then(run);
    this.lastTurn = result.catch(() => {});
    return result;
  }

  private async listNow(): Promise<GpuListing> {
    if (this.needsNewReader()) await this.endReader();
    // A card that stops the reader is avoided by the next one, which may stop at another card.
    for (let attempt = 1; ; attempt += 1) {
      const avoidedBefore = this.suspects.avoided.length;
      const failure = await this.listOnce();
      if (failure === null) return this.listing;
      const hasSuspect = this.suspects.avoided.length > avoidedBefore;
      const canGoOn = hasSuspect && this.reader === null && attempt < listAttemptsMax;
      if (!canGoOn) return { ...this.listing, problems: this.problems([failure]) };
    }
  }

  private async sampleNow(): Promise<GpuSampling> {
    const { avoided } = this.suspects;
    // A new reader knows no cards yet, and this one may not know those that have been left alone long enough.
    if (this.reader === null || this.listedBut?.every((index) => avoided.includes(index)) !== true) {
      const failure = await this.listOnce();
      if (failure !== null) return { samples: [], problems: this.problems([failure]) };
    }
    const sampling = await this.ask((reader) => reader.sample(avoided), this.deadlines.sampleMs);
    if (isProblem(sampling)) return { samples: [], problems: this.problems([sampling]) };
    const { samples, problems, driverProblem } = sampling;
    if (driverProblem !== null) {
      await this.driverFailed(driverProblem);
      return { samples: [], problems: this.problems([driverProblem]) };
    }
    this.succeeded(avoided);
    this.hasLostCards = problems.some(({ kind }) => kind === 'lost' || kind === 'reset_required');
    return { samples, problems: this.problems(problems) };
  }

  async close(): Promise<void> {
    this.isClosed = true;
    const reader = this.reader;
    reader?.kill();
    await reader?.gone;
  }

  /** @returns what kept it from listing; null: `#listing` is new */
  private async listOnce(): Promise<GpuProblem | null> {
    const { avoided } = this.suspects;
    const listing = await this.ask((reader) => reader.list(avoided), this.deadlines.listMs);
    if (isProblem(listing)) return listing;
    if (listing.driverProblem !== null) {
      await this.driverFailed(listing.driverProblem);
      return listing.driverProblem;
    }
    this.listedBut = avoided;
    this.hasGpm = listing.hasGpm;
    this.absent = this.known.update(listing, avoided);
    this.listing = this.withAvoided(listing, avoided);
    return null;
  }

  /** Cards that are avoided are still listed, as they were: nothing shows that they are gone. */
  private withAvoided(listing: NvmlListing, avoided: readonly number[]): GpuListing {
    const { gpus, links, driverVersion, cudaVersion } = listing;
    const hidden = new Set(avoided.map((index) => this.known.at(index).uuid));
    const touches = ({ from, to }: DeviceLink) => hidden.has(from) || hidden.has(to);
    const kept = this.listing.gpus.filter((gpu) => hidden.has(cardUuid(gpu)));
    return {
      gpus: [...gpus, ...kept].sort((a, b) => (a.index ?? 0) - (b.index ?? 0)),
      links: [...links, ...this.listing.links.filter(touches)],
      driverVersion,
      cudaVersion,
      problems: [...this.problems([]), ...undivided(listing)],
    };
  }

  /** With all that is known beside what was just found; of several words on one card, the newest. */
  private problems(found: readonly GpuProblem[]): readonly GpuProblem[] {
    const all = [...found, ...this.suspects.problems, ...this.absent];
    const keyOf = ({ gpuUuid, pciBusId, message }: GpuProblem) => gpuUuid ?? pciBusId ?? message;
    return all.filter((problem, index) => all.findIndex((each) => keyOf(each) === keyOf(problem)) === index);
  }

  // ---- The reader's life

  /** @returns the answer, or what went wrong; then the reader has been killed or is gone */
  private async ask<T extends object>(
    question: (reader: Reader) => Promise<T>,
    deadlineMs: number,
  ): Promise<T | GpuProblem> {
    const reader = this.reader ?? this.startReader();
    if (reader === null) return this.noReader();
    if (this.isLeaving) return this.stuck(reader);
    const outcome = await withDeadline(
      Promise.race([
        question(reader).then((answer) => ({ kind: 'answer', answer }) as const),
        reader.gone.then((end) => ({ kind: 'gone', end }) as const),
      ]),
      deadlineMs,
    );
    if (outcome === 'late') return this.hung(reader, deadlineMs);
    return outcome.kind === 'answer' ? outcome.answer : this.crashed(reader, outcome.end);
  }

  /** @returns null: it is not time yet. @throws {Error} after `close` */
  private startReader(): Reader | null {
    if (this.isClosed) throw new Error('the NVML source of this agent is closed');
    const { clock, command, library, gpm, log } = this.options;
    if (clock.monotonicMs() < this.restartAtMs) return null;
    const reader = this.start({
      command,
      library,
      gpm,
      onXid: (event) => {
        for (const listener of this.xidListeners) listener(event);
      },
      onOpened: (missing) => {
        if (missing.length > 0)
          log.info({ library, missing }, 'NVML lacks functions; their values are absent');
      },
    });
    this.reader = reader;
    this.readerStartedAtMs = clock.monotonicMs();
    this.listedBut = null;
    this.isLeaving = false;
    void reader.gone.then(() => {
      if (this.reader === reader) this.reader = null;
    });
    return reader;
  }

  /** @throws {Error} when the library cannot be loaded */
  private noReader(): GpuProblem {
    if (this.lastFailure instanceof Error) throw this.lastFailure;
    return (
      this.lastFailure ??
      nodeProblem('unknown_error', 'the reader of NVML has ended and starts again soon', '')
    );
  }

  private stuck(reader: Reader): GpuProblem {
    return nodeProblem(
      'hung',
      `the reader of NVML (pid ${reader.pid}) hangs in the driver and cannot be ended: drain the node and reboot it`,
      'alive after SIGKILL',
    );
  }

  private async hung(reader: Reader, deadlineMs: number): Promise<GpuProblem> {
    const { standing } = reader;
    const within = `within ${deadlineMs} ms`;
    const problem =
      standing === null
        ? nodeProblem(
            'hung',
            'the NVIDIA driver of this node does not answer: drain the node and reboot it',
            `no answer from the NVML reader ${within}`,
          )
        : this.suspect(
            standing.cardIndex,
            'hung',
            'does not answer: drain it, and reboot the node if it stays so',
            `no answer from ${standing.call} ${within}`,
          );
    this.failed(problem, standing === null);
    await this.endReader();
    return problem;
  }

  /** @throws {Error} when the library cannot be loaded */
  private crashed({ standing }: Reader, { unavailable, description }: ReaderEnd): GpuProblem {
    if (unavailable !== null) {
      const failure = new Error(`${this.options.library} cannot be loaded on this node: ${unavailable}`);
      this.failed(failure, true);
      throw failure;
    }
    const evidence = `the NVML reader ended with ${description}`;
    const problem =
      standing === null
        ? nodeProblem(
            'unknown_error',
            'the reader of NVML ended on this node: look at the version of the driver and at the kernel log',
            evidence,
          )
        : this.suspect(
            standing.cardIndex,
            'unknown_error',
            "makes the driver's library crash: drain it and look at the kernel log",
            `${evidence}, in ${standing.call}`,
          );
    this.failed(problem, standing === null);
    return problem;
  }

  /** Only a new process can load a library of another version, or start over with a driver that came back. */
  private async driverFailed(problem: GpuProblem): Promise<void> {
    this.failed(problem, true);
    await this.endReader();
  }

  private suspect(index: number, kind: 'hung' | 'unknown_error', what: string, evidence: string): GpuProblem {
    const card = this.known.at(index);
    const message = `${cardTitle(card)} ${what}`;
    const problem: GpuProblem = { kind, gpuUuid: card.uuid, pciBusId: card.pciBusId, message, evidence };
    this.suspects.add(index, problem);
    return problem;
  }

  /** @param backsOff false: the next reader avoids what stopped this one, and may start at once */
  private failed(failure: GpuProblem | Error, backsOff: boolean): void {
    const { clock, log } = this.options;
    const { restartMs, restartMaxMs } = this.deadlines;
    this.failures += 1;
    this.lastFailure = failure;
    const pauseMs = backsOff ? backoffMs({ initialMs: restartMs, maxMs: restartMaxMs }, this.failures) : 0;
    this.restartAtMs = clock.monotonicMs() + pauseMs;
    log.warn({ evidence: 'evidence' in failure ? failure.evidence : undefined, pauseMs }, failure.message);
  }

  private succeeded(avoided: readonly number[]): void {
    this.failures = 0;
    this.lastFailure = null;
    this.suspects.clearAllBut(avoided);
  }

  private needsNewReader(): boolean {
    const ageMs = this.options.clock.monotonicMs() - this.readerStartedAtMs;
    const lacksCards = this.hasLostCards || this.absent.length > 0;
    return this.reader !== null && !this.isLeaving && lacksCards && ageMs >= this.deadlines.refreshMs;
  }

  private async endReader(): Promise<void> {
    const reader = this.reader;
    if (reader === null) return;
    reader.kill();
    this.isLeaving = true;
    await withDeadline(reader.gone, killMs);
  }
}

/** Only a card in MIG mode can be open and have no device. */
function undivided({ cards, gpus }: NvmlListing): readonly GpuProblem[] {
  const divided = new Set(gpus.map(cardUuid));
  return cards
    .filter(({ uuid }) => uuid !== null && !divided.has(uuid))
    .map((card) => ({
      kind: 'no_instances',
      gpuUuid: card.uuid,
      pciBusId: card.pciBusId,
      message: `${cardTitle(card)} is in MIG mode and has no instances: make some with \`nvidia-smi mig -cgi\`, or turn MIG off`,
      evidence: 'MIG mode is on, no instance is listed',
    }));
}

function isProblem(outcome: object): outcome is GpuProblem {
  return 'evidence' in outcome;
}
