/** When a stream for uploads is opened again after it broke. Pure. */
import { status } from '@grpc/grpc-js';
import { type BackoffPolicy, backoffMs, withJitter } from '../retry.ts';

/** For one that is refused, as of a node that was removed: nothing changes before somebody has done something about it. */
const whileRefused: BackoffPolicy = { initialMs: 1_000, maxMs: 60_000 };
const refusals: ReadonlySet<unknown> = new Set([status.UNAUTHENTICATED, status.PERMISSION_DENIED]);

/**
 * @param usual for a coordinator that is away
 * @param failures in a row, with this one
 * @param error that broke the stream
 * @param chance uniform in [0, 1)
 */
export function uploadWaitMs(usual: BackoffPolicy, failures: number, error: unknown, chance: number): number {
  const isRefused = error instanceof Error && 'code' in error && refusals.has(error.code);
  return withJitter(backoffMs(isRefused ? whileRefused : usual, failures), chance);
}
