/**
 * What to do next about one task, as a plain function of what should be and what is. The agent calls it whenever
 * either changes, after every connect and after its own restart; it never remembers what it was about to do.
 *
 *     assigned ──prepare──► prepared ──announce──► prepared ──check──► checked in round n
 *         └──────────────────────┴───────────────┴── start, with a lease ──┴──► running ──► ended
 */
import type { TaskEnd } from '@muster/common/views';

/** What the coordinator wants. Absent: it has not said, so the task is left as it is. */
export type DesiredState =
  | { readonly kind: 'prepare' }
  /** Every node is prepared: try the paths of this round. */
  | { readonly kind: 'check'; readonly round: number }
  | { readonly kind: 'start' }
  | { readonly kind: 'stop' }
  /** Recorded as ended, or superseded. */
  | { readonly kind: 'forget' };

/** What is. Absent: this agent has no record of the task. */
export type ActualState =
  /** Intent is on disk; nothing runs, and not all that it needs is there, or not any more: this agent is a new one. */
  | { readonly kind: 'assigned'; readonly leased: boolean }
  /** It could start now: GPUs, image, directories and ports are there. */
  | {
      readonly kind: 'prepared';
      /** These ports were sent to the coordinator, whether they arrived or not. */
      readonly announced: boolean;
      /** The round of paths whose findings are known. null: of none. */
      readonly checkedRound: number | null;
      /** It may run now. */
      readonly leased: boolean;
    }
  /** Prepared, and a driver that was to start it did not answer: it may be running. */
  | { readonly kind: 'uncertain' }
  /** Frozen or not: that is between the leases and the driver. */
  | { readonly kind: 'running' }
  /** Ended; `uploaded`: the coordinator has all of its output. */
  | { readonly kind: 'ended'; readonly exit: TaskEnd; readonly uploaded: boolean };

export type Action =
  /** Write the intent, fetch the image, look at the GPUs, hold the ports. */
  | 'prepare'
  /** Send that it is prepared. */
  | 'announce'
  /** Try the paths to the other nodes. */
  | 'check'
  /** Send what was found on them. */
  | 'send_findings'
  | 'start'
  /** Signal, grace, kill. */
  | 'stop'
  /** The task was superseded: no grace. */
  | 'kill'
  /** Nothing was started: say so. */
  | 'discard'
  /** There is no record, or no answer of the driver: find out what is true before anything else. */
  | 'examine'
  | 'report'
  /** Delete what is left of it. */
  | 'remove'
  | 'nothing';

export function reconcile(desired: DesiredState | undefined, local: ActualState | undefined): Action {
  if (desired !== undefined && local?.kind === 'uncertain') return 'examine';
  switch (desired?.kind) {
    case undefined:
      return 'nothing';
    case 'prepare':
      if (local === undefined || local.kind === 'assigned') return 'prepare';
      return local.kind === 'prepared' ? 'announce' : 'report';
    case 'check':
      if (local === undefined || local.kind === 'assigned') return 'prepare';
      if (local.kind !== 'prepared') return 'report';
      // After a restart of the agent its ports are others: a check of the old ones would find nobody.
      if (!local.announced) return 'announce';
      return local.checkedRound === desired.round ? 'send_findings' : 'check';
    case 'start':
      if (local === undefined) return 'examine';
      if (local.kind !== 'assigned' && local.kind !== 'prepared') return 'report';
      // A late command starts nothing; the next answered heartbeat brings a lease, or says what became of the attempt.
      return local.leased ? 'start' : 'nothing';
    case 'stop':
      if (local === undefined) return 'examine';
      if (local.kind === 'assigned' || local.kind === 'prepared') return 'discard';
      return local.kind === 'running' ? 'stop' : 'report';
    case 'forget':
      if (local?.kind === 'running') return 'kill';
      return local?.kind === 'ended' && !local.uploaded ? 'nothing' : 'remove';
    default: {
      const never: never = desired;
      return never;
    }
  }
}
