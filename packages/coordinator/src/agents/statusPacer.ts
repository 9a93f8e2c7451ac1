/**
 * How often what changes of one node becomes an event. Its state is always the newest; events of a node that changes without
 * end are held back, and the next one tells the difference to what was told last.
 */
import type { NodeName } from '@muster/common/ids';
import type { Node } from '../model.ts';
import { Allowance, type Rate } from '../work/allowance.ts';

/** An event of an inventory holds all of its GPUs: in the long run one a minute. */
const inventoryRate: Rate = { perSecond: 1 / 60, atOnce: 8 };
/** Conditions and drains, each of them. A node on which everything fails at once tells it all, and then one in 4 s. */
const conditionRate: Rate = { perSecond: 1 / 4, atOnce: 512 };
/** That it said Hello. */
const onlineRate: Rate = { perSecond: 1 / 10, atOnce: 64 };
/** That its tasks were frozen or thawed, each of them. */
const freezeRate: Rate = { perSecond: 1, atOnce: 4_096 };
/** What it says of checkpoints and of the course of a training. */
const trainingRate: Rate = { perSecond: 5, atOnce: 8_192 };

const rates = {
  inventory: inventoryRate,
  conditions: conditionRate,
  online: onlineRate,
  freezes: freezeRate,
  training: trainingRate,
} as const;
export type Paced = keyof typeof rates;

export type Pace = Pick<StatusPacer, 'take' | 'toldOf' | 'note'>;

/** Where nobody can say too much. */
export const unpaced: Pace = { take: () => true, toldOf: () => null, note() {} };

/** What was told last of a node whose newest state was not told. */
export type Told = Pick<Node, 'inventory' | 'conditions' | 'drain'>;

export class StatusPacer {
  private readonly monotonicMs: () => number;
  private readonly allowances = new Map<string, Allowance>();
  private readonly owed = new Map<NodeName, Told>();

  constructor(monotonicMs: () => number) {
    this.monotonicMs = monotonicMs;
  }

  /** @returns whether so many events may be told now */
  take(node: NodeName, what: Paced, count = 1): boolean {
    if (count === 0) return true;
    const nowMs = this.monotonicMs();
    const key = `${what} ${node}`;
    const allowance = this.allowances.get(key) ?? new Allowance(rates[what], nowMs);
    this.allowances.set(key, allowance);
    return allowance.take(nowMs, count);
  }

  /** What was told of the node last. null: all of what is known of it. */
  toldOf(node: NodeName): Told | null {
    return this.owed.get(node) ?? null;
  }

  /** @param told null: everything */
  note(node: NodeName, told: Told | null): void {
    if (told === null) this.owed.delete(node);
    else this.owed.set(node, told);
  }

  /** Nodes of which something is to be told. */
  owing(): readonly NodeName[] {
    return [...this.owed.keys()];
  }
}
