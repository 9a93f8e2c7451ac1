/** Statements about the secrets of projects. */
import { type StoredSecret, secretId } from '../secrets.ts';

export interface SecretRow {
  readonly project: string;
  readonly name: string;
  readonly key_id: string;
  readonly sealed: Uint8Array;
  readonly created_at_ms: number;
  readonly changed_at_ms: number;
  readonly changed_by: string;
}

export const upsertSecret = {
  sql: /* sql */ `
    insert into secrets (id, project, name, key_id, sealed, created_at_ms, changed_at_ms, changed_by)
    values (:id, :project, :name, :key_id, :sealed, :created_at_ms, :changed_at_ms, :changed_by)
    on conflict (id) do update set
      key_id = excluded.key_id, sealed = excluded.sealed, changed_at_ms = excluded.changed_at_ms,
      changed_by = excluded.changed_by`,
  parameters: (secret: StoredSecret) => ({
    id: secretId(secret),
    project: secret.project,
    name: secret.name,
    key_id: secret.keyId,
    sealed: secret.sealed,
    created_at_ms: secret.createdAtMs,
    changed_at_ms: secret.changedAtMs,
    changed_by: secret.changedBy,
  }),
};

export const deleteSecret = {
  sql: /* sql */ `delete from secrets where id = :id`,
};

export const selectSecret = {
  sql: /* sql */ `select * from secrets where id = :id`,
  fromRow: (row: SecretRow): StoredSecret => ({
    project: row.project,
    name: row.name,
    keyId: row.key_id,
    sealed: row.sealed,
    createdAtMs: row.created_at_ms,
    changedAtMs: row.changed_at_ms,
    changedBy: row.changed_by,
  }),
};

export const selectSecrets = {
  sql: /* sql */ `select * from secrets where project = :project or :project is null order by project, name`,
};
