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

/** What a list is restricted to; each combination is a statement of its own, so that each has its index. */
export interface JobListFilter {
  readonly byArray: boolean;
  readonly byName: boolean;
  readonly byState: boolean;
}

/** Ids and numbers only, newest first: an index holds all that is read. One state at a time, for the same reason. */
export function selectListedIds({ byArray, byName, byState }: JobListFilter): string {
  const conditions = [
    'submit_seq < :before',
    ...(byArray ? ['array_id = :array_id'] : []),
    // The jobs of an array share a name: with both given, the plus keeps SQLite from going by the name.
    ...(byName ? [`${byArray ? '+' : ''}name = :name`] : []),
    ...(byState ? ['state = :state'] : []),
  ];
  return /* sql */ `
    select id, submit_seq from jobs where ${conditions.join(' and ')} order by submit_seq desc limit :limit`;
}

export function newestAttemptRow(row: JobWithAttemptRow): AttemptRow | null {
  const { attempt_number: number, attempt_state: state, attempt_body: body } = row;
  if (number === null || state === null || body === null) return null;
  return { job_id: row.id, number, state, body };
}
