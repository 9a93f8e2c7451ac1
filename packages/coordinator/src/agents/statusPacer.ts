/**
 * Limits how many events the changes of one node make. The state of the node is always the newest. Events of a node that
 * changes too often are held back, and the next event has the difference to the status that was published last.
 */
import type { NodeName } from '@muster/common/ids';
import type { Node } from '../model.ts';
import { Allowance, type Rate } from '../work/allowance.ts';

/** The rate of inventory changes. Such an event holds all GPUs of the node, so the long-term rate is one per minute. */
const inventoryRate: Rate = { perSecond: 1 / 60, atOnce: 8 };
/** The rate of conditions and drains. A node where everything fails at once publishes all of it, and then one in 4 s. */
const conditionRate: Rate = { perSecond: 1 / 4, atOnce: 512 };
/** The rate of Hellos. */
const onlineRate: Rate = { perSecond: 1 / 10, atOnce: 64 };
/** The rate of tasks that are frozen or thawed. */
const freezeRate: Rate = { perSecond: 1, atOnce: 4_096 };
/** The rate of reports about checkpoints and training. */
const trainingRate: Rate = { perSecond: 5, atOnce: 8_192 };

const rates = {
  inventory: inventoryRate,
  conditions: conditionRate,
  online: onlineRate,
  freezes: freezeRate,
  training: trainingRate,
} as const;
export type Paced = keyof typeof rates;

export type Pace = Pick<StatusPacer, 'take' | 'lastPublished' | 'note'>;

/** A pace without limits. */
export const unpaced: Pace = { take: () => true, lastPublished: () => null, note() {} };

/** The status of a node that was published last, while a newer status is held back. */
export type PublishedStatus = Pick<Node, 'inventory' | 'conditions' | 'drain'>;

export class StatusPacer {
  private readonly monotonicMs: () => number;
  private readonly allowances = new Map<string, Allowance>();
  private readonly heldBack = new Map<NodeName, PublishedStatus>();

  constructor(monotonicMs: () => number) {
    this.monotonicMs = monotonicMs;
  }

  /** @returns whether this many events may be published now */
  take(node: NodeName, what: Paced, count = 1): boolean {
    if (count === 0) return true;
    const nowMs = this.monotonicMs();
    const key = `${what} ${node}`;
    const allowance = this.allowances.get(key) ?? new Allowance(rates[what], nowMs);
    this.allowances.set(key, allowance);
    return allowance.take(nowMs, count);
  }

  /** @returns the status that was published last; null if the newest status was published */
  lastPublished(node: NodeName): PublishedStatus | null {
    return this.heldBack.get(node) ?? null;
  }

  /** @param published the status that was published last; null if nothing is held back any longer */
  note(node: NodeName, published: PublishedStatus | null): void {
    if (published === null) this.heldBack.delete(node);
    else this.heldBack.set(node, published);
  }

  /** Nodes with status changes that are held back. */
  heldBackNodes(): readonly NodeName[] {
    return [...this.heldBack.keys()];
  }
}
