/** Jobs are found by project, by label and by when they were submitted. */
export const jobFilters = /* sql */ `
alter table jobs add column project text not null default '';
update jobs set project = coalesce(
  json_extract(case when spec = '' then (select arrays.spec from arrays where arrays.id = jobs.array_id) else spec end, '$.project'),
  'default');
create index jobs_by_project on jobs (project, submit_seq);
create index jobs_by_array_order on jobs (array_id, submit_seq) where array_id is not null;
create index jobs_by_submission on jobs (submitted_at_ms, submit_seq);

create table job_labels (
  name text not null,
  value text not null,
  submit_seq integer not null,
  job_id text not null,
  primary key (name, value, submit_seq)
) strict, without rowid;
create index job_labels_by_name on job_labels (name, submit_seq);
create index job_labels_by_job on job_labels (job_id);
insert into job_labels (name, value, submit_seq, job_id)
  select label.key, cast(label.value as text), jobs.submit_seq, jobs.id
  from jobs left join arrays on arrays.id = jobs.array_id,
    json_each(case when jobs.spec = '' then arrays.spec else jobs.spec end, '$.labels') as label;
`;
