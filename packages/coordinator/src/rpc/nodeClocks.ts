/** What the clocks in an agent's messages tell. */
import type { NodeName } from '@muster/common/ids';
import type { SentAt, TaskStatusCache } from '../agents/taskStatusCache.ts';
import type { TrustedClock } from '../clock/trustedClock.ts';

export interface NodeClockParts {
  readonly clock: Pick<TrustedClock, 'noteAgent' | 'agentStartedWallMs'>;
  readonly taskStatus: TaskStatusCache;
  /** The wall clock that is trusted. */
  readonly wallMs: () => number;
}

/** Notes the clocks of a node by a message that it has just sent. */
export function noteNodeClock(
  { clock, taskStatus, wallMs }: NodeClockParts,
  node: NodeName,
  bootId: string,
  sent: SentAt,
): void {
  taskStatus.noteClock(node, bootId, sent, wallMs(), clock.agentStartedWallMs(node, bootId));
  clock.noteAgent(node, bootId, sent.sentBoottimeMs);
}
