/** Which cards this node has had, so that one that is gone can be named. */
import type { GpuProblem } from '../gpuSource.ts';
import type { NvmlListing } from './protocol.ts';
import { type CardName, cardTitle } from './returnCodes.ts';

export class KnownCards {
  readonly #byUuid = new Map<string, CardName>();

  /** The number of a card holds until the driver is opened anew. */
  at(index: number): CardName {
    const card = [...this.#byUuid.values()].find((each) => each.index === index);
    return card ?? { index, uuid: null, pciBusId: null };
  }

  /**
   * @param avoided numbers of cards that were not looked for
   * @returns what is wrong with cards that are counted and cannot be used, or were there once
   */
  update({ cards, closedCards }: NvmlListing, avoided: readonly number[]): readonly GpuProblem[] {
    const missing = new Map(this.#byUuid);
    for (const card of cards) {
      if (card.uuid === null) continue;
      this.#byUuid.set(card.uuid, card);
      missing.delete(card.uuid);
    }
    for (const [uuid, { index }] of missing) if (avoided.includes(index)) missing.delete(uuid);
    const closed = closedCards.map(({ index, problem }) => {
      // A card that does not open does not tell its UUID either.
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
