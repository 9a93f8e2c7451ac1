/**
 * A task's right to run, as a plain function of answers and time. The coordinator gives it with the answer to a
 * question, and it counts from the moment that question was sent: the coordinator heard it later than that, so what it
 * thinks is over is over here first. All times are CLOCK_BOOTTIME, milliseconds.
 */
export interface HeldLease {
  /** When the question was sent whose answer gave it. */
  readonly askedMs: number;
  /** The task may run until then. null: it is never fenced. */
  readonly deadlineMs: number | null;
}

/** Of a task that nobody has said of that it may run. */
export const noLease: HeldLease = {
  askedMs: Number.NEGATIVE_INFINITY,
  deadlineMs: Number.NEGATIVE_INFINITY,
};

/**
 * The answer to the newest question counts, even if it takes time away; one to an older question came late.
 * @param leaseMs 0: never fenced
 */
export function renewed(held: HeldLease, askedMs: number, leaseMs: number): HeldLease {
  if (askedMs < held.askedMs) return held;
  return { askedMs, deadlineMs: leaseMs === 0 ? null : askedMs + leaseMs };
}

export function isLive({ deadlineMs }: HeldLease, nowMs: number): boolean {
  return deadlineMs === null || nowMs < deadlineMs;
}
