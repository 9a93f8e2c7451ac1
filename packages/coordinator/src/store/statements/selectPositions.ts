/** The counters a coordinator goes on from. */
export const selectPositions = {
  sql: /* sql */ `
    select
      (select coalesce(max(submit_seq), 0) from jobs) as submit_seq,
      (select coalesce(max(seq), 0) from events) as event_seq`,
};

/** Last event number of every subject that can still get events. */
export const selectSubjectPositions = {
  sql: /* sql */ `
    select subject, max(subject_seq) as subject_seq from events
    where subject in (select id from jobs where state in ('queued', 'starting', 'running', 'stopping'))
       or subject in (select name from nodes)
    group by subject`,
};
