/** Lists by name or array, in any state, read an index and never the jobs that they leave out. */
export const indexesForLists = /* sql */ `
drop index jobs_by_array;
drop index jobs_by_name;
create index jobs_by_array on jobs (array_id, state, submit_seq) where array_id is not null;
create index jobs_by_name on jobs (name, state, submit_seq);
`;
