/** Logs and events. */
import { MusterError } from '@muster/common/errors';
import type { Event as WireEvent } from '@muster/common/gen/muster/v1/Event';
import type { WatchEventsRequest__Output } from '@muster/common/gen/muster/v1/WatchEventsRequest';
import { isJobId, type JobId, type NodeName } from '@muster/common/ids';
import { eventToWire, logPieceToWire } from '@muster/common/wire/codec';
import type { AgentRegistry } from '../agents/registry.ts';
import type { Identity } from '../caller.ts';
import { eventView, noticeView } from '../events/cloudEvents.ts';
import { positionOfNewest } from '../events/newest.ts';
import type { CommitNotifier, Notices } from '../events/notices.ts';
import { type WatchedNotice, watchEvents } from '../events/watch.ts';
import type { LogEvents } from '../logs/logKeeping.ts';
import type { LogStore } from '../logs/logStore.ts';
import { streamLogs } from '../logs/readLogs.ts';
import { timeOf } from '../metricQuery/timeRange.ts';
import type { StoredEvent } from '../model.ts';
import type { ArrayFiller } from '../reconcilers/arrayFiller.ts';
import type { ClusterState } from '../state/state.ts';
import { type Store, StoreError } from '../store/store.ts';
import { type MusterCalls, serverStream, unary } from './calls.ts';
import { resolveJobId } from './references.ts';
import { eventFilter } from './visibleJobs.ts';
import { whileVisible } from './whileVisible.ts';

/** Of ranks of which a call resumes the output: more than a gang has. */
const positionsMax = 4_096;

export interface StreamCallParts {
  readonly state: ClusterState;
  readonly store: Store;
  readonly arrays: Pick<ArrayFiller, 'complete' | 'member'>;
  readonly logs: LogStore;
  readonly logEvents: LogEvents;
  readonly agents: AgentRegistry;
  /** Rings after every commit and for notices, with the subjects of the events. */
  readonly committed: CommitNotifier;
  readonly notices: Notices;
  /** Where watches read events. */
  readonly events: Pick<Store, 'readEvents'>;
  readonly wallMs: () => number;
  /** A copy of the store as it is now, in pieces. @param options.hasKeys whether the key files are in it */
  readonly backup: (options: { readonly hasKeys: boolean }) => AsyncIterable<Buffer>;
}

export function streamCalls(
  parts: StreamCallParts,
): Pick<MusterCalls, 'ReadLogs' | 'RemoveLogs' | 'WatchEvents' | 'BackupStore'> {
  const { state, store, committed, notices, events } = parts;
  return {
    ReadLogs: serverStream(async (request, abort, caller) => {
      const jobId = await resolveJobId(parts, request.jobId, caller);
      const record = await store.readJob(jobId);
      const nodes = record?.job.spec.resources.nodes ?? 1;
      if (request.nodeRank !== undefined && request.nodeRank >= nodes) {
        const has = nodes === 1 ? 'only rank 0' : `ranks 0 to ${nodes - 1}`;
        throw new MusterError('invalid', `${jobId} has no rank ${request.nodeRank}: it has ${has}`);
      }
      if (record !== null && request.attempt !== undefined && request.attempt > record.job.lastAttempt) {
        throw new MusterError(
          'not_found',
          `${jobId} has no attempt ${request.attempt}: ${attemptsText(record.job.lastAttempt)}`,
        );
      }
      if (request.from.length > positionsMax)
        throw new MusterError('invalid', `from: ${request.from.length} positions; at most ${positionsMax}`);
      const options = {
        jobId,
        attempt: request.attempt ?? null,
        nodeRank: request.nodeRank ?? null,
        follow: request.follow,
        tailLines: request.from.length > 0 ? null : (request.tailLines ?? null),
        from: request.from,
      };
      const pieces = (over: AbortSignal) =>
        streamLogs(
          {
            logs: parts.logs,
            readJob: (id: JobId) => store.readJob(id),
            changed: (subject, signal) => committed.next(signal, subject),
            silence: (node) =>
              parts.agents.isSilent(node) ? { silentForMs: parts.agents.silentForMs(node) } : null,
          },
          options,
          over,
        );
      return mapped(whileVisible(parts, caller, jobId, abort, pieces), logPieceToWire);
    }),

    RemoveLogs: unary(async (request, caller) => {
      const jobId = await resolveJobId(parts, request.jobId, caller);
      const bytesFreed = await parts.logs.clear(jobId, 'removed');
      if (bytesFreed > 0) parts.logEvents.removed(caller, jobId, bytesFreed, 'removed');
      return { jobId, bytesFreed };
    }),

    WatchEvents: serverStream(async (request, abort, caller) => {
      const subject = request.subject === undefined ? null : await subjectOf(parts, request.subject, caller);
      const firstSeq = request.sinceSeq < 0 ? state.lastEventSeq : request.sinceSeq;
      if (subject === null) await requireKept(store, firstSeq);
      const { clusterId } = state;
      const isShown = shownEvents(request, eventFilter(parts, caller), parts.wallMs());
      const sinceSeq =
        request.newest === undefined
          ? firstSeq
          : await positionOfNewest(
              events,
              state.lastEventSeq,
              {
                count: newestCount(request.newest),
                sinceSeq: firstSeq,
                subject,
                isWanted: async (event) => isShown === null || isShown(event),
              },
              abort,
            );
      const options = { sinceSeq, follow: request.follow, subject };
      const watched = (over: AbortSignal) =>
        watchEvents({ store: events, notifier: committed, notices }, options, over);
      const jobId = subject !== null && isJobId(subject) ? subject : null;
      const visible = whileVisible(parts, caller, jobId, abort, watched);
      const shown = isShown === null ? visible : shownOf(visible, isShown);
      return mapped(shown, (event) => wireEvent(clusterId, event));
    }),

    BackupStore: serverStream(async (request, _abort, caller) => {
      if (request.hasKeys && caller.kind !== 'admin') {
        // Who may administer the cluster may not read its secrets, nor sign as its CA.
        throw new MusterError(
          'permission_denied',
          "a backup with key files is for the coordinator's own admin token: run this on its machine, or take one without them " +
            '(--without-keys)',
        );
      }
      return backupPieces(() => parts.backup({ hasKeys: request.hasKeys }));
    }),
  };
}

async function* mapped<From, To>(values: AsyncIterable<From>, of: (value: From) => To): AsyncGenerator<To> {
  for await (const value of values) yield of(value);
}

type Watched = StoredEvent | WatchedNotice;

async function* shownOf(
  events: AsyncIterable<Watched>,
  isShown: NonNullable<ReturnType<typeof shownEvents>>,
): AsyncGenerator<Watched> {
  for await (const event of events) {
    if (await isShown('notice' in event ? event.notice : event)) yield event;
  }
}

type ShownEvent = Pick<StoredEvent, 'kind' | 'subject' | 'data'> & { readonly timeMs?: number };

/**
 * @param mayShow null: the caller sees every event
 * @returns whether the caller sees an event and has asked for its time. Null if that is so of all
 */
function shownEvents(
  { startTime, endTime, follow }: WatchEventsRequest__Output,
  mayShow: ReturnType<typeof eventFilter>,
  nowMs: number,
): ((event: ShownEvent) => Promise<boolean>) | null {
  if (startTime === undefined && endTime === undefined) return mayShow;
  if (endTime !== undefined && follow)
    throw new MusterError('invalid', 'end_time and follow exclude each other: nothing follows an end');
  const fromMs = startTime === undefined ? Number.NEGATIVE_INFINITY : timeOf('start_time', startTime, nowMs);
  const toMs = endTime === undefined ? Number.POSITIVE_INFINITY : timeOf('end_time', endTime, nowMs);
  // A notice is not stored and has no time: it is about now.
  return async (event) =>
    (event.timeMs === undefined || (event.timeMs >= fromMs && event.timeMs <= toMs)) &&
    (mayShow === null || (await mayShow(event)));
}

const newestMax = 100_000;

/** @throws {MusterError} `invalid` */
function newestCount(newest: number): number {
  if (newest >= 1 && newest <= newestMax) return newest;
  throw new MusterError('invalid', `newest: got ${newest}; expected a number from 1 to ${newestMax}`);
}

/** Of the newest events: hundreds of watchers get the same ones, and making the text costs more than sending it. */
const wireEvents = new WeakMap<StoredEvent, WireEvent>();

function wireEvent(clusterId: string, event: Watched): WireEvent {
  if ('notice' in event) return eventToWire(noticeView(clusterId, event));
  let wire = wireEvents.get(event);
  if (wire === undefined) {
    wire = eventToWire(eventView(clusterId, event));
    wireEvents.set(event, wire);
  }
  return wire;
}

async function* backupPieces(take: () => AsyncIterable<Buffer>): AsyncGenerator<{ readonly data: Buffer }> {
  try {
    for await (const data of take()) yield { data };
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    throw new MusterError(error.kind === 'damaged' ? 'failed_precondition' : 'unavailable', error.message);
  }
}

/** A node's name means the node, also where a job has the same name. */
async function subjectOf(parts: StreamCallParts, text: string, caller: Identity): Promise<string> {
  if (text.startsWith('job_')) return resolveJobId(parts, text, caller);
  const isJob =
    /[_[]/.test(text) || text === 'latest' || (await parts.store.names.names(text, 1))[0] === text;
  return isJob && !parts.state.nodes.has(text as NodeName) ? resolveJobId(parts, text, caller) : text;
}

/** A caller that asks for what follows an event must not miss any without an error. */
async function requireKept({ retention }: Store, sinceSeq: number): Promise<void> {
  const removedSeq = await retention.readRemovedEventSeq();
  if (sinceSeq === 0 || sinceSeq >= removedSeq) return;
  throw new MusterError(
    'failed_precondition',
    `events up to ${removedSeq} were removed by retention, so those after ${sinceSeq} are not complete: watch from 0 for all ` +
      `that are kept, or from ${removedSeq}`,
  );
}

function attemptsText(count: number): string {
  if (count === 0) return 'it has not started yet';
  return count === 1 ? 'it has had one attempt' : `it has had attempts 1 to ${count}`;
}
