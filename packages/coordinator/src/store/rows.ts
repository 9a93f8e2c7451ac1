/**
 * Values ↔ columns. What queries need are columns; the rest is JSON text, to which later versions only add.
 * The attempt of an active job is stored once, in `attempts`; the job's state names its number.
 */

import { causeOf } from '@muster/common/cause';
import type { Checkpoint } from '@muster/common/checkpoints';
import type { EventKind } from '@muster/common/eventKinds';
import { bareGpu, emptyInventory } from '@muster/common/hardware';
import type { ArrayId, JobId, NodeName } from '@muster/common/ids';
import { decodeJobSpec } from '@muster/common/spec/serialize';
import type { JobSpec } from '@muster/common/spec/types';
import type { Cause, ExcludedNode, TaskEnd } from '@muster/common/views';
import { type Attempt, type Job, type JobState, type Node, type StoredEvent, type Task } from '../model.ts';
import { ownName } from '../spec/ownSpec.ts';
import { specText } from '../spec/specText.ts';
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

type StoredCheckpoint = Omit<Checkpoint, 'reread'> & Partial<Pick<Checkpoint, 'reread'>>;

/** The part of a job that changes, except what has a column. */
interface JobBody {
  readonly array: { readonly id: string; readonly index: number; readonly size: number } | null;
  readonly requeuedFrom: string | null;
  readonly failures: number;
  readonly failedStarts: number;
  /** `excludedNodes` of the job. Versions that excluded no nodes did not write it. */
  readonly leftOut?: readonly ExcludedNode[];
  /** From here on: absent in what versions wrote that knew no checkpoints. */
  readonly checkpoints?: readonly StoredCheckpoint[];
  readonly resumeChoice?: Job['resumeChoice'];
  readonly checkpointJobId?: string;
  /** Absent: of a version that let every job save where it liked. */
  readonly lineage?: readonly string[];
  readonly resumedFrom?: Job['resumedFrom'];
  /** `recentFailures` of the job. */
  readonly deaths?: Job['recentFailures'];
  readonly failuresInRow?: number;
  readonly preemptions?: number;
  readonly batchScale?: number;
  readonly lrScale?: number;
  readonly extraRuntimeMs?: number;
  readonly ledger?: Job['ledger'];
  /** The state without its attempt. */
  readonly state: Readonly<Record<string, unknown>> & { readonly kind: string };
}

export function jobToRow(job: Job): JobRow {
  const { attempt: _stored, ...state } = { attempt: null, ...job.state };
  const body: JobBody = {
    array: job.array,
    requeuedFrom: job.requeuedFrom,
    failures: job.failures,
    failedStarts: job.failedStarts,
    leftOut: job.excludedNodes,
    checkpoints: job.checkpoints,
    resumeChoice: job.resumeChoice,
    checkpointJobId: job.checkpointJobId,
    lineage: job.lineage,
    resumedFrom: job.resumedFrom,
    deaths: job.recentFailures,
    failuresInRow: job.failuresInRow,
    preemptions: job.preemptions,
    batchScale: job.batchScale,
    lrScale: job.lrScale,
    extraRuntimeMs: job.extraRuntimeMs,
    ledger: job.ledger,
    state,
  };
  return {
    id: job.id,
    submit_seq: job.submitSeq,
    array_id: job.array?.id ?? null,
    array_index: job.array?.index ?? null,
    requeued_from: job.requeuedFrom,
    project: job.spec.project,
    submitter: job.user,
    name: ownName(job),
    state: job.state.kind,
    last_attempt: job.lastAttempt,
    submitted_at_ms: job.submittedAtMs,
    ended_at_ms: 'endedAtMs' in job.state ? job.state.endedAtMs : null,
    spec: specText(job.spec),
    body: JSON.stringify(body),
  };
}

/**
 * @param newest the attempt numbered `last_attempt`; needed for active states only
 * @param shared the spec of its array; undefined: it has its own
 */
export function jobFromRow(row: JobRow, newest: Attempt | null, shared?: JobSpec): Job {
  const body = JSON.parse(row.body) as JobBody;
  return {
    id: row.id as JobId,
    submitSeq: row.submit_seq,
    spec: shared ?? decodeJobSpec(row.spec),
    array: body.array === null ? null : { ...body.array, id: body.array.id as ArrayId },
    requeuedFrom: body.requeuedFrom as JobId | null,
    resumedFrom: body.resumedFrom ?? null,
    submittedAtMs: row.submitted_at_ms,
    user: row.submitter,
    state: stateFrom(body.state, row, newest),
    lastAttempt: row.last_attempt,
    failures: body.failures,
    failedStarts: body.failedStarts,
    excludedNodes: (body.leftOut ?? []).map((each) => ({ ...each, cause: causeFrom(each.cause) })),
    checkpoints: (body.checkpoints ?? []).map(wholeCheckpoint),
    resumeChoice: body.resumeChoice ?? { kind: 'newest' },
    checkpointJobId: (body.checkpointJobId ?? row.id) as JobId,
    lineage: (body.lineage ?? []) as readonly JobId[],
    recentFailures: body.deaths ?? [],
    failuresInRow: body.failuresInRow ?? 0,
    preemptions: body.preemptions ?? 0,
    batchScale: body.batchScale ?? 1,
    lrScale: body.lrScale ?? 1,
    extraRuntimeMs: body.extraRuntimeMs ?? 0,
    ledger: body.ledger ?? [],
  };
}

/** Written by a version that read everything once. */
function wholeCheckpoint(written: StoredCheckpoint): Checkpoint {
  return { ...written, reread: written.reread ?? false };
}

function stateFrom(body: JobBody['state'], row: JobRow, newest: Attempt | null): JobState {
  const state = body as JobState;
  switch (state.kind) {
    case 'queued': {
      const lastCause = state.lastCause === null ? null : causeFrom(state.lastCause);
      // Earlier versions knew no breaker, and did not write down since when it waits.
      const { breakerOpen = false, sinceMs = row.submitted_at_ms } = state as Partial<typeof state>;
      return { ...state, breakerOpen, sinceMs, lastCause };
    }
    case 'starting':
    case 'running':
      return { ...state, attempt: activeAttempt(state.kind, row, newest) };
    case 'stopping': {
      const { outcome } = state;
      const attempt = activeAttempt(state.kind, row, newest);
      if (outcome.cause === null) return { ...state, attempt };
      return { ...state, attempt, outcome: { ...outcome, cause: causeFrom(outcome.cause) } };
    }
    case 'succeeded':
      return state;
    case 'failed':
    case 'cancelled':
      return { ...state, cause: causeFrom(state.cause) };
    default: {
      const never: never = state;
      return never;
    }
  }
}

function activeAttempt(kind: string, { id, last_attempt }: JobRow, newest: Attempt | null): Attempt {
  if (newest?.number === last_attempt) return newest;
  throw new StoreError('damaged', `job ${id} is ${kind} and its attempt ${last_attempt} is not in the store`);
}

/** Earlier versions kept no evidence, and blamed nobody. */
function causeFrom(written: Cause): Cause {
  const { kind, message, nodeRank, node } = written;
  return { ...causeOf(kind, message, { nodeRank, node }), ...written };
}

export function attemptToRow(jobId: JobId, attempt: Attempt): AttemptRow {
  return { job_id: jobId, number: attempt.number, state: attempt.state, body: JSON.stringify(attempt) };
}

/**
 * Earlier versions did not know what became of the GPUs, tried no paths and fenced nothing: their tasks never are, so
 * that no lease is taken for granted which their agents know nothing of.
 */
export function attemptFromRow(row: AttemptRow): Attempt {
  const written = JSON.parse(row.body) as Attempt;
  const attempt: Attempt = { ...earlierAttempt, ...written };
  const tasks = written.tasks.map((each): Task => {
    const task: Task = { ...earlierTask, ...each };
    const exit = task.exit === null ? null : exitFrom(task.exit);
    return { ...task, exit };
  });
  return { ...attempt, tasks, cause: attempt.cause === null ? null : causeFrom(attempt.cause) };
}

function exitFrom(written: TaskEnd): TaskEnd {
  const exit: TaskEnd = { ...earlierExit, ...written };
  const { startError, failure } = exit;
  return {
    ...exit,
    startError: startError === null ? null : causeFrom(startError),
    failure: failure === null ? null : { ...earlierFailure, ...failure },
  };
}

const earlierAttempt = {
  leaseMs: null,
  preflight: false,
  network: null,
  resume: null,
  savedAtMs: null,
  stoppingAtMs: null,
  savedAfterStop: false,
  signs: [],
  hungToldAtMs: null,
};
const earlierTask = { endpoints: [], testPort: null, paths: null, preflight: null, failedAtMs: null };
const earlierExit = { gpuUsage: null, failure: null, training: null };
const earlierFailure = { kind: null, blame: null, line: null };

export interface NodeRow {
  readonly name: string;
  readonly body: string;
}

export function nodeToRow(node: Node): NodeRow {
  return { name: node.name, body: JSON.stringify(node) };
}

/** Earlier versions knew less of hardware, and no conditions: what they did not write is unknown. */
export function nodeFromRow(row: NodeRow): Node {
  const { inventory, conditions, drain, ...node } = JSON.parse(row.body) as Omit<
    Node,
    'conditions' | 'drain'
  > &
    Partial<Node>;
  const gpus = inventory.gpus.map((gpu) => ({ ...bareGpu(gpu.uuid), ...gpu }));
  return {
    ...node,
    name: row.name as NodeName,
    inventory: { ...emptyInventory, ...inventory, gpus },
    conditions: conditions ?? [],
    drain: drain ?? null,
  };
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
  };
}
