import type { AttemptRow } from '../rows.ts';

/** Changes exactly one row, or the commit fails: an attempt that has ended never changes (G6 of docs/guarantees.md). */
export const upsertAttempt = {
  sql: /* sql */ `
    insert into attempts (job_id, number, state, body) values (:job_id, :number, :state, :body)
    on conflict (job_id, number) do update set state = excluded.state, body = excluded.body
    where attempts.state <> 'ended'`,
  parameters: (row: AttemptRow) => ({ ...row }),
};
