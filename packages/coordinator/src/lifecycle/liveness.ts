/** Decides whether a node answers, from the time of its last message. Pure: `now` is an argument. */

/** Heartbeats missed before a node counts as silent: one lost or late message must not stop new work. */
const missedHeartbeats = 3;

/**
 * @param lastHeardMs monotonic; null when the node has no connection
 * @param nowMs monotonic
 */
export function isOnline(lastHeardMs: number | null, nowMs: number, heartbeatIntervalMs: number): boolean {
  return lastHeardMs !== null && nowMs - lastHeardMs <= missedHeartbeats * heartbeatIntervalMs;
}
