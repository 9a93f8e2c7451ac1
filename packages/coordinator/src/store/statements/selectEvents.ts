/** Events after a position, in order. */
export const selectEvents = {
  sql: /* sql */ `select * from events where seq > :since_seq order by seq limit :limit`,
};

export const selectEventsOfSubject = {
  sql: /* sql */ `
    select * from events where subject = :subject and seq > :since_seq order by subject_seq limit :limit`,
};
