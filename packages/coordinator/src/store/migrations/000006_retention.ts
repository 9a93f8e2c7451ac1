/** What retention looks for, by age, and the ids of what it has removed. */
export const retention = /* sql */ `
alter table jobs add column ended_at_ms integer;
update jobs set ended_at_ms = json_extract(body, '$.state.endedAtMs')
  where state in ('succeeded', 'failed', 'cancelled');
create index jobs_by_end on jobs (ended_at_ms, id) where ended_at_ms is not null;
create index requests_by_age on requests (created_at_ms);
create table removed_jobs (
  id text primary key,
  removed_at_ms integer not null
) strict, without rowid;
`;
