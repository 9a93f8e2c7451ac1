/** What a submit is answered with. */
import type { PendingReason } from './views.ts';

export interface SubmitResult {
  readonly jobIds: readonly string[];
  readonly arrayId: string | null;
  readonly repeatedRequest: boolean;
  /** Dry run: why it would wait behind the jobs that are queued; null when it would start now. */
  readonly wouldWait: PendingReason | null;
  /** Why its first job did not start at once. null: it did, or this was a dry run. */
  readonly waits: PendingReason | null;
  /** Dry run: the nodes that it would start on now, by node rank. */
  readonly wouldStartOn: readonly string[];
  /** How many jobs the array has; 0: it is one job. */
  readonly arraySize: number;
  /** Dry run: queued jobs that would be ahead of it. */
  readonly jobsAhead: number;
}
