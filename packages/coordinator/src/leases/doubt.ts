/** Turns what an agent claims without proof into a condition of its node, which shows it and keeps new work away. */
import type { Condition } from '@muster/common/conditions';

export const doubtKind = 'unproven_claims';

/** @param claim as `Terms.checkAccount` returns it */
export function doubtCondition(claim: string, nowMs: number): Condition {
  return {
    kind: doubtKind,
    gpuUuid: null,
    severity: 'critical',
    action: 'drain_node',
    message:
      `The agent reports that ${claim}: it gets no new tasks. If its data directory comes from another cluster, give it an ` +
      'empty one; if the store was restored from a backup: muster store advance',
    evidence: claim,
    sinceMs: nowMs,
    lastSeenAtMs: nowMs,
    count: 1,
    clears: 'when_gone',
    task: null,
  };
}
