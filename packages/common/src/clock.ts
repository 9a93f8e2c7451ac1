/** Time as an argument. The wall clock is for display, the monotonic clock for every decision (guarantee G10). */
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
