/**
 * Statements about nodes, users, projects, credentials, events, the counters that a coordinator continues from, and small values
 * by name.
 */
import { type Project, type TokenScope, type User, unlimitedScope } from '@muster/common/people';
import type { Budget } from '../../model.ts';
import type { EventRow, NodeRow } from '../rows.ts';
import type { Credential } from '../store.ts';

export const upsertNode = {
  sql: /* sql */ `
    insert into nodes (name, body) values (:name, :body)
    on conflict (name) do update set body = excluded.body`,
  parameters: (row: NodeRow) => ({ ...row }),
};

export const selectNodes = {
  sql: /* sql */ `select name, body from nodes where body <> '' order by name`,
};

/** Its row stays, empty: `selectSubjectPositions` needs it to find where the numbers of its events continue. */
export const removeNodeRow = {
  sql: /* sql */ `update nodes set body = '' where name = :name`,
};

export const upsertCredential = {
  sql: /* sql */ `
    insert into credentials
      (id, kind, subject, secret_hash, created_at_ms, expires_at_ms, used_for, next_hash, last_used_at_ms, replaces,
       label, scope)
    values
      (:id, :kind, :subject, :secret_hash, :created_at_ms, :expires_at_ms, :used_for, :next_hash, :last_used_at_ms, :replaces,
       :label, :scope)
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
    label: credential.label,
    scope: scopeText(credential.scope),
  }),
};

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
  readonly label: string;
  readonly scope: string | null;
}

function scopeText(scope: TokenScope): string | null {
  const isLimited = scope.projects !== null || scope.verbs !== null || scope.budget !== null;
  return isLimited ? JSON.stringify(scope) : null;
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
    label: row.label,
    scope: row.scope === null ? unlimitedScope : (JSON.parse(row.scope) as TokenScope),
  }),
};

export const deleteCredential = {
  sql: /* sql */ `delete from credentials where id = :id`,
};

interface NamedRow {
  readonly body: string;
}

export const upsertUser = {
  sql: /* sql */ `
    insert into users (name, body) values (:name, :body)
    on conflict (name) do update set body = excluded.body`,
  parameters: (user: User) => ({ name: user.name, body: JSON.stringify(user) }),
};

export const deleteUser = { sql: /* sql */ `delete from users where name = :name` };

export const selectUsers = {
  sql: /* sql */ `select body from users order by name`,
  fromRow: ({ body }: NamedRow) => JSON.parse(body) as User,
};

export const upsertProject = {
  sql: /* sql */ `
    insert into projects (name, body) values (:name, :body)
    on conflict (name) do update set body = excluded.body`,
  parameters: (project: Project) => ({ name: project.name, body: JSON.stringify(project) }),
};

export const selectProjects = {
  sql: /* sql */ `select body from projects order by name`,
  fromRow: ({ body }: NamedRow) => JSON.parse(body) as Project,
};

export const upsertBudget = {
  sql: /* sql */ `
    insert into budgets (id, body) values (:id, :body)
    on conflict (id) do update set body = excluded.body`,
  parameters: (budget: Budget) => ({ id: budget.id, body: JSON.stringify(budget) }),
};

export const deleteBudget = { sql: /* sql */ `delete from budgets where id = :id` };

export const selectBudgets = {
  sql: /* sql */ `select body from budgets order by id`,
  fromRow: ({ body }: NamedRow) => JSON.parse(body) as Budget,
};

/** A new event. The unique keys (seq; id; subject and subject_seq) refuse a number or an id that exists (G5 of docs/guarantees.md). */
export const insertEvent = {
  sql: /* sql */ `
    insert into events (seq, id, subject, subject_seq, kind, time_ms, data, caller, peer, traceparent)
    values (:seq, :id, :subject, :subject_seq, :kind, :time_ms, :data, :caller, :peer, :traceparent)`,
  parameters: (row: EventRow) => ({ ...row }),
};

/** Events after a position, in order. */
export const selectEvents = {
  sql: /* sql */ `select * from events where seq > :since_seq order by seq limit :limit`,
};

export const selectEventsOfSubject = {
  sql: /* sql */ `
    select * from events where subject = :subject and seq > :since_seq order by subject_seq limit :limit`,
};

/** The counters that a coordinator continues from. */
export const selectPositions = {
  sql: /* sql */ `
    select
      max(
        (select coalesce(max(submit_seq), 0) from jobs),
        (select coalesce(max(first_submit_seq + size - 1), 0) from arrays indexed by arrays_unfilled where filled = 0)
      ) as submit_seq,
      (select coalesce(max(seq), 0) from events) as event_seq`,
};

/** Last event number of every subject that can still get events; each is one step in an index. */
export const selectSubjectPositions = {
  sql: /* sql */ `
    with live (subject) as (
      select id from jobs where state in ('queued', 'starting', 'running', 'stopping')
      union all select name from nodes
      union all select :cluster
    )
    select subject, subject_seq from (
      select subject, (select max(subject_seq) from events where events.subject = live.subject) as subject_seq
      from live
    ) where subject_seq is not null`,
};

export const selectMeta = { sql: /* sql */ `select value from meta where name = :name` };

export const upsertMeta = {
  sql: /* sql */ `
    insert into meta (name, value) values (:name, :value)
    on conflict (name) do update set value = excluded.value`,
};
