/** What `muster store restore` and `muster store accept` leave for the next coordinator, in the store itself. */
export const restoredMeta = 'restored';

export interface Restored {
  readonly how: 'restored' | 'accepted';
  /** Wall clock: when the backup was taken; null: there was none. */
  readonly takenAtMs: number | null;
  /** Wall clock: when that was done. */
  readonly atMs: number;
  /** Acknowledged once and not in the store; null: nobody knows. */
  readonly lostEvents: number | null;
  readonly lostJobs: number | null;
  /** The next event has a higher number. */
  readonly eventSeqMin: number;
}
