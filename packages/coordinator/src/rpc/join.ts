/** How a node gets what its agent proves itself by: a certificate for a key of the node, or without TLS a secret. */
import { MusterError } from '@muster/common/errors';
import type { JoinRequest__Output } from '@muster/common/gen/muster/v1/JoinRequest';
import type { JoinResponse } from '@muster/common/gen/muster/v1/JoinResponse';
import type { NodeName } from '@muster/common/ids';
import type { AgentSession } from '../agents/session.ts';
import { hashToken } from '../auth/tokens.ts';
import type { Identity } from '../caller.ts';
import { joinNode, offerSecret } from '../commands/credentials.ts';
import type { Loop } from '../loop.ts';
import type { ClusterState } from '../state/state.ts';
import type { NodeCertificates } from '../tls/nodeCertificates.ts';

export interface JoinParts {
  readonly state: ClusterState;
  readonly loop: Loop;
  /** Of agents' credentials, which are renewed before. */
  readonly credentialLifetimeMs: number;
  /** null: there is no TLS, and agents make secrets. */
  readonly nodeCertificates: NodeCertificates | null;
}

/** Trades the join token for the credential that the agent has made. Repeating it with the same key or secret is fine. */
export async function join(
  parts: JoinParts,
  { nodeName, credential, joinToken }: JoinRequest__Output,
  caller: Identity,
): Promise<JoinResponse> {
  if (caller.kind !== 'join' || caller.node !== nodeName) {
    throw new MusterError('permission_denied', `this join token is not for a node named "${nodeName}"`);
  }
  const { node } = caller;
  const offered = await offeredProof(parts, credential);
  const command = {
    node,
    tokenHash: hashToken(joinToken),
    credentialHash: offered.hash,
    lifetimeMs: parts.credentialLifetimeMs,
  };
  const expiresAtMs = await parts.loop.run(caller, (draft, nowMs) => joinNode(draft, command, nowMs));
  const certificate = await offered.certify(node, expiresAtMs);
  return { clusterId: parts.state.clusterId, ...(certificate === null ? {} : { certificate }) };
}

interface OfferedProof {
  /** By which the credential is found again. */
  readonly hash: string;
  /** @returns null: it needs no certificate */
  readonly certify: (node: NodeName, untilMs: number) => Promise<string | null>;
}

/** @throws {MusterError} `invalid` for a secret that could be guessed, and for a request that certifies nothing */
async function offeredProof(
  { nodeCertificates }: Pick<JoinParts, 'nodeCertificates'>,
  credential: string,
): Promise<OfferedProof> {
  if (nodeCertificates !== null) {
    const key = await nodeCertificates.keyOf(credential);
    return { hash: key.hash, certify: (node, untilMs) => nodeCertificates.certify(key, node, untilMs) };
  }
  if (!/^muster_agent_[\w-]{43,128}$/.test(credential))
    throw new MusterError('invalid', 'the credential is too short; agents make 32 random bytes');
  return { hash: hashToken(credential), certify: () => Promise.resolve(null) };
}

/** An agent that was asked for another key or secret offers one. Offered again, it is taken again. */
export async function takeOffer(
  parts: Pick<JoinParts, 'loop' | 'credentialLifetimeMs' | 'nodeCertificates'>,
  session: Pick<AgentSession, 'caller' | 'credentialTaken'>,
  credential: string,
): Promise<void> {
  const { caller } = session;
  const { hash, certify } = await offeredProof(parts, credential);
  const untilMs = await parts.loop.run(caller, (draft, nowMs) =>
    offerSecret(draft, caller.id, hash) ? nowMs + parts.credentialLifetimeMs : null,
  );
  if (untilMs !== null) session.credentialTaken(await certify(caller.node, untilMs));
}
