/**
 * When most nodes fall silent at once, the fault is more likely here than with each of them: this coordinator may be the
 * one that is cut off. Then nothing is rescheduled. Pure.
 */
import type { NodeName } from '@muster/common/ids';

export interface SeenNode {
  readonly node: NodeName;
  /** Monotonic: when its silence was noticed. null: it answers. */
  readonly silentSinceMs: number | null;
}

/** Fewer tell nothing: two nodes in one rack share a switch. */
const nodesMin = 3;

/**
 * @param before nodes for whose silence we suspect ourselves. null: we do not
 * @param seen the nodes that should answer; those that a person declared dead are not among them
 * @param windowMs nodes that fall silent within so long of each other count together
 * @returns the same after a look at the nodes. Trust is back once half of them answer
 */
export function suspectOurselves(
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
