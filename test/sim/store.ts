/** The coordinator's disk: what was committed outlives it, and a commit under way when it dies is there or is not. */

import { problemOfEvent } from '@muster/coordinator/events/eventSchemaFixture';
import { type Memory, MemoryStore } from '@muster/coordinator/store/memory/memoryStore';
import { type Batch, StoreError } from '@muster/coordinator/store/store';
import type { History } from './history.ts';
import type { Random } from './random.ts';
import type { Life, Timeline } from './timeline.ts';

/** What the next commits meet. */
export interface StoreFaults {
  /** No space for this many more commits. */
  fullCommits: number;
  /** The next commit fails, and whether it was written is not known. */
  ioError: boolean;
  slowUntilMs: number;
}

export interface SimulatedStoreParts {
  readonly memory: Memory;
  readonly coordinator: Life;
  /** The disk's own. */
  readonly world: Life;
  readonly timeline: Timeline;
  readonly random: Random;
  readonly history: History;
  readonly faults: StoreFaults;
  /** An event is not as its schema says. */
  readonly onAssertion: (what: string) => void;
}

export class SimulatedStore extends MemoryStore {
  readonly parts: SimulatedStoreParts;

  constructor(parts: SimulatedStoreParts) {
    super(parts.memory);
    this.parts = parts;
  }

  override commit(batch: Batch): Promise<void> {
    for (const event of batch.events) {
      const problem = problemOfEvent(event);
      if (problem !== null) this.parts.onAssertion(problem);
    }
    return this.slowly(() => this.persist(batch));
  }

  override writeMeta(name: string, value: string): Promise<void> {
    return this.slowly(() => super.writeMeta(name, value));
  }

  /** Takes a moment, and happens or not when its process dies, or the disk fails, in the middle of it. */
  private slowly(persist: () => Promise<void>): Promise<void> {
    const { coordinator, world, timeline, random, faults } = this.parts;
    const writeMs = random.between(1, timeline.nowMs < faults.slowUntilMs ? 800 : 8);
    // Written when its process dies, or the disk fails, in the middle of it.
    const isWrittenAnyway = random.chance(0.5);
    let isUnderway = true;
    coordinator.onEnd(() => {
      if (isUnderway && isWrittenAnyway) void persist().catch(() => {});
    });
    return new Promise((resolve, reject) => {
      const answer = (how: () => void) => timeline.at(random.between(0, 2), coordinator, how);
      const refuse = (error: StoreError) => answer(() => reject(error));
      timeline.at(writeMs, world, () => {
        isUnderway = false;
        if (!coordinator.alive) return;
        if (faults.fullCommits > 0) {
          faults.fullCommits -= 1;
          refuse(new StoreError('full', 'database or disk is full'));
        } else if (faults.ioError) {
          faults.ioError = false;
          if (isWrittenAnyway) void persist().catch(() => {});
          refuse(new StoreError('io', 'disk I/O error'));
        } else {
          persist().then(() => answer(resolve), refuse);
        }
      });
    });
  }

  private async persist(batch: Batch): Promise<void> {
    await super.commit(batch);
    const { events, pipelineSteps: steps, sweepTrials: trials } = batch;
    if (events.length > 0 || steps.length > 0 || trials.length > 0)
      this.parts.history.add({ kind: 'committed', events, steps, trials });
  }
}
