import type { EventRow } from '../rows.ts';

/** A new event. The unique keys (seq; id; subject and subject_seq) refuse a number or an id that exists (G5 of docs/guarantees.md). */
export const insertEvent = {
  sql: /* sql */ `
    insert into events (seq, id, subject, subject_seq, kind, time_ms, data, caller, peer)
    values (:seq, :id, :subject, :subject_seq, :kind, :time_ms, :data, :caller, :peer)`,
  parameters: (row: EventRow) => ({ ...row }),
};
