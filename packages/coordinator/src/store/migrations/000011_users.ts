/**
 * Jobs are found by who submitted them. Whoever could submit had the admin token until now. The list of jobs that this index is
 * for is bounded by its limit, whatever else is asked for.
 */
export const users = /* sql */ `
alter table jobs add column submitter text not null default 'admin';
create index jobs_by_submitter on jobs (submitter, submit_seq);
`;
