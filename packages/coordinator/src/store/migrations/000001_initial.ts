export const initialSchema = /* sql */ `
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
  spec text not null,
  body text not null
) strict, without rowid;
create index jobs_by_state on jobs (state, submit_seq);
create index jobs_by_array on jobs (array_id, submit_seq) where array_id is not null;
create index jobs_by_name on jobs (name, submit_seq);

create table attempts (
  job_id text not null references jobs (id),
  number integer not null,
  state text not null,
  body text not null,
  primary key (job_id, number)
) strict, without rowid;

create table nodes (
  name text primary key,
  body text not null
) strict, without rowid;

create table requests (
  request_id text primary key,
  digest text not null,
  job_ids text not null,
  array_id text,
  created_at_ms integer not null
) strict, without rowid;

create table credentials (
  id text primary key,
  kind text not null,
  subject text not null,
  secret_hash text not null unique,
  created_at_ms integer not null,
  expires_at_ms integer,
  used_for text
) strict, without rowid;

create table events (
  seq integer primary key,
  id text not null unique,
  subject text not null,
  subject_seq integer not null,
  kind text not null,
  time_ms integer not null,
  data text not null,
  unique (subject, subject_seq)
) strict;
`;
