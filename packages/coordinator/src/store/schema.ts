/**
 * The tables, and how a store of an earlier release gets them. `PRAGMA user_version` is the version of the schema. Steps only go
 * forward: what has been released is never edited, new steps are appended, and a version that is not known is refused.
 */
import { StoreError } from './store.ts';

/** The form with which compatibility begins. Versions before it existed in development only. */
const oldestVersion = 14;

const initialSchema = /* sql */ `
create table meta (
  name text primary key,
  value text not null
) strict, without rowid;

create table jobs (
  id text primary key,
  submit_seq integer not null unique,
  array_id text,
  name text not null,
  state text not null,
  last_attempt integer not null,
  submitted_at_ms integer not null,
  -- Empty for a job of an array, which shares the spec of the array.
  spec text not null,
  body text not null,
  -- null: it has not ended.
  ended_at_ms integer,
  array_index integer,
  requeued_from text,
  project text not null,
  submitter text not null
) strict, without rowid;
create index jobs_by_state on jobs (state, submit_seq);
-- Lists by name or array, in any state, read an index and never the jobs that they leave out.
create index jobs_by_array on jobs (array_id, state, submit_seq) where array_id is not null;
create index jobs_by_array_order on jobs (array_id, submit_seq) where array_id is not null;
create index jobs_by_name on jobs (name, state, submit_seq);
create index jobs_by_name_of_array on jobs (name, submit_seq) where array_id is not null;
create index jobs_by_member on jobs (array_id, array_index, submit_seq) where array_id is not null;
create index jobs_by_requeued on jobs (requeued_from, submit_seq) where requeued_from is not null;
create index jobs_by_end on jobs (ended_at_ms, id) where ended_at_ms is not null;
create index jobs_by_project on jobs (project, submit_seq);
create index jobs_by_submitter on jobs (submitter, submit_seq);
create index jobs_by_submission on jobs (submitted_at_ms, submit_seq);
-- Filters that match few jobs of many read this index alone, and not the rows, which are larger by far. A new job is appended to
-- it, and a change of state touches its newest pages.
create index jobs_in_order on jobs (submit_seq, state, name, project, submitter, submitted_at_ms);

create table job_labels (
  name text not null,
  value text not null,
  submit_seq integer not null,
  job_id text not null,
  primary key (name, value, submit_seq)
) strict, without rowid;
create index job_labels_by_name on job_labels (name, submit_seq);
create index job_labels_by_job on job_labels (job_id);

create table attempts (
  job_id text not null references jobs (id),
  number integer not null,
  state text not null,
  body text not null,
  primary key (job_id, number)
) strict, without rowid;

create table arrays (
  id text primary key,
  spec text not null,
  size integer not null,
  -- 1: all of its jobs are stored.
  filled integer not null,
  submitted_by text not null,
  submitted_at_ms integer not null,
  -- How far its jobs are stored, and the place of the first in the order of submission.
  next_position integer not null,
  first_submit_seq integer not null
) strict, without rowid;
create index arrays_unfilled on arrays (id) where filled = 0;

create table requests (
  request_id text primary key,
  digest text not null,
  job_ids text not null,
  array_id text,
  created_at_ms integer not null
) strict, without rowid;
create index requests_by_age on requests (created_at_ms);

-- The ids of what retention has removed.
create table removed_jobs (
  id text primary key,
  removed_at_ms integer not null
) strict, without rowid;

create table nodes (
  name text primary key,
  body text not null
) strict, without rowid;

create table credentials (
  id text primary key,
  kind text not null,
  subject text not null,
  secret_hash text not null unique,
  created_at_ms integer not null,
  expires_at_ms integer,
  used_for text,
  last_used_at_ms integer,
  replaces integer not null,
  next_hash text
) strict, without rowid;
create unique index credentials_by_next_hash on credentials (next_hash) where next_hash is not null;

create table events (
  seq integer primary key,
  id text not null unique,
  subject text not null,
  subject_seq integer not null,
  kind text not null,
  time_ms integer not null,
  data text not null,
  caller text not null,
  peer text not null,
  unique (subject, subject_seq)
) strict;
`;

/** A job's body has the names that the fields of a job have. */
const fieldNames = /* sql */ `
update jobs set body = json_remove(
  json_set(body, '$.excludedNodes', body -> '$.leftOut', '$.recentFailures', body -> '$.deaths'),
  '$.leftOut', '$.deaths');
`;

/** Users, projects, and tokens of users, which may be limited. */
const people = /* sql */ `
create table users (
  name text primary key,
  body text not null
) strict, without rowid;

create table projects (
  name text primary key,
  body text not null
) strict, without rowid;

alter table credentials add column label text not null default '';
-- null: it is not limited.
alter table credentials add column scope text;
`;

/** Secrets are encrypted with a key that the store does not have. */
const secretsTable = /* sql */ `
create table secrets (
  id text primary key,
  project text not null,
  name text not null,
  key_id text not null,
  sealed blob not null,
  created_at_ms integer not null,
  changed_at_ms integer not null,
  changed_by text not null,
  unique (project, name)
) strict, without rowid;
`;

/** The time at which an attempt was last found to hang has the name under which it is shown. */
const hungAt = /* sql */ `
update attempts set body = json_remove(json_set(body, '$.hungAtMs', body -> '$.hungToldAtMs'), '$.hungToldAtMs');
`;

/** Alerts: rules of users, what fires by them and by those that are built in, and what is silenced. */
const alerts = /* sql */ `
create table alerts (
  name text primary key,
  body text not null
) strict, without rowid;

create table alert_episodes (
  -- The alert, a slash, and what it fires for.
  id text primary key,
  body text not null
) strict, without rowid;

create table alert_silences (
  alert text primary key,
  body text not null
) strict, without rowid;
`;

/** Budgets of tokens, and the budget that each job counts in. */
const budgetsTable = /* sql */ `
create table budgets (
  id text primary key,
  body text not null
) strict, without rowid;

update credentials set scope = json_set(scope, '$.budget', null) where scope is not null;
update jobs set body = json_set(body, '$.budget', null);
`;

/** What traces need: when an attempt made its first step, and the operation outside that has submitted a job, empty if there is none. */
const traces = /* sql */ `
update attempts set body = json_set(body, '$.firstStepAtMs', null);
update jobs set body = json_set(body, '$.traceparent', null);
alter table events add column traceparent text not null default '';
`;

/** Sweeps, and their trials. */
const sweepTables = /* sql */ `
create table sweeps (
  id text primary key,
  body text not null
) strict, without rowid;

create table sweep_trials (
  sweep text not null,
  number integer not null,
  body text not null,
  primary key (sweep, number)
) strict, without rowid;
`;

/** Runs of pipelines, and their steps. */
const pipelineTables = /* sql */ `
create table pipelines (
  id text primary key,
  body text not null
) strict, without rowid;

create table pipeline_steps (
  run text not null,
  step text not null,
  number integer not null,
  body text not null,
  primary key (run, step, number)
) strict, without rowid;
`;

/** Evaluations of checkpoints, by the job that is evaluated. */
const evaluationsTable = /* sql */ `
create table evaluations (
  job text primary key,
  body text not null
) strict, without rowid;
`;

/** Triggers of pipelines. Runs before them were started by users. */
const triggersTable = /* sql */ `
create table triggers (
  name text primary key,
  body text not null
) strict, without rowid;

update pipelines set body = json_set(body, '$.triggers', json('[]'));
`;

/** The rows of trials have a further key where a trial runs once for each of several seeds. Older versions would take the first for all. */
const seedRuns = /* sql */ `
-- Tables stay as they are.
`;

/** Where each job is in its phases, which no job had before. */
const phases = /* sql */ `
update jobs set body = json_set(body, '$.phase', null);
`;

/** Rows that hold pages of the database, for commits on a full disk (`sqlite/ownSpace.ts`). */
const ownSpace = /* sql */ `
create table own_space (
  number integer primary key,
  filler blob not null
) strict;
`;

/** The continuity tokens of each node and its machine, which the next Hello of its agent brings. */
const nodeIdentities = /* sql */ `
update nodes set body = json_set(body, '$.tokens', null, '$.origin', null) where body <> '';
`;

/** The first makes version `oldestVersion` of an empty database, each further one the next version. */
const steps: readonly string[] = [
  initialSchema,
  fieldNames,
  people,
  secretsTable,
  hungAt,
  alerts,
  budgetsTable,
  traces,
  sweepTables,
  pipelineTables,
  evaluationsTable,
  triggersTable,
  seedRuns,
  phases,
  ownSpace,
  nodeIdentities,
];

export const schemaVersion = oldestVersion + steps.length - 1;

/** What brings a database from a version to the newest one, in order. @param version 0: an empty database */
export function migrationsFrom(
  version: number,
): readonly { readonly sql: string; readonly version: number }[] {
  const all = steps.map((sql, index) => ({ sql, version: oldestVersion + index }));
  return all.filter((step) => step.version > version);
}

/**
 * @param what the file of the store or backup
 * @param version 0: an empty database
 * @throws {StoreError} `unknown_schema`
 */
export function refuseUnknownSchema(what: string, version: number): void {
  if (version > schemaVersion) {
    throw new StoreError(
      'unknown_schema',
      `${what} was written by a newer Muster (schema ${version}; this one knows up to ${schemaVersion}). ` +
        'Upgrade Muster, or use another data directory.',
    );
  }
  if (version > 0 && version < oldestVersion) {
    throw new StoreError(
      'unknown_schema',
      `${what} was written before the first release of Muster (schema ${version}; this one knows ${oldestVersion} and later). ` +
        'Use another data directory.',
    );
  }
}
