/**
 * What to do next about one task, as a plain function of what should be and what is. The agent calls it whenever
 * either changes, after every connect and after its own restart; it never remembers what it was about to do.
 */
import type { TaskEnd } from '@muster/common/views';

/** What the coordinator wants. Absent: it has not said, so the task is left as it is. */
export type Desired =
  | { readonly kind: 'prepare' }
  | { readonly kind: 'run' }
  | { readonly kind: 'stop' }
  /** Recorded as ended, or superseded. */
  | { readonly kind: 'forget' };

/** What is. Absent: this agent has no record of the task. */
export type Local =
  /** Intent is on disk; nothing runs. `claimable`: the port is held and the claim may be sent. */
  | { readonly kind: 'prepared'; readonly claimable: boolean }
  /** Prepared, and a driver that was to start it did not answer: it may be running. */
  | { readonly kind: 'uncertain' }
  | { readonly kind: 'running' }
  /** Ended; `uploaded`: the coordinator has all of its output. */
  | { readonly kind: 'ended'; readonly exit: TaskEnd; readonly uploaded: boolean };

export type Action =
  /** Write the intent, hold the port, fetch the image. */
  | 'prepare'
  | 'claim'
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

export function reconcile(desired: Desired | undefined, local: Local | undefined): Action {
  if (desired !== undefined && local?.kind === 'uncertain') return 'examine';
  switch (desired?.kind) {
    case undefined:
      return 'nothing';
    case 'prepare':
      if (local === undefined) return 'prepare';
      if (local.kind === 'prepared') return local.claimable ? 'claim' : 'prepare';
      return 'report';
    case 'run':
      if (local === undefined) return 'examine';
      return local.kind === 'prepared' ? 'start' : 'report';
    case 'stop':
      if (local === undefined) return 'examine';
      if (local.kind === 'prepared') return 'discard';
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
