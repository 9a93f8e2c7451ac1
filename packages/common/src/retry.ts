/** Retry policy as data plus a pure decider, for jobs and connections alike. */
export interface BackoffPolicy {
  readonly initialMs: number;
  readonly maxMs: number;
}

/**
 * Exponential backoff: initial × 2^(failures-1), at most max.
 * @param failures how many times it failed so far, ≥ 1
 * @returns milliseconds to wait before the next try
 */
export function backoffMs(policy: BackoffPolicy, failures: number): number {
  // 2^30 is far past any maximum; without the bound a long outage would overflow to Infinity × 0.
  const doubled = policy.initialMs * 2 ** Math.min(failures - 1, 30);
  return Math.min(doubled, policy.maxMs);
}

/**
 * Spreads many waiters over time, so that a coordinator that comes back is not met by all agents at once.
 * @param chance uniform in [0, 1)
 * @returns between half and all of `delayMs`
 */
export function withJitter(delayMs: number, chance: number): number {
  return delayMs * (0.5 + chance / 2);
}
