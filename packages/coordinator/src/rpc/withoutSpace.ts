/**
 * Agents stay connected while the coordinator's disk is full, because their tasks run on leases. What they report then is not stored.
 * Once there is space the session is ended: the agent connects again, and repeats the whole of its state.
 */
import { messageOf } from '@muster/common/errors';
import type { AgentMessage__Output } from '@muster/common/gen/muster/v1/AgentMessage';
import type { Logger } from '@muster/common/log';
import type { AgentSession } from '../agents/session.ts';
import type { AgentIdentity } from '../caller.ts';
import type { DiskReserve } from '../diskReserve.ts';
import type { Command, Loop } from '../loop.ts';
import type { ClusterState } from '../state/state.ts';
import { NoSpaceError } from '../store/noSpace.ts';

export interface WithoutSpaceParts {
  readonly loop: Pick<Loop, 'run'>;
  readonly state: ClusterState;
  readonly reserve: Pick<DiskReserve, 'requireSpace'>;
  readonly monotonicMs: () => number;
  readonly log: Logger;
}

/**
 * Runs the command of a Hello.
 * @returns false when the disk had no room for it, and the session of a known node continues with what is stored
 * @throws {MusterError} when it is refused
 */
export async function storesHello(
  { loop, state, log }: WithoutSpaceParts,
  { instanceId, bootId }: { readonly instanceId: string; readonly bootId: string },
  caller: AgentIdentity,
  command: Command<void>,
): Promise<boolean> {
  const { node } = caller;
  try {
    await loop.run(caller, command);
    return true;
  } catch (error) {
    const known = state.nodes.get(node);
    const isSame = known?.instanceId === instanceId && known.bootId === bootId;
    if (!(error instanceof NoSpaceError) || !isSame) throw error;
    log.warn({ node, error: messageOf(error) }, 'the state of an agent was not stored');
    return false;
  }
}

/** Handles a message of an agent. One that the disk has no room for does not end the session. */
export async function withoutSpace(
  { reserve, monotonicMs, log }: WithoutSpaceParts,
  session: AgentSession,
  message: AgentMessage__Output,
  handle: () => Promise<void>,
): Promise<void> {
  const { node } = session;
  try {
    await handle();
  } catch (error) {
    if (!(error instanceof NoSpaceError)) throw error;
    if (!session.hasMissed) log.warn({ node, error: messageOf(error) }, 'a report was not stored');
    session.hasMissed = true;
  }
  if (message.heartbeat == null || !session.hasMissed) return;
  try {
    reserve.requireSpace(monotonicMs());
  } catch {
    return;
  }
  session.end();
}
