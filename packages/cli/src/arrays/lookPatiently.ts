/** Looking at a whole array again and again, until its last job has ended. */
import type { MusterApi } from '@muster/common/wire/client';
import type { Context } from '../context.ts';
import { awayText } from '../jobs/attend.ts';
import type { Progress } from '../output/progress.ts';
import { outagePatienceMs, type Session } from '../session.ts';

/** A look at a large array is work for the coordinator: waiting this many times as long bounds it to a fifth of the time. */
const restsPerLook = 4;
const restMsMin = 500;

export interface Look<T> {
  readonly seen: T;
  /** How long to wait before the next look. */
  readonly restMs: number;
}

/**
 * One look, across restarts of the coordinator.
 * @throws {MusterError} of the coordinator, or when it was away for too long
 */
export async function lookPatiently<T>(
  { clock }: Context,
  session: Session,
  { progress, abort }: { readonly progress: Progress; readonly abort: AbortSignal },
  read: (api: MusterApi) => Promise<T>,
): Promise<Look<T>> {
  const beganMs = clock.monotonicMs();
  const onAway = (error: Error) => progress.show(awayText(error));
  const seen = await session.retrying(read, { patienceMs: outagePatienceMs, onAway, abort });
  return { seen, restMs: Math.max(restMsMin, restsPerLook * (clock.monotonicMs() - beganMs)) };
}
