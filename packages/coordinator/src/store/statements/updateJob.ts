import type { JobRow } from '../rows.ts';

/**
 * Changes exactly one row, or the commit fails: a job that has ended never changes, and its attempt number never decreases (G6
 * of docs/guarantees.md).
 */
export const updateJob = {
  sql: /* sql */ `
    update jobs set state = :state, last_attempt = :last_attempt, ended_at_ms = :ended_at_ms, body = :body
    where id = :id
      and state not in ('succeeded', 'failed', 'cancelled')
      and last_attempt <= :last_attempt`,
  parameters: ({ id, state, last_attempt, ended_at_ms, body }: JobRow) => ({
    ...{ id, state, last_attempt, ended_at_ms, body },
  }),
};
