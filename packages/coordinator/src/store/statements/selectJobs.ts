import type { AttemptRow, JobRow } from '../rows.ts';

/** A job beside its newest attempt; the attempt's columns are null before the first. */
export type JobWithAttemptRow = JobRow & {
  readonly attempt_number: number | null;
  readonly attempt_state: string | null;
  readonly attempt_body: string | null;
};

const jobWithNewestAttempt = /* sql */ `
  select jobs.*, attempts.number as attempt_number, attempts.state as attempt_state, attempts.body as attempt_body
  from jobs left join attempts on attempts.job_id = jobs.id and attempts.number = jobs.last_attempt`;

export const selectActiveJobs = {
  sql: /* sql */ `${jobWithNewestAttempt}
    where jobs.state in ('queued', 'starting', 'running', 'stopping') order by jobs.submit_seq`,
};

export const selectJob = { sql: /* sql */ `${jobWithNewestAttempt} where jobs.id = :id` };

/** Newest first. A parameter that is null does not restrict; `states` is a JSON array, empty for all. */
export const selectJobList = {
  sql: /* sql */ `${jobWithNewestAttempt}
    where (:states = '[]' or jobs.state in (select value from json_each(:states)))
      and (:array_id is null or jobs.array_id = :array_id)
      and (:name is null or jobs.name = :name)
      and (:before is null or jobs.submit_seq < :before)
    order by jobs.submit_seq desc limit :limit`,
};

export function newestAttemptRow(row: JobWithAttemptRow): AttemptRow | null {
  const { attempt_number: number, attempt_state: state, attempt_body: body } = row;
  if (number === null || state === null || body === null) return null;
  return { job_id: row.id, number, state, body };
}
