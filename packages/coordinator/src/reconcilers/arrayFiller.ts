/**
 * Stores the jobs of large arrays, some of them in each turn of the loop, and continues after a restart with arrays that are
 * not complete. Arrays take turns, so that a small one does not wait for a large one.
 */

import type { ArrayId, JobId, RandomBytes } from '@muster/common/ids';
import { fillArray, fillMember } from '../commands/arrays.ts';
import type { Loop } from '../loop.ts';
import type { ClusterState } from '../state/state.ts';
import { isMissing } from '../store/arrayIndexes.ts';
import type { ListedJobId, Store } from '../store/store.ts';
import { nextRound } from '../work/inOrder.ts';

export interface ArrayFillerParts {
  readonly state: Pick<ClusterState, 'arrays'>;
  readonly store: Pick<Store, 'listJobIds'>;
  readonly loop: Pick<Loop, 'run'>;
  readonly random: RandomBytes;
}

/** Ids that are read between two rounds of the event loop. */
const idsPerRead = 5_000;

export class ArrayFiller {
  private readonly parts: ArrayFillerParts;
  private work: Promise<void> | null = null;
  private readonly waiting = new Map<ArrayId, Set<() => void>>();

  constructor(parts: ArrayFillerParts) {
    this.parts = parts;
  }

  /** Resolves when no array is incomplete; rejects when the loop takes no more commands. */
  run(): Promise<void> {
    this.work ??= this.fill().finally(() => {
      this.work = null;
    });
    return this.work;
  }

  /** As `run`, for who does not wait for it: what fails now is begun again by the next tick, or the next start. */
  begin(): void {
    this.run().catch(() => {});
  }

  /** Stores the job of an index now, where its turn has not come. */
  async member(arrayId: ArrayId, index: number): Promise<void> {
    const { state, loop, random } = this.parts;
    const array = state.arrays.get(arrayId);
    if (array === undefined || !isMissing(array, index)) return;
    await loop.run(array.by, (draft, nowMs) => fillMember(draft, { arrayId, index }, random, nowMs), true);
  }

  private async fill(): Promise<void> {
    const { state, loop, random } = this.parts;
    while (state.arrays.size > 0) {
      for (const { id, by } of Array.from(state.arrays.values())) {
        await loop.run(by, (draft, nowMs) => fillArray(draft, id, random, nowMs), true);
        if (state.arrays.has(id)) continue;
        for (const resolve of this.waiting.get(id) ?? []) resolve();
        this.waiting.delete(id);
      }
    }
  }

  /** Resolves once all jobs of the array are stored. */
  async complete(arrayId: ArrayId): Promise<void> {
    if (!this.parts.state.arrays.has(arrayId)) return;
    const stored = new Promise<void>((resolve) => {
      this.waiting.set(arrayId, (this.waiting.get(arrayId) ?? new Set()).add(resolve));
    });
    await Promise.race([stored, this.run()]);
  }

  /** Of all its jobs, by index, once all are stored; behind them those that run them again. */
  async jobIds(arrayId: ArrayId): Promise<readonly JobId[]> {
    await this.complete(arrayId);
    const pages: (readonly ListedJobId[])[] = [];
    let beforeSubmitSeq: number | null = null;
    for (;;) {
      const query = { states: [], arrayId, name: null, limit: idsPerRead, beforeSubmitSeq };
      const page: readonly ListedJobId[] = await this.parts.store.listJobIds(query);
      const last = page.at(-1);
      if (last === undefined) break;
      pages.push(page);
      beforeSubmitSeq = last.submitSeq;
      await nextRound();
    }
    return pages.flatMap((page) => page.map(({ id }) => id)).reverse();
  }
}
