/**
 * The spans of a job, from its events alone. Pure: whoever reads the events again, after a restart of the coordinator too, gets the
 * same spans with the same ids.
 *
 *      job ──┬─ plan         in the queue, until nodes are chosen; once for each attempt
 *            └─ attempt ──┬─ claim        the nodes prepare and are checked
 *                         ├─ release      the tasks start
 *                         ├─ first_step   until the output shows a training step
 *                         ├─ checkpoint   a checkpoint is written; each one that is complete
 *                         └─ stop         from the order to stop until all tasks have ended
 */
import type { EventKind } from '@muster/common/eventKinds';
import {
  attemptSpanIdOf,
  parseTraceparent,
  spanIdOf,
  type TraceParent,
  traceIdOf,
} from '@muster/common/traceContext';
import type { StoredEvent } from '../model.ts';

type SpanName = 'job' | 'plan' | 'attempt' | 'claim' | 'release' | 'first_step' | 'checkpoint' | 'stop';

/** A part of the life of a job that is over. Times are epoch milliseconds by the clock of the coordinator. */
export interface JobSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** null: it is the root. */
  readonly parent: { readonly spanId: string; readonly isRemote: boolean } | null;
  readonly name: SpanName;
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Readonly<Record<string, string | number | readonly string[]>>;
  /** Why it did not end well. null: it did. */
  readonly error: string | null;
  /** Absent: none. */
  readonly follows?: readonly FollowedJob[];
}

/** An earlier job that a job continues, in a trace of its own. */
export interface FollowedJob {
  readonly jobId: string;
  readonly relation: 'requeued_from' | 'resumed_from';
}

/** What of a job has begun and is not over. */
export interface OpenSpans {
  readonly jobId: string;
  readonly traceId: string;
  /** The operation outside that has submitted it. null: there is none. */
  readonly caller: TraceParent | null;
  readonly name: string;
  readonly project: string | null;
  readonly follows: readonly FollowedJob[];
  readonly beganMs: number;
  /** In the queue since then. null: it is not. */
  readonly queuedMs: number | null;
  readonly attempt: OpenAttempt | null;
  readonly attempts: number;
}

interface OpenAttempt {
  readonly number: number;
  readonly nodes: readonly string[];
  readonly allocatedMs: number;
  readonly releasedMs: number | null;
  readonly runningMs: number | null;
  readonly stoppingMs: number | null;
}

/** `open` is null once the job has ended. */
export interface SpanStep {
  readonly open: OpenSpans | null;
  /** What the event has ended. */
  readonly spans: readonly JobSpan[];
}

/**
 * @param before null: the event is the first of its job that is known. Events that are older than a month are removed, so a job that
 *   takes longer may begin with another one than `job.submitted`.
 */
export function spansAfter(before: OpenSpans | null, event: StoredEvent): SpanStep {
  const handler = handlers[event.kind];
  if (handler === undefined) return { open: before, spans: [] };
  return handler(before ?? openedBy(event), event);
}

/** Whether events of this kind begin or end a span. */
export function isOfTrace(kind: EventKind): boolean {
  return handlers[kind] !== undefined;
}

type Handler = (open: OpenSpans, event: StoredEvent) => SpanStep;

const handlers: Readonly<Partial<Record<EventKind, Handler>>> = {
  'job.submitted': (open) => ({ open, spans: [] }),
  'attempt.allocated': (open, { timeMs, data }) => {
    const { tasks } = data;
    const nodes = (Array.isArray(tasks) ? tasks : []).map((task: { node?: unknown }) => String(task.node));
    const number = numberIn(data, 'attempt') ?? open.attempts + 1;
    const attempt = {
      number,
      nodes,
      allocatedMs: timeMs,
      releasedMs: null,
      runningMs: null,
      stoppingMs: null,
    };
    const planned = planOf(open, timeMs, number, null);
    return { open: { ...open, queuedMs: null, attempts: number, attempt }, spans: planned };
  },
  'attempt.released': (open, { timeMs }) => {
    const { attempt } = open;
    if (attempt === null || attempt.releasedMs !== null) return { open, spans: [] };
    const spans = [part(open, attempt, 'claim', attempt.allocatedMs, timeMs)];
    return { open: { ...open, attempt: { ...attempt, releasedMs: timeMs } }, spans };
  },
  'attempt.running': (open, { timeMs }) => {
    const { attempt } = open;
    if (attempt === null || attempt.runningMs !== null) return { open, spans: [] };
    const spans = [part(open, attempt, 'release', attempt.releasedMs ?? attempt.allocatedMs, timeMs)];
    return { open: { ...open, attempt: { ...attempt, runningMs: timeMs } }, spans };
  },
  'training.started': (open, { timeMs, data }) => {
    const { attempt } = open;
    if (attempt === null) return { open, spans: [] };
    const began = attempt.runningMs ?? attempt.releasedMs ?? attempt.allocatedMs;
    const printed = numberIn(data, 'atMs') ?? timeMs;
    return { open, spans: [part(open, attempt, 'first_step', began, printed, stepOf(data))] };
  },
  'checkpoint.saved': checkpointed,
  'checkpoint.seen': checkpointed,
  'job.stopping': (open, { timeMs }) => {
    const { attempt } = open;
    const stopping = attempt === null ? null : { ...attempt, stoppingMs: attempt.stoppingMs ?? timeMs };
    return { open: { ...open, attempt: stopping }, spans: [] };
  },
  'attempt.ended': (open, { timeMs, data }) => {
    const { attempt } = open;
    if (attempt === null) return { open, spans: [] };
    const { number, nodes, allocatedMs, releasedMs, runningMs, stoppingMs } = attempt;
    const { kind, message } = causeIn(data);
    const unfinished: readonly JobSpan[] =
      releasedMs === null
        ? [part(open, attempt, 'claim', allocatedMs, timeMs, {}, message)]
        : runningMs === null
          ? [part(open, attempt, 'release', releasedMs, timeMs, {}, message)]
          : [];
    const stopped = stoppingMs === null ? [] : [part(open, attempt, 'stop', stoppingMs, timeMs)];
    const whole: JobSpan = {
      ...child(open, attemptSpanIdOf(open.jobId, number), rootIdOf(open)),
      name: 'attempt',
      startMs: allocatedMs,
      endMs: Math.max(allocatedMs, timeMs),
      attributes: { ...aboutJob(open), 'muster.attempt': number, 'muster.nodes': nodes, ...causeOf(kind) },
      error: message,
    };
    return { open: { ...open, attempt: null }, spans: [...unfinished, ...stopped, whole] };
  },
  'job.queued': (open, { timeMs }) => ({ open: { ...open, queuedMs: timeMs }, spans: [] }),
  'job.succeeded': ended,
  'job.failed': ended,
  'job.cancelled': ended,
};

function openedBy({ subject, traceparent, kind, timeMs, data }: StoredEvent): OpenSpans {
  return {
    jobId: subject,
    traceId: traceIdOf(subject, traceparent),
    caller: traceparent === undefined ? null : parseTraceparent(traceparent),
    name: textIn(data, 'name') ?? '',
    project: textIn(data, 'project'),
    follows: followedJobsIn(data),
    beganMs: timeMs,
    queuedMs: kind === 'job.submitted' ? timeMs : null,
    attempt: null,
    attempts: 0,
  };
}

function checkpointed(open: OpenSpans, { timeMs, data, subjectSeq }: StoredEvent): SpanStep {
  const { attempt } = open;
  if (attempt === null) return { open, spans: [] };
  const tookMs = numberIn(data, 'saveDurationMs') ?? 0;
  const bytes = numberIn(data, 'bytes');
  const facts = {
    'muster.checkpoint': textIn(data, 'checkpoint') ?? '',
    ...stepOf(data),
    ...(bytes === null ? {} : { 'muster.checkpoint.bytes': bytes }),
  };
  const began = timeMs - Math.max(0, tookMs);
  // Two checkpoints of one attempt may have one name: the number of the event tells them apart.
  return { open, spans: [part(open, attempt, 'checkpoint', began, timeMs, facts, null, ` ${subjectSeq}`)] };
}

function ended(open: OpenSpans, { kind, timeMs, data }: StoredEvent): SpanStep {
  const { kind: cause, message } = causeIn(data);
  const { caller, beganMs, attempts, follows } = open;
  const error = kind === 'job.failed' ? (message ?? 'failed') : null;
  const root: JobSpan = {
    traceId: open.traceId,
    spanId: rootIdOf(open),
    parent: caller === null ? null : { spanId: caller.spanId, isRemote: true },
    name: 'job',
    startMs: beganMs,
    endMs: Math.max(beganMs, timeMs),
    attributes: {
      ...aboutJob(open),
      ...(open.project === null ? {} : { 'muster.project': open.project }),
      'muster.job.state': kind.slice('job.'.length),
      'muster.attempts': attempts,
      ...causeOf(cause),
    },
    error,
    follows,
  };
  return { open: null, spans: [...planOf(open, timeMs, attempts + 1, error), root] };
}

/** @param number of the attempt that it waited for */
function planOf(open: OpenSpans, endMs: number, number: number, error: string | null): readonly JobSpan[] {
  const { queuedMs } = open;
  if (queuedMs === null) return [];
  return [
    {
      ...child(open, spanIdOf(open.jobId, `plan ${number}`), rootIdOf(open)),
      name: 'plan',
      startMs: queuedMs,
      endMs: Math.max(queuedMs, endMs),
      attributes: { ...aboutJob(open), 'muster.attempt': number },
      error,
    },
  ];
}

/** @param which tells it from others of this name in the attempt */
function part(
  open: OpenSpans,
  { number }: OpenAttempt,
  name: SpanName,
  startMs: number,
  endMs: number,
  facts: JobSpan['attributes'] = {},
  error: string | null = null,
  which = '',
): JobSpan {
  return {
    ...child(open, spanIdOf(open.jobId, `${name} ${number}${which}`), attemptSpanIdOf(open.jobId, number)),
    name,
    startMs,
    // The wall clock may have been set back in between.
    endMs: Math.max(startMs, endMs),
    attributes: { ...aboutJob(open), 'muster.attempt': number, ...facts },
    error,
  };
}

function child({ traceId }: OpenSpans, spanId: string, parentId: string) {
  return { traceId, spanId, parent: { spanId: parentId, isRemote: false } };
}

function rootIdOf({ jobId }: OpenSpans): string {
  return spanIdOf(jobId, '');
}

function aboutJob({ jobId, name }: OpenSpans): JobSpan['attributes'] {
  return { 'muster.job.id': jobId, 'muster.job.name': name };
}

function causeOf(kind: string | null): JobSpan['attributes'] {
  return kind === null ? {} : { 'muster.cause': kind };
}

type Data = StoredEvent['data'];

/** What a job is requeued from, and what it resumes from where that is another job. */
function followedJobsIn(data: Data): readonly FollowedJob[] {
  const requeuedFrom = textIn(data, 'requeuedFrom');
  const resumed = data['resumedFrom'];
  const resumedFrom =
    typeof resumed === 'object' && resumed !== null ? textIn(resumed as Data, 'jobId') : null;
  return [
    ...(requeuedFrom === null ? [] : [{ jobId: requeuedFrom, relation: 'requeued_from' } as const]),
    ...(resumedFrom === null || resumedFrom === requeuedFrom
      ? []
      : [{ jobId: resumedFrom, relation: 'resumed_from' } as const]),
  ];
}

function stepOf(data: Data): JobSpan['attributes'] {
  const step = numberIn(data, 'step');
  return step === null ? {} : { 'muster.step': step };
}

function causeIn({ cause }: Data): { readonly kind: string | null; readonly message: string | null } {
  if (typeof cause !== 'object' || cause === null) return { kind: null, message: null };
  const facts = cause as Data;
  return { kind: textIn(facts, 'kind'), message: textIn(facts, 'message') };
}

function numberIn(data: Data, name: string): number | null {
  const value = data[name];
  return typeof value === 'number' ? value : null;
}

function textIn(data: Data, name: string): string | null {
  const value = data[name];
  return typeof value === 'string' ? value : null;
}
