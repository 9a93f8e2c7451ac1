/** What a user may call a job by, beside its id. */
export const selectMember = {
  sql: /* sql */ `
    select id from jobs where array_id = :array_id and array_index = :array_index order by submit_seq desc limit 1`,
};

export const selectNewestArray = {
  sql: /* sql */ `
    select array_id from jobs indexed by jobs_by_name_of_array
    where name = :name and array_id is not null order by submit_seq desc limit 1`,
};

/** Each of these skips from one value to the next, however many jobs share it. */
export const selectNextArrayId = {
  sql: /* sql */ `
    select array_id as value from jobs indexed by jobs_by_member
    where array_id is not null and array_id > :after and array_id >= :from order by array_id limit 1`,
};

export const selectNextName = {
  sql: /* sql */ `
    select name as value from jobs indexed by jobs_by_name where name > :after and name >= :from order by name limit 1`,
};
