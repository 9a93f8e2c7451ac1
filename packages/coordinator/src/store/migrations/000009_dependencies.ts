/** Who runs a job again. From here on a spec may have an array, and come after arrays and jobs that failed. */
export const dependencies = /* sql */ `
alter table jobs add column requeued_from text;
update jobs set requeued_from = json_extract(body, '$.requeuedFrom')
  where json_extract(body, '$.requeuedFrom') is not null;
create index jobs_by_requeued on jobs (requeued_from, submit_seq) where requeued_from is not null;
`;
