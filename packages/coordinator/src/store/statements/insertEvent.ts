import type { EventRow } from '../rows.ts';

/** The unique keys (seq; id; subject and subject_seq) keep the log gap-free and without repeats. */
export const insertEvent = {
  sql: /* sql */ `
    insert into events (seq, id, subject, subject_seq, kind, time_ms, data, caller, peer)
    values (:seq, :id, :subject, :subject_seq, :kind, :time_ms, :data, :caller, :peer)`,
  parameters: (row: EventRow) => ({ ...row }),
};
