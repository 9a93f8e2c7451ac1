/** `ids` is a JSON array. Later ones come last. */
export const selectSuccessors = {
  sql: /* sql */ `
    select jobs.requeued_from, jobs.id from json_each(:ids) as wanted cross join jobs indexed by jobs_by_requeued
    on jobs.requeued_from = wanted.value and jobs.requeued_from is not null order by jobs.submit_seq`,
};

export const selectArrayFailures = {
  sql: /* sql */ `
    select id from jobs as ended where array_id = :array_id and state in ('failed', 'cancelled')
    and not exists (select 1 from jobs where requeued_from = ended.id)`,
};
