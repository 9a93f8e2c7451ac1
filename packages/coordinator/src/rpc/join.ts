/** How a node gets its standing credential. */
import { MusterError } from '@muster/common/errors';
import type { JoinRequest__Output } from '@muster/common/gen/muster/v1/JoinRequest';
import { hashToken } from '../auth/tokens.ts';
import type { Identity } from '../caller.ts';
import type { Loop } from '../loop.ts';
import type { ClusterState } from '../state.ts';

export interface JoinParts {
  readonly state: ClusterState;
  readonly loop: Loop;
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
  if (!/^muster_agent_[\w-]{43,128}$/.test(credential)) {
    throw new MusterError('invalid', 'the credential is too short; agents make 32 random bytes');
  }
  const credentialHash = hashToken(credential);
  await parts.loop.run(caller, (draft, nowMs) => {
    const token = draft.credential(hashToken(joinToken));
    if (token?.kind !== 'join' || token.subject !== nodeName)
      throw new MusterError('unauthenticated', `the join token is not for a node named "${nodeName}"`);
    if (token.usedFor === credentialHash) return;
    if (token.usedFor !== null) {
      throw new MusterError(
        'already_exists',
        `this join token was used already; make another: muster token create ${nodeName}`,
      );
    }
    if (draft.hasAgent(nodeName)) {
      throw new MusterError(
        'already_exists',
        `a node named ${nodeName} has joined already; choose another name: muster token create NAME`,
      );
    }
    // The store would refuse it too, but only by failing the whole commit.
    if (draft.credential(credentialHash) !== undefined) {
      throw new MusterError(
        'already_exists',
        `the credential of ${nodeName} belongs to another node: each agent needs a data directory of its own`,
      );
    }
    draft.putCredential({ ...token, usedFor: credentialHash });
    draft.putCredential({
      id: `agent:${nodeName}`,
      kind: 'agent',
      subject: nodeName,
      secretHash: credentialHash,
      createdAtMs: nowMs,
      expiresAtMs: null,
      usedFor: null,
    });
  });
  return { clusterId: parts.state.clusterId };
}
