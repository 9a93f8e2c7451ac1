import type { Credential } from '../store.ts';

export const upsertCredential = {
  sql: /* sql */ `
    insert into credentials
      (id, kind, subject, secret_hash, created_at_ms, expires_at_ms, used_for, next_hash, last_used_at_ms, replaces)
    values
      (:id, :kind, :subject, :secret_hash, :created_at_ms, :expires_at_ms, :used_for, :next_hash, :last_used_at_ms, :replaces)
    on conflict (id) do update set
      secret_hash = excluded.secret_hash, expires_at_ms = excluded.expires_at_ms, used_for = excluded.used_for,
      created_at_ms = excluded.created_at_ms, next_hash = excluded.next_hash,
      last_used_at_ms = excluded.last_used_at_ms`,
  parameters: (credential: Credential) => ({
    id: credential.id,
    kind: credential.kind,
    subject: credential.subject,
    secret_hash: credential.secretHash,
    created_at_ms: credential.createdAtMs,
    expires_at_ms: credential.expiresAtMs,
    used_for: credential.usedFor,
    next_hash: credential.nextHash,
    last_used_at_ms: credential.lastUsedAtMs,
    replaces: credential.replaces ? 1 : 0,
  }),
};
