/**
 * The lease of a task, as a plain function of answers and time (G2 of docs/guarantees.md). The coordinator grants it with the
 * answer to a question. It counts from the moment at which that question was sent. The coordinator counts from the later
 * moment at which it received the question, so a lease ends here first. All times are CLOCK_BOOTTIME, in milliseconds (G10).
 */
export interface HeldLease {
  /** When the question was sent whose answer granted the lease. */
  readonly askedMs: number;
  /** Until when the task may run. null: it is never fenced. */
  readonly deadlineMs: number | null;
}

/** The lease of a task that was never granted one. */
export const noLease: HeldLease = {
  askedMs: Number.NEGATIVE_INFINITY,
  deadlineMs: Number.NEGATIVE_INFINITY,
};

/**
 * Applies an answer. The answer to the newest question counts, even if it shortens the lease. An answer to an older question
 * has arrived late, and changes nothing.
 * @param leaseMs 0: never fenced
 */
export function renewed(held: HeldLease, askedMs: number, leaseMs: number): HeldLease {
  if (askedMs < held.askedMs) return held;
  return { askedMs, deadlineMs: leaseMs === 0 ? null : askedMs + leaseMs };
}

export function isLive({ deadlineMs }: HeldLease, nowMs: number): boolean {
  return deadlineMs === null || nowMs < deadlineMs;
}
