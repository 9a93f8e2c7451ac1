/**
 * Follows the event log, and sends the spans of traces that are recorded to a collector. Jobs never wait for it. Nothing is queued in
 * memory: what a collector has not taken yet is in the log, and a cursor in the store records how far it has come. So a restart
 * of the coordinator sends no span a second time, unless the process is killed between the answer of the collector and the next
 * commit; the id of the span is the same then. Retention of events does not wait for a collector.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { untilAborted } from '@muster/common/async';
import { isJobId } from '@muster/common/ids';
import { isRecorded, spanIdOf, type TraceSampler, traceIdOf } from '@muster/common/traceContext';
import {
  type EventFollowerParts,
  type EventTarget,
  eventsPerPage,
  type PublishResult,
  type RunningFollower,
  startFollower,
} from '../events/follower.ts';
import type { StoredEvent } from '../model.ts';
import type { Store } from '../store/store.ts';
import type { LinkedSpan, SpanExporter } from './otlp.ts';
import { isOfTrace, type JobSpan, type OpenSpans, spansAfter } from './spans.ts';

/** What became of spans: sent, not sent and to be tried again, or dropped because nobody takes them. */
export type SpanResult = 'sent' | 'failed' | 'dropped';

export interface TracerParts
  extends Pick<EventFollowerParts, 'store' | 'committed' | 'log' | 'lastEventSeq'> {
  readonly exporter: SpanExporter;
  readonly isSampled: TraceSampler;
  readonly wallMs: () => number;
  readonly onSpans: (result: SpanResult, count: number) => void;
  /** Names the collector in the log. */
  readonly shown: string;
  /** Default: `usualTracerTiming`. */
  readonly timing?: TracerTiming;
}

/** Milliseconds. */
export interface TracerTiming {
  /** Between two requests, so that the spans of many commits go together. */
  readonly gatherMs: number;
  /** For the answer to a request. */
  readonly answerMs: number;
  /** For the last request, when the coordinator stops. */
  readonly flushMs: number;
}

export const usualTracerTiming: TracerTiming = { gatherMs: 1_000, answerMs: 10_000, flushMs: 800 };

const retryBackoff = { initialMs: 1_000, maxMs: 60_000 };
/** Spans that no collector has taken within this duration are dropped. */
const giveUpAfterMs = 24 * 60 * 60_000;
/** Jobs whose open spans are in memory; those of others are found again from their events. */
const knownJobsMax = 10_000;

export function startTracer(parts: TracerParts): RunningFollower {
  const builder = new TraceBuilder(parts);
  return startFollower({
    ...parts,
    cursorName: 'otlp_cursor',
    startsAt: 'next',
    open: async () => new CollectorTarget(parts, builder),
    backoff: retryBackoff,
    words: {
      fields: { otlp: parts.shown },
      reached: 'traces are sent',
      failed: 'traces do not reach the collector: they are sent later, within a day; jobs are not affected',
      ahead: () => 'the collector is ahead of the store',
    },
  });
}

/** Makes spans of events that come in order. */
class TraceBuilder {
  private readonly parts: Pick<TracerParts, 'isSampled'> & { readonly store: Pick<Store, 'readEvents'> };
  /** The job that was asked for longest ago first. */
  private readonly known = new Map<string, OpenSpans>();

  constructor(parts: TraceBuilder['parts']) {
    this.parts = parts;
  }

  /** @returns the spans that these events end, and how to remember that they were dealt with; until then, they come again */
  async build(events: readonly StoredEvent[]): Promise<{
    readonly spans: readonly LinkedSpan[];
    readonly remember: () => void;
  }> {
    const spans: JobSpan[] = [];
    const changed = new Map<string, OpenSpans | null>();
    for (const event of events) {
      const { subject, kind, traceparent } = event;
      if (!isOfTrace(kind) || !isJobId(subject)) continue;
      if (!isRecorded(subject, traceparent, this.parts.isSampled)) continue;
      const before = changed.has(subject) ? changed.get(subject) : await this.openBefore(event);
      const { open, spans: ended } = spansAfter(before ?? null, event);
      changed.set(subject, open);
      spans.push(...ended);
    }
    const linked: LinkedSpan[] = [];
    for (const span of spans) linked.push({ ...span, links: await this.linksOf(span) });
    return { spans: linked, remember: () => this.remember(changed) };
  }

  private async linksOf({ follows = [] }: JobSpan): Promise<LinkedSpan['links']> {
    const links: LinkedSpan['links'][number][] = [];
    for (const { jobId, relation } of follows) {
      const [first] = await this.parts.store.readEvents(0, 1, jobId);
      // Without its events nobody knows which trace its submit has named.
      if (first === undefined) continue;
      links.push({ traceId: traceIdOf(jobId, first.traceparent), spanId: spanIdOf(jobId, ''), relation });
    }
    return links;
  }

  private async openBefore({ subject, subjectSeq, seq }: StoredEvent): Promise<OpenSpans | null> {
    const known = this.known.get(subject);
    if (known !== undefined) return known;
    if (subjectSeq === 1) return null;
    let open: OpenSpans | null = null;
    let page: readonly StoredEvent[] = [];
    let position = 0;
    do {
      page = await this.parts.store.readEvents(position, eventsPerPage, subject);
      for (const event of page) {
        if (event.seq >= seq) return open;
        ({ open } = spansAfter(open, event));
        position = event.seq;
      }
    } while (page.length > 0);
    return open;
  }

  private remember(changed: ReadonlyMap<string, OpenSpans | null>): void {
    for (const [jobId, open] of changed) {
      this.known.delete(jobId);
      if (open !== null) this.known.set(jobId, open);
    }
    for (const oldest of this.known.keys()) {
      if (this.known.size <= knownJobsMax) break;
      this.known.delete(oldest);
    }
  }
}

class CollectorTarget implements EventTarget {
  readonly name = 'otlp';
  readonly lastEventSeq = null;
  readonly closed: AbortSignal;
  private readonly closing = new AbortController();
  /** Aborts when the last request has had its time. */
  private readonly over = new AbortController();
  private readonly parts: TracerParts;
  private readonly builder: TraceBuilder;
  private readonly timing: TracerTiming;
  private isFirst = true;

  constructor(parts: TracerParts, builder: TraceBuilder) {
    this.parts = parts;
    this.builder = builder;
    this.timing = parts.timing ?? usualTracerTiming;
    this.closed = this.closing.signal;
  }

  async publish(events: readonly StoredEvent[]): Promise<PublishResult> {
    const { exporter, onSpans, wallMs, log, shown } = this.parts;
    const { spans, remember } = await this.builder.build(events);
    const fresh = spans.filter(({ endMs }) => wallMs() - endMs <= giveUpAfterMs);
    if (fresh.length > 0) {
      await this.gather(events.length);
      try {
        const answered = AbortSignal.any([this.over.signal, AbortSignal.timeout(this.timing.answerMs)]);
        const result = await untilAborted(exporter.send(fresh), answered);
        onSpans(result === 'taken' ? 'sent' : 'dropped', fresh.length);
        if (result === 'refused')
          log.error(
            { otlp: shown, spans: fresh.length },
            'the collector refuses spans, and they are dropped',
          );
      } catch (error) {
        onSpans('failed', fresh.length);
        return { stored: 0, error };
      }
    }
    if (fresh.length < spans.length) onSpans('dropped', spans.length - fresh.length);
    remember();
    return { stored: events.length, error: null, mustRemember: fresh.length > 0 };
  }

  async close(): Promise<void> {
    this.closing.abort();
    setTimeout(() => this.over.abort(), this.timing.flushMs).unref();
  }

  /** Waits while more events come, for the request after this one. Where the page is full, waiting gains nothing. */
  private async gather(events: number): Promise<void> {
    const { isFirst } = this;
    this.isFirst = false;
    if (isFirst || events >= eventsPerPage) return;
    await delay(this.timing.gatherMs, undefined, { signal: this.closed }).catch(() => {});
  }
}
