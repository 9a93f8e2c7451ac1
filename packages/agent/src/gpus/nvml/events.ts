/** Xids as the driver announces them. */
import { setTimeout as delay } from 'node:timers/promises';
import type { XidEvent } from '../gpuSource.ts';
import type { Calls } from './calls.ts';
import type { NvmlCard } from './enumerate.ts';
import type { NvmlLibrary } from './library.ts';
import { SUCCESS, TIMEOUT } from './returnCodes.ts';
import { eventData, readPointer, readU64 } from './structs.ts';

/** nvmlEventTypeXidCriticalError */
const xidEvents = 0x8;
const waitMs = 1_000;
/** After an answer that came at once though nothing happened: a lost card makes every wait fail. */
const pauseMs = 1_000;

export class XidWatch {
  readonly #library: NvmlLibrary;
  readonly #report: (event: XidEvent) => void;
  readonly #event = Buffer.alloc(eventData.size);
  /** UUID by handle, of the cards whose events are watched. */
  readonly #watched = new Map<number, string>();
  #set: number | null = null;

  constructor(library: NvmlLibrary, report: (event: XidEvent) => void) {
    this.#library = library;
    this.#report = report;
  }

  /** Adds cards that were not watched yet; starts to wait with the first. */
  watch(calls: Calls, cards: readonly NvmlCard[]): void {
    const isFirst = this.#set === null;
    this.#set ??= calls.pointer('nvmlEventSetCreate');
    const set = this.#set;
    if (set === null) return;
    for (const { index, handle, uuid } of cards) {
      if (this.#watched.has(handle)) continue;
      calls.begin(index);
      const supported = calls.u64('nvmlDeviceGetSupportedEventTypes', handle);
      if (supported === null || (supported & xidEvents) === 0) continue;
      if (calls.run('nvmlDeviceRegisterEvents', handle, xidEvents, set)) this.#watched.set(handle, uuid);
    }
    if (isFirst) void this.#waitFor(set);
  }

  async #waitFor(set: number): Promise<never> {
    for (;;) {
      const code = await this.#library.callAside('nvmlEventSetWait_v2', set, this.#event, waitMs);
      if (code === SUCCESS) this.#reportEvent();
      else if (code !== TIMEOUT) await delay(pauseMs);
    }
  }

  #reportEvent(): void {
    const gpuUuid = this.#watched.get(readPointer(this.#event, eventData.device));
    const isXid = readU64(this.#event, eventData.type) === xidEvents;
    const xid = readU64(this.#event, eventData.data);
    if (gpuUuid !== undefined && isXid && xid !== null) this.#report({ gpuUuid, xid });
  }
}
