/** Short calls of commands that change something, through a restart of the coordinator. */
import type { MusterApi } from '@muster/common/wire/client';
import type { Context } from './context.ts';
import { startProgress } from './output/screen.ts';
import { type Session, submitPatienceMs } from './session.ts';

/**
 * Repeats the call while the coordinator is away, and shows that on a terminal.
 * @param call safe to repeat
 */
export async function patiently<T>(
  session: Session,
  { io, clock }: Context,
  call: (api: MusterApi) => Promise<T>,
): Promise<T> {
  const progress = startProgress(io.stderr, clock);
  try {
    return await session.retrying(call, {
      patienceMs: submitPatienceMs,
      onAway: ({ message }) => progress.show(`${message}; reconnecting`),
    });
  } finally {
    progress.end();
  }
}
