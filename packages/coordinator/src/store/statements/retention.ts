/** By age and number, each a piece at a time. */
export const selectEventPlaces = {
  sql: /* sql */ `
    select seq, subject, subject_seq, time_ms, octet_length(data) as data_bytes from events
    where seq > :since_seq order by seq limit :limit`,
};

/** `seqs` is a JSON array. */
export const deleteEvents = {
  sql: /* sql */ `delete from events where seq in (select value from json_each(:seqs))`,
};

export const selectEndedJobs = {
  sql: /* sql */ `
    select id, submit_seq, array_id, ended_at_ms from jobs indexed by jobs_by_end
    where ended_at_ms is not null and ended_at_ms < :before and (ended_at_ms, id) > (:after_ms, :after_id)
    order by ended_at_ms, id limit :limit`,
};

/** The end that is so many ends after another. */
export const selectLaterEnd = {
  sql: /* sql */ `
    select ended_at_ms, id from jobs indexed by jobs_by_end
    where ended_at_ms is not null and ended_at_ms < :before and (ended_at_ms, id) > (:after_ms, :after_id)
    order by ended_at_ms, id limit 1 offset :skipped`,
};

/** How many ends there are after another; there are not many more. */
export const selectLaterEnds = {
  sql: /* sql */ `
    select count(*) as ends from jobs indexed by jobs_by_end
    where ended_at_ms is not null and ended_at_ms < :before and (ended_at_ms, id) > (:after_ms, :after_id)`,
};

export const selectKeptCounts = {
  sql: /* sql */ `
    select (select count(*) from requests) as requests, (select count(*) from removed_jobs) as removed_jobs`,
};

/** Every row that is skipped is read. */
export const selectEndBeyond = {
  sql: /* sql */ `
    select ended_at_ms, id from jobs indexed by jobs_by_end
    where ended_at_ms is not null and (ended_at_ms, id) < (:before_ms, :before_id)
    order by ended_at_ms desc, id desc limit 1 offset :skipped`,
};

export const insertRemovedJob = {
  sql: /* sql */ `insert or replace into removed_jobs (id, removed_at_ms) values (:id, :now)`,
};

export const deleteAttemptsOfJob = { sql: /* sql */ `delete from attempts where job_id = :id` };

/** An active job is never deleted, no matter who asks. */
export const deleteEndedJob = {
  sql: /* sql */ `delete from jobs where id = :id and ended_at_ms is not null returning array_id`,
};

export const deleteEmptyArray = {
  sql: /* sql */ `
    delete from arrays where id = :id and filled = 1 and not exists (select 1 from jobs where array_id = :id)`,
};

export const deleteRequests = {
  sql: /* sql */ `
    delete from requests where request_id in (
      select request_id from requests where created_at_ms < :before order by created_at_ms limit :limit
    )`,
};

/** In no order: they are few, and none is waited for. */
export const deleteRemovedJobs = {
  sql: /* sql */ `
    delete from removed_jobs where id in (select id from removed_jobs where removed_at_ms < :before limit :limit)`,
};

export const selectRemovedJobs = {
  sql: /* sql */ `
    select removed_jobs.id from json_each(:ids) as wanted cross join removed_jobs on removed_jobs.id = wanted.value`,
};
