/** Which cards this node has had, so that one that is gone can be named. */

import type { Clock } from '@muster/common/clock';
import { type BackoffPolicy, backoffMs } from '@muster/common/retry';
import type { GpuProblem } from '../gpuSource.ts';
import type { NvmlListing } from './protocol.ts';
import { type CardName, cardTitle } from './returnCodes.ts';

export class KnownCards {
  private readonly byUuid = new Map<string, CardName>();

  /** The number of a card is valid until the driver is opened again. */
  at(index: number): CardName {
    const card = [...this.byUuid.values()].find((each) => each.index === index);
    return card ?? { index, uuid: null, pciBusId: null };
  }

  /**
   * @param avoided numbers of cards that were not looked for
   * @returns what is wrong with cards that are counted and cannot be used, or were there once
   */
  update({ cards, closedCards }: NvmlListing, avoided: readonly number[]): readonly GpuProblem[] {
    const missing = new Map(this.byUuid);
    for (const card of cards) {
      if (card.uuid === null) continue;
      this.byUuid.set(card.uuid, card);
      missing.delete(card.uuid);
    }
    for (const [uuid, { index }] of missing) if (avoided.includes(index)) missing.delete(uuid);
    const closed = closedCards.map(({ index, problem }) => {
      // A card that does not open does not show its UUID either.
      const candidates = [...missing.values()];
      const onlyOne = candidates.length === 1 && closedCards.length === 1;
      const card = candidates.find((each) => each.index === index) ?? (onlyOne ? candidates[0] : undefined);
      if (card?.uuid == null || problem.gpuUuid !== null) return problem;
      missing.delete(card.uuid);
      return { ...problem, gpuUuid: card.uuid, pciBusId: card.pciBusId };
    });
    return [...closed, ...[...missing.values()].map(vanished)];
  }
}

function vanished(card: CardName): GpuProblem {
  return {
    kind: 'lost',
    gpuUuid: card.uuid,
    pciBusId: card.pciBusId,
    message: `${cardTitle(card)} is no longer listed by the driver: look at the kernel log, and reboot the node`,
    evidence: 'listed before, now neither listed nor counted',
  };
}

interface Suspect {
  readonly problem: GpuProblem;
  readonly failures: number;
  readonly avoidUntilMs: number;
}

/** Cards at which a reader hung or crashed: left alone for a while, so that the others can be read. */
export class Suspects {
  private readonly clock: Clock;
  private readonly policy: BackoffPolicy;
  private readonly byIndex = new Map<number, Suspect>();

  /** @param policy how long a card is left alone, by the count of its failures */
  constructor(clock: Clock, policy: BackoffPolicy) {
    this.clock = clock;
    this.policy = policy;
  }

  get problems(): readonly GpuProblem[] {
    return [...this.byIndex.values()].map(({ problem }) => problem);
  }

  /** Numbers of the cards to be left alone now. */
  get avoided(): readonly number[] {
    const nowMs = this.clock.monotonicMs();
    return [...this.byIndex].filter(([, { avoidUntilMs }]) => nowMs < avoidUntilMs).map(([index]) => index);
  }

  add(index: number, problem: GpuProblem): void {
    const failures = (this.byIndex.get(index)?.failures ?? 0) + 1;
    const avoidUntilMs = this.clock.monotonicMs() + backoffMs(this.policy, failures);
    this.byIndex.set(index, { problem, failures, avoidUntilMs });
  }

  /** Every card but the avoided ones has been read, so none of them is suspect any longer. */
  clearAllBut(avoided: readonly number[]): void {
    for (const index of this.byIndex.keys()) if (!avoided.includes(index)) this.byIndex.delete(index);
  }
}
