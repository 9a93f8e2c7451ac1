import type { Credential__Output } from '../gen/muster/v1/Credential.ts';
import type { CredentialView } from '../views.ts';

export function credentialFromWire(wire: Credential__Output): CredentialView {
  const { id, kind, createdAtMs, openCalls, used, replaces, node, lastUsedAtMs, expiresAtMs } = wire;
  // Member by member: what the decoder adds, such as the name of a field that is set, is none of a reader's business.
  return {
    ...{ id, kind, createdAtMs, openCalls, used, replaces },
    node: node || null,
    lastUsedAtMs: lastUsedAtMs ?? null,
    expiresAtMs: expiresAtMs ?? null,
  };
}
