/** Makes causes: who is to blame follows from the kind, unless more is known of the single case. */
import { causeFacts } from './causeFacts.ts';
import type { CauseKind, Evidence } from './spec/causes.ts';
import type { Cause } from './views.ts';

/** What a cause is about. Only the end of a task names its rank. */
export type CausePlace = Pick<Cause, 'nodeRank' | 'node'>;

const nowhere: CausePlace = { nodeRank: null, node: null };

/**
 * @param message one sentence for people, naming rank and node
 * @param place left out: nothing in particular
 * @param evidence left out: nothing beyond the message
 */
export function causeOf(
  kind: CauseKind,
  message: string,
  { nodeRank, node }: CausePlace = nowhere,
  evidence: Evidence | null = null,
): Cause {
  return { kind, message, nodeRank, node, evidence, blame: causeFacts[kind].blame };
}
