/** Ids in a half-open range, which is how a prefix is searched by index. */
export const selectJobIds = {
  sql: /* sql */ `select id from jobs where id >= :from and id < :to order by id limit :limit`,
};

export const selectOutcomes = {
  sql: /* sql */ `select id, state from jobs where state in ('succeeded', 'failed', 'cancelled')`,
};
