/**
 * Values ↔ columns. What queries need are columns; the rest is JSON text, which has the form of the values themselves. A change of
 * that form is a step of `schema.ts`. The attempt of an active job is stored once, in `attempts`; the job's state names its number.
 */
import type { EventKind } from '@muster/common/eventKinds';
import type { JobId } from '@muster/common/ids';
import { decodeJobSpec } from '@muster/common/spec/serialize';
import type { JobSpec } from '@muster/common/spec/types';
import type { Attempt, Job, JobState, Node, StoredEvent } from '../model.ts';
import { ownName, specText } from '../spec/ownSpec.ts';
import { StoreError } from './store.ts';

export interface JobRow {
  readonly id: string;
  readonly submit_seq: number;
  readonly array_id: string | null;
  readonly array_index: number | null;
  readonly requeued_from: string | null;
  readonly project: string;
  readonly submitter: string;
  readonly name: string;
  readonly state: string;
  readonly last_attempt: number;
  readonly submitted_at_ms: number;
  /** null: it has not ended. */
  readonly ended_at_ms: number | null;
  readonly spec: string;
  readonly body: string;
}

export interface AttemptRow {
  readonly job_id: string;
  readonly number: number;
  readonly state: string;
  readonly body: string;
}

/** The fields of a job that have no column, by their names. Its state is stored without the attempt. */
type JobBody = Omit<Job, 'id' | 'submitSeq' | 'spec' | 'submittedAtMs' | 'user' | 'state' | 'lastAttempt'> & {
  readonly state: JobState;
};

/** @param text of the spec; default: encoded. A change of a job does not write it, and need not have it. */
export function jobToRow(job: Job, text = specText(job.spec)): JobRow {
  const { id, submitSeq, spec, submittedAtMs, user, state, lastAttempt, ...rest } = job;
  const { attempt: _stored, ...stateOfBody } = { attempt: null, ...state };
  return {
    id,
    submit_seq: submitSeq,
    array_id: job.array?.id ?? null,
    array_index: job.array?.index ?? null,
    requeued_from: job.requeuedFrom,
    project: spec.project,
    submitter: user,
    name: ownName(job),
    state: state.kind,
    last_attempt: lastAttempt,
    submitted_at_ms: submittedAtMs,
    ended_at_ms: 'endedAtMs' in state ? state.endedAtMs : null,
    spec: text,
    body: JSON.stringify({ ...rest, state: stateOfBody }),
  };
}

/**
 * @param newest the attempt numbered `last_attempt`; needed for active states only
 * @param shared the spec of its array; undefined: it has its own
 */
export function jobFromRow(row: JobRow, newest: Attempt | null, shared?: JobSpec): Job {
  const body = JSON.parse(row.body) as JobBody;
  const { state } = body;
  const isActive = state.kind === 'starting' || state.kind === 'running' || state.kind === 'stopping';
  return {
    ...body,
    id: row.id as JobId,
    submitSeq: row.submit_seq,
    spec: shared ?? decodeJobSpec(row.spec),
    submittedAtMs: row.submitted_at_ms,
    user: row.submitter,
    state: isActive ? { ...state, attempt: activeAttempt(row, newest) } : state,
    lastAttempt: row.last_attempt,
  };
}

function activeAttempt({ id, state, last_attempt }: JobRow, newest: Attempt | null): Attempt {
  if (newest?.number === last_attempt) return newest;
  throw new StoreError(
    'damaged',
    `job ${id} is ${state} and its attempt ${last_attempt} is not in the store`,
  );
}

export function attemptToRow(jobId: JobId, attempt: Attempt): AttemptRow {
  return { job_id: jobId, number: attempt.number, state: attempt.state, body: JSON.stringify(attempt) };
}

export function attemptFromRow(row: AttemptRow): Attempt {
  return JSON.parse(row.body) as Attempt;
}

export interface NodeRow {
  readonly name: string;
  readonly body: string;
}

export function nodeToRow(node: Node): NodeRow {
  return { name: node.name, body: JSON.stringify(node) };
}

export function nodeFromRow(row: NodeRow): Node {
  return JSON.parse(row.body) as Node;
}

export interface EventRow {
  readonly seq: number;
  readonly id: string;
  readonly subject: string;
  readonly subject_seq: number;
  readonly kind: string;
  readonly time_ms: number;
  readonly data: string;
  readonly caller: string;
  readonly peer: string;
  /** Empty: it has none. */
  readonly traceparent: string;
}

export function eventToRow(event: StoredEvent): EventRow {
  return {
    seq: event.seq,
    id: event.id,
    subject: event.subject,
    subject_seq: event.subjectSeq,
    kind: event.kind,
    time_ms: event.timeMs,
    data: JSON.stringify(event.data),
    caller: event.by,
    peer: event.peer,
    traceparent: event.traceparent ?? '',
  };
}

export function eventFromRow(row: EventRow): StoredEvent {
  return {
    seq: row.seq,
    id: row.id,
    subject: row.subject,
    subjectSeq: row.subject_seq,
    kind: row.kind as EventKind,
    timeMs: row.time_ms,
    data: JSON.parse(row.data) as Record<string, unknown>,
    by: row.caller,
    peer: row.peer,
    ...(row.traceparent === '' ? {} : { traceparent: row.traceparent }),
  };
}
