/** The reader's view of the driver: opened once, listed now and then, sampled again and again. */

import { setTimeout as delay } from 'node:timers/promises';
import type { GpuProblem, GpuSample, XidEvent } from '../gpuSource.ts';
import { Calls } from './calls.ts';
import { CardMeter } from './cardMeter.ts';
import { type Enumeration, enumerateCards, type NvmlCard } from './enumerate.ts';
import type { NvmlLibrary } from './library.ts';
import type { NvmlListing, NvmlSampling } from './protocol.ts';
import { ProcessReader } from './readValues.ts';
import { isOfNode, nvmlProblem, success, timeout } from './returnCodes.ts';
import { eventData, gpmMetrics, readPointer, readString, readU64, versionSize } from './structs.ts';
import { type NvLink, readLinks, readNvLinks } from './topology.ts';

export interface SessionOptions {
  readonly library: NvmlLibrary;
  /** Whether to measure activity with GPM where a card can. */
  readonly gpm: boolean;
  readonly monotonicMs: () => number;
  readonly processExists: (pid: number) => boolean;
  readonly onXid: (event: XidEvent) => void;
}

/** The dear values of a card are read at each tenth sample; the cards take turns, so that no sample is dear. */
const slowEvery = 10;

export class NvmlSession {
  private readonly options: SessionOptions;
  private readonly calls: Calls;
  private readonly processes: ProcessReader;
  private readonly gpmQuery = Buffer.alloc(gpmMetrics.size);
  private readonly xids: XidWatch;
  private isOpen = false;
  private meters: readonly CardMeter[] = [];
  private samplesTaken = 0;

  constructor(options: SessionOptions) {
    this.options = options;
    this.calls = new Calls(options.library);
    this.processes = new ProcessReader(options.processExists);
    this.xids = new XidWatch(options.library, options.onXid);
  }

  /** Also opens the driver, and the cards for the samples that follow. */
  list(avoid: ReadonlySet<number>): NvmlListing {
    const calls = this.calls;
    const opened = this.open(avoid);
    const { driverProblem } = opened;
    if (driverProblem !== null) return { ...nothing, driverProblem };
    const { cards } = opened;
    const nvLinks = readNvLinks(calls, cards);
    const links = readLinks(calls, cards, nvLinks);
    this.meters = this.metersFor(cards, nvLinks);
    this.xids.watch(calls, cards);
    calls.begin(-1);
    const hasVersion = calls.run('nvmlSystemGetDriverVersion', calls.out, versionSize);
    const driverVersion = hasVersion ? readString(calls.out, 0, versionSize) || null : null;
    return {
      gpus: cards.flatMap(({ devices }) => devices.map(({ gpu }) => gpu)),
      driverVersion,
      cudaVersion: cudaVersionOf(calls.u32('nvmlSystemGetCudaDriverVersion_v2')),
      links,
      cards: cards.map(({ index, uuid, pciBusId }) => ({ index, uuid, pciBusId })),
      closedCards: opened.closedCards,
      hasGpm: this.meters.some(({ hasGpm }) => hasGpm),
      driverProblem: null,
    };
  }

  /** Of the cards last listed. */
  sample(avoid: ReadonlySet<number>): NvmlSampling {
    const calls = this.calls;
    const samples: GpuSample[] = [];
    const problems: GpuProblem[] = [];
    for (const [position, meter] of this.meters.entries()) {
      if (avoid.has(meter.card.index)) continue;
      const isTurn = this.samplesTaken % slowEvery === position % slowEvery;
      const reading = meter.read(calls, this.options.monotonicMs(), isTurn);
      samples.push(...reading.samples);
      if (reading.failure === null) continue;
      const problem = nvmlProblem(reading.failure, meter.card);
      problems.push(problem);
      if (isOfNode(problem.kind)) return { samples: [], problems, driverProblem: problem };
    }
    this.samplesTaken += 1;
    return { samples, problems, driverProblem: null };
  }

  /** Meters of cards that have not changed are kept, with what they remember. */
  private metersFor(
    cards: readonly NvmlCard[],
    nvLinks: readonly (readonly NvLink[])[],
  ): readonly CardMeter[] {
    const calls = this.calls;
    const old = new Set(this.meters);
    const meters = cards.map((card, position) => {
      const links = (nvLinks[position] ?? []).map(({ number }) => number);
      const same = [...old].find((meter) => meter.fits(card, links));
      if (same !== undefined) old.delete(same);
      const { gpm } = this.options;
      return (
        same ?? new CardMeter(calls, card, { gpm, gpmQuery: this.gpmQuery, processes: this.processes, links })
      );
    });
    calls.begin(-1);
    for (const meter of old) meter.close(calls);
    return meters;
  }

  private open(avoid: ReadonlySet<number>): Enumeration {
    const calls = this.calls;
    if (!this.isOpen) {
      calls.begin(-1);
      this.isOpen = calls.run('nvmlInit_v2');
      if (!this.isOpen) {
        const failure = calls.failure ?? { kind: 'unknown_error', code: -1, call: 'nvmlInit_v2' };
        return { cards: [], closedCards: [], driverProblem: nvmlProblem(failure, null) };
      }
    }
    return enumerateCards(calls, avoid);
  }
}

const nothing: NvmlListing = {
  gpus: [],
  driverVersion: null,
  cudaVersion: null,
  links: [],
  cards: [],
  closedCards: [],
  hasGpm: false,
  driverProblem: null,
};

/** 13010 is 13.1. */
function cudaVersionOf(value: number | null): string | null {
  return value === null || value === 0
    ? null
    : `${Math.floor(value / 1000)}.${Math.floor((value % 1000) / 10)}`;
}

/** nvmlEventTypeXidCriticalError */
const xidEvents = 0x8;
const waitMs = 1_000;
/** After an answer that came at once though nothing happened: a lost card makes every wait fail. */
const pauseMs = 1_000;

class XidWatch {
  private readonly library: NvmlLibrary;
  private readonly report: (event: XidEvent) => void;
  private readonly event = Buffer.alloc(eventData.size);
  /** UUID by handle, of the cards whose events are watched. */
  private readonly watched = new Map<number, string>();
  private set: number | null = null;

  constructor(library: NvmlLibrary, report: (event: XidEvent) => void) {
    this.library = library;
    this.report = report;
  }

  /** Adds cards that were not watched yet; starts to wait with the first. */
  watch(calls: Calls, cards: readonly NvmlCard[]): void {
    const isFirst = this.set === null;
    this.set ??= calls.pointer('nvmlEventSetCreate');
    const set = this.set;
    if (set === null) return;
    for (const { index, handle, uuid } of cards) {
      if (this.watched.has(handle)) continue;
      calls.begin(index);
      const supported = calls.u64('nvmlDeviceGetSupportedEventTypes', handle);
      if (supported === null || (supported & xidEvents) === 0) continue;
      if (calls.run('nvmlDeviceRegisterEvents', handle, xidEvents, set)) this.watched.set(handle, uuid);
    }
    if (isFirst) void this.waitFor(set);
  }

  private async waitFor(set: number): Promise<never> {
    for (;;) {
      const code = await this.library.callAside('nvmlEventSetWait_v2', set, this.event, waitMs);
      if (code === success) this.reportEvent();
      else if (code !== timeout) await delay(pauseMs);
    }
  }

  private reportEvent(): void {
    const gpuUuid = this.watched.get(readPointer(this.event, eventData.device));
    const isXid = readU64(this.event, eventData.type) === xidEvents;
    const xid = readU64(this.event, eventData.data);
    if (gpuUuid !== undefined && isXid && xid !== null) this.report({ gpuUuid, xid });
  }
}
