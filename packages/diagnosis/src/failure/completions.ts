/**
 * Whom a failed work request of RDMA accuses, by its status in libibverbs (ibv_wc_status): 4 is a local protection error,
 * which the memory of this node causes; 12 and 13 are answers that never came, the network's doing.
 */
import type { FailureVerdict } from './finding.ts';

const status = /with (?:status|error)[ =:]{1,3}(\d{1,3})\b/i;
/** Local: length, queue operation, protection. */
const localStatuses: readonly number[] = [1, 2, 4];

export function completionVerdict(text: string): FailureVerdict {
  const told = status.exec(text);
  return told !== null && localStatuses.includes(Number(told[1]))
    ? { blame: 'node', retry: 'other_node' }
    : {};
}
