/** Statements about jobs, their attempts, arrays, labels and requests. What they refuse is refused whatever the code above them does. */

import type { ArrayId, JobId } from '@muster/common/ids';
import { decodeJobSpec } from '@muster/common/spec/serialize';
import type { Caller } from '../../caller.ts';
import { specText } from '../../spec/ownSpec.ts';
import type { AttemptRow, JobRow } from '../rows.ts';
import type { JobArrayRecord, RequestRecord } from '../store.ts';

/** A new job. An id that exists fails the commit: no id is given to two jobs (G1 of docs/guarantees.md). */
export const insertJob = {
  sql: /* sql */ `
    insert into jobs (id, submit_seq, array_id, array_index, requeued_from, project, submitter, name,
      state, last_attempt, submitted_at_ms, ended_at_ms, spec, body)
    values (:id, :submit_seq, :array_id, :array_index, :requeued_from, :project, :submitter, :name,
      :state, :last_attempt, :submitted_at_ms, :ended_at_ms, :spec, :body)`,
  parameters: (row: JobRow) => ({ ...row }),
};

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
    id,
    state,
    last_attempt,
    ended_at_ms,
    body,
  }),
};

/** Changes exactly one row, or the commit fails: an attempt that has ended never changes (G6 of docs/guarantees.md). */
export const upsertAttempt = {
  sql: /* sql */ `
    insert into attempts (job_id, number, state, body) values (:job_id, :number, :state, :body)
    on conflict (job_id, number) do update set state = excluded.state, body = excluded.body
    where attempts.state <> 'ended'`,
  parameters: (row: AttemptRow) => ({ ...row }),
};

export const selectAttempts = {
  sql: /* sql */ `select * from attempts where job_id = :job_id order by number`,
};

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

export const selectJobSpec = { sql: /* sql */ `select spec from jobs where id = :id` };

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

/** `ids` is a JSON array. Later ones come last. */
export const selectSuccessors = {
  sql: /* sql */ `
    select jobs.requeued_from, jobs.id from json_each(:ids) as wanted cross join jobs indexed by jobs_by_requeued
    on jobs.requeued_from = wanted.value and jobs.requeued_from is not null order by jobs.submit_seq`,
};

export const selectArrayFailures = {
  sql: /* sql */ `
    select id from jobs as ended where array_id = :array_id and state in ('failed', 'cancelled')
    and not exists (select 1 from jobs where requeued_from = ended.id)`,
};

/** Ids in a half-open range, which is how a prefix is searched by index. */
export const selectJobIds = {
  sql: /* sql */ `select id from jobs where id >= :from and id < :to order by id limit :limit`,
};

/** `ids` is a JSON array. */
export const selectOutcomes = {
  sql: /* sql */ `
    select jobs.id, jobs.state from json_each(:ids) as wanted cross join jobs on jobs.id = wanted.value
    where jobs.state in ('succeeded', 'failed', 'cancelled')`,
};

interface ArrayRow {
  readonly id: string;
  readonly spec: string;
  readonly size: number;
  readonly submitted_by: string;
  readonly submitted_at_ms: number;
  readonly next_position: number;
  readonly first_submit_seq: number;
}

export const insertArray = {
  sql: /* sql */ `
    insert into arrays (id, spec, size, filled, submitted_by, submitted_at_ms, next_position, first_submit_seq)
    values (:id, :spec, :size, :is_filled, :submitted_by, :submitted_at_ms, :filled, :first_submit_seq)`,
  parameters: ({ id, spec, size, filled, by, submittedAtMs, firstSubmitSeq }: JobArrayRecord) => ({
    id,
    spec: specText(spec),
    size,
    filled,
    is_filled: Number(filled === size),
    first_submit_seq: firstSubmitSeq,
    submitted_by: JSON.stringify(by),
    submitted_at_ms: submittedAtMs,
  }),
};

/** Changes exactly one row, or the commit fails. */
export const updateArrayProgress = {
  sql: /* sql */ `
    update arrays set filled = :is_filled, next_position = :filled
    where id = :id and filled = 0 and next_position <= :filled`,
  parameters: ({ id, size, filled }: JobArrayRecord) => ({
    id,
    filled,
    is_filled: Number(filled === size),
  }),
};

export const selectArraySpec = { sql: /* sql */ `select spec from arrays where id = :id` };

export const selectUnfilledArrays = {
  sql: /* sql */ `
    select * from arrays indexed by arrays_unfilled where filled = 0 order by id`,
  fromRow: (row: ArrayRow): JobArrayRecord => ({
    id: row.id as ArrayId,
    spec: decodeJobSpec(row.spec),
    size: row.size,
    filled: row.next_position,
    early: new Set(),
    firstSubmitSeq: row.first_submit_seq,
    by: JSON.parse(row.submitted_by) as Caller,
    submittedAtMs: row.submitted_at_ms,
  }),
};

/** Of its jobs with this index or a higher one. */
export const selectStoredIndexes = {
  sql: /* sql */ `
    select array_index from jobs indexed by jobs_by_member
    where array_id is not null and array_id = :array_id and array_index >= :from_index`,
};

export const insertRequest = {
  sql: /* sql */ `
    insert into requests (request_id, digest, job_ids, array_id, created_at_ms)
    values (:request_id, :digest, :job_ids, :array_id, :created_at_ms)`,
  parameters: (request: RequestRecord) => ({
    request_id: request.requestId,
    digest: request.digest,
    job_ids: JSON.stringify(request.jobIds),
    array_id: request.arrayId,
    created_at_ms: request.createdAtMs,
  }),
};

interface RequestRow {
  readonly request_id: string;
  readonly digest: string;
  readonly job_ids: string;
  readonly array_id: string | null;
  readonly created_at_ms: number;
}

export const selectRequest = {
  sql: /* sql */ `select * from requests where request_id = :request_id`,
  fromRow: (row: RequestRow): RequestRecord => ({
    requestId: row.request_id,
    digest: row.digest,
    jobIds: JSON.parse(row.job_ids) as JobId[],
    arrayId: row.array_id,
    createdAtMs: row.created_at_ms,
  }),
};
