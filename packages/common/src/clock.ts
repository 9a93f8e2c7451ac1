/** Time as an argument: wall clock for display, monotonic for every decision (wall-clock jumps change no decision). */
export interface Clock {
  /** Epoch milliseconds. Display and records only. */
  wallMs(): number;
  /** Milliseconds since an arbitrary start; never goes back. */
  monotonicMs(): number;
}

export const systemClock: Clock = {
  wallMs: () => Date.now(),
  monotonicMs: () => performance.now(),
};
