/** The counters a coordinator goes on from. */
export const selectPositions = {
  sql: /* sql */ `
    select
      max(
        (select coalesce(max(submit_seq), 0) from jobs),
        (select coalesce(max(first_submit_seq + size - 1), 0) from arrays indexed by arrays_unfilled where filled = 0)
      ) as submit_seq,
      (select coalesce(max(seq), 0) from events) as event_seq`,
};

/** Last event number of every subject that can still get events; each is one step in an index. */
export const selectSubjectPositions = {
  sql: /* sql */ `
    with live (subject) as (
      select id from jobs where state in ('queued', 'starting', 'running', 'stopping')
      union all select name from nodes
      union all select :cluster
    )
    select subject, subject_seq from (
      select subject, (select max(subject_seq) from events where events.subject = live.subject) as subject_seq
      from live
    ) where subject_seq is not null`,
};
