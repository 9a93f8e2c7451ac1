/** Decides whether a node answers, from the time of its last message. Pure: `now` is an argument. */
import { missedHeartbeatsMax } from '@muster/common/wire/protocol';

/**
 * @param lastHeardMs monotonic; null when the node has no connection
 * @param nowMs monotonic
 */
export function isOnline(lastHeardMs: number | null, nowMs: number, heartbeatIntervalMs: number): boolean {
  return lastHeardMs !== null && nowMs - lastHeardMs <= missedHeartbeatsMax * heartbeatIntervalMs;
}
