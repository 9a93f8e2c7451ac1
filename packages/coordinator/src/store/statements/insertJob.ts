import type { JobRow } from '../rows.ts';

/** A new job. An id that exists fails the commit: no id is given to two jobs (G1 of docs/guarantees.md). */
export const insertJob = {
  sql: /* sql */ `
    insert into jobs (id, submit_seq, array_id, array_index, requeued_from, project, submitter, name,
      state, last_attempt, submitted_at_ms, ended_at_ms, spec, body)
    values (:id, :submit_seq, :array_id, :array_index, :requeued_from, :project, :submitter, :name,
      :state, :last_attempt, :submitted_at_ms, :ended_at_ms, :spec, :body)`,
  parameters: (row: JobRow) => ({ ...row }),
};
