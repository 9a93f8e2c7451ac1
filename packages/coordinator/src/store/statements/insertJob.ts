import type { JobRow } from '../rows.ts';

/** A new job. A repeated id is an error of ours and fails the commit (ids are never reused). */
export const insertJob = {
  sql: /* sql */ `
    insert into jobs (id, submit_seq, array_id, array_index, requeued_from, project, submitter, name,
      state, last_attempt, submitted_at_ms, ended_at_ms, spec, body)
    values (:id, :submit_seq, :array_id, :array_index, :requeued_from, :project, :submitter, :name,
      :state, :last_attempt, :submitted_at_ms, :ended_at_ms, :spec, :body)`,
  parameters: (row: JobRow) => ({ ...row }),
};
