export const selectAttempts = {
  sql: /* sql */ `select * from attempts where job_id = :job_id order by number`,
};
