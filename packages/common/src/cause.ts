/** Makes causes, and the end of a task that has none. The kind of a cause determines its `blame`, unless more is known. */
import { causeFacts } from './causeFacts.ts';
import type { CauseKind, Evidence } from './spec/causes.ts';
import type { Cause, TaskEnd } from './views.ts';

/** What a cause is about. Only the end of a task names its rank. */
export type CausePlace = Pick<Cause, 'nodeRank' | 'node'>;

const nowhere: CausePlace = { nodeRank: null, node: null };

/**
 * @param message one sentence for people, naming rank and node
 * @param place default: nothing in particular
 * @param evidence default: nothing beyond the message
 */
export function causeOf(
  kind: CauseKind,
  message: string,
  { nodeRank, node }: CausePlace = nowhere,
  evidence: Evidence | null = null,
): Cause {
  return { kind, message, nodeRank, node, evidence, blame: causeFacts[kind].blame };
}

/** The end of a task that was never released: no process of it ran, and nothing is left. */
export const nothingRan: TaskEnd = {
  exitCode: null,
  signal: null,
  oomKilled: false,
  finishedAtMs: null,
  statusLost: false,
  startError: null,
  logBytes: 0,
  gpuUsage: null,
  failure: null,
  training: null,
  artifacts: [],
};
