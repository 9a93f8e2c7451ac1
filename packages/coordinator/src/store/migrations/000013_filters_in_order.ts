/**
 * What jobs are listed by, in the order of their submission. Filters that match few jobs of many read this index alone, and not
 * the rows, which are larger by far. A new job is appended to it, and a change of state touches its newest pages.
 */
export const filtersInOrder = /* sql */ `
create index jobs_in_order on jobs (submit_seq, state, name, project, submitter, submitted_at_ms);
`;
