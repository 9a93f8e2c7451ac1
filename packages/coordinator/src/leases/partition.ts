/**
 * Decides whether this coordinator suspects that it is partitioned itself: when most nodes become silent at once, one fault
 * here is more likely than many faults there. Nothing is rescheduled then. Pure.
 */
import type { NodeName } from '@muster/common/ids';

export interface SeenNode {
  readonly node: NodeName;
  /** When the silence of the node was noticed, monotonic. null: it responds. */
  readonly silentSinceMs: number | null;
}

/** Fewer silent nodes prove nothing: two nodes in one rack share a switch. */
const nodesMin = 3;

/**
 * @param before the silent nodes that have caused the suspicion. null: there is none
 * @param seen the nodes that should respond, without those that a user has confirmed to be dead and those that have left
 * @param windowMs nodes that become silent within this time of each other are counted together
 * @returns the new value of `before`. The suspicion ends when half of the nodes respond
 */
export function detectPartition(
  before: ReadonlySet<NodeName> | null,
  seen: readonly SeenNode[],
  nowMs: number,
  windowMs: number,
): ReadonlySet<NodeName> | null {
  const answering = seen.filter(({ silentSinceMs }) => silentSinceMs === null).length;
  const fallen = seen.filter(
    ({ node, silentSinceMs }) =>
      silentSinceMs !== null && (nowMs - silentSinceMs <= windowMs || before?.has(node) === true),
  );
  const isMost = fallen.length > answering;
  if (!isMost || (before === null && fallen.length < nodesMin)) return null;
  return new Set(fallen.map(({ node }) => node));
}
