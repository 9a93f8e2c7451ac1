import type { Credential__Output } from '../gen/muster/v1/Credential.ts';
import type { CredentialView } from '../views.ts';

export function credentialFromWire(wire: Credential__Output): CredentialView {
  const { node, lastUsedAtMs, expiresAtMs, ...credential } = wire;
  return {
    ...credential,
    node: node || null,
    lastUsedAtMs: lastUsedAtMs ?? null,
    expiresAtMs: expiresAtMs ?? null,
  };
}
