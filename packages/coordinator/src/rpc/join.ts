/** How a node gets its standing credential. */
import { MusterError } from '@muster/common/errors';
import type { JoinRequest__Output } from '@muster/common/gen/muster/v1/JoinRequest';
import type { AgentSession } from '../agents/session.ts';
import { hashToken } from '../auth/tokens.ts';
import type { Identity } from '../caller.ts';
import { joinNode, offerSecret } from '../commands/credentials.ts';
import type { Loop } from '../loop.ts';
import type { ClusterState } from '../state/state.ts';

export interface JoinParts {
  readonly state: ClusterState;
  readonly loop: Loop;
  /** Of agents' credentials, which are renewed before. */
  readonly credentialLifetimeMs: number;
}

/** Trades the join token for the credential that the agent has made. Repeating it with the same credential is fine. */
export async function join(
  parts: JoinParts,
  { nodeName, credential, joinToken }: JoinRequest__Output,
  caller: Identity,
): Promise<{ clusterId: string }> {
  if (caller.kind !== 'join' || caller.node !== nodeName) {
    throw new MusterError('permission_denied', `this join token is not for a node named "${nodeName}"`);
  }
  requireSecret(credential);
  const command = {
    node: caller.node,
    tokenHash: hashToken(joinToken),
    credentialHash: hashToken(credential),
    lifetimeMs: parts.credentialLifetimeMs,
  };
  await parts.loop.run(caller, (draft, nowMs) => joinNode(draft, command, nowMs));
  return { clusterId: parts.state.clusterId };
}

/** @throws {MusterError} `invalid` for what could be guessed */
function requireSecret(credential: string): void {
  if (/^muster_agent_[\w-]{43,128}$/.test(credential)) return;
  throw new MusterError('invalid', 'the credential is too short; agents make 32 random bytes');
}

/** An agent that was asked for another secret offers one. Offered again, it is taken again. */
export async function takeOffer(
  { loop }: Pick<JoinParts, 'loop'>,
  session: Pick<AgentSession, 'caller' | 'credentialTaken'>,
  credential: string,
): Promise<void> {
  requireSecret(credential);
  const { caller } = session;
  const nextHash = hashToken(credential);
  if (await loop.run(caller, (draft) => offerSecret(draft, caller.id, nextHash))) session.credentialTaken();
}
