import type { Credential } from '../store.ts';

interface CredentialRow {
  readonly id: string;
  readonly kind: Credential['kind'];
  readonly subject: string;
  readonly secret_hash: string;
  readonly created_at_ms: number;
  readonly expires_at_ms: number | null;
  readonly used_for: string | null;
  readonly next_hash: string | null;
  readonly last_used_at_ms: number | null;
  readonly replaces: number;
}

export const selectCredentials = {
  sql: /* sql */ `select * from credentials order by id`,
  fromRow: (row: CredentialRow): Credential => ({
    id: row.id,
    kind: row.kind,
    subject: row.subject,
    secretHash: row.secret_hash,
    createdAtMs: row.created_at_ms,
    expiresAtMs: row.expires_at_ms,
    usedFor: row.used_for,
    nextHash: row.next_hash,
    lastUsedAtMs: row.last_used_at_ms,
    replaces: row.replaces === 1,
  }),
};
