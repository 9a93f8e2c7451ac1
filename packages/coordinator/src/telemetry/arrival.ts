/**
 * When a reading was taken, and whether it is news. A node's clock may be wrong and may jump: it is believed only where
 * nothing depends on it, and never can it hide what a node says from now on.
 */

/** Agents keep ten minutes while they are cut off. What seems later than that, and a margin, is of a clock that is behind. */
export const latenessMsMax = 15 * 60_000;

/** A clock that went back by more than this was set; by less, the message is an old one. */
export const staleMsMax = 60_000;

/**
 * @param nodeMs end of the interval by the node's wall clock
 * @param wallMs ours, now
 * @param monotonicMs ours, now
 * @returns end of the interval on our monotonic clock, at most now
 */
export function takenAtMs(nodeMs: number, wallMs: number, monotonicMs: number): number {
  const lateMs = wallMs - nodeMs;
  const isCredible = lateMs >= 0 && lateMs <= latenessMsMax;
  return Math.round(monotonicMs - (isCredible ? lateMs : 0));
}

/**
 * Is this neither a repetition nor older than what was heard before?
 * @param lastNodeMs of the newest one taken, by the node's clock; null: none
 */
export function isNewer(nodeMs: number, lastNodeMs: number | null): boolean {
  return lastNodeMs === null || nodeMs > lastNodeMs || nodeMs < lastNodeMs - staleMsMax;
}
