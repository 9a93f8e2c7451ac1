/** Ids in a half-open range, which is how a prefix is searched by index. */
export const selectJobIds = {
  sql: /* sql */ `select id from jobs where id >= :from and id < :to order by id limit :limit`,
};

/** `ids` is a JSON array. */
export const selectOutcomes = {
  sql: /* sql */ `
    select jobs.id, jobs.state from json_each(:ids) as wanted cross join jobs on jobs.id = wanted.value
    where jobs.state in ('succeeded', 'failed', 'cancelled')`,
};
