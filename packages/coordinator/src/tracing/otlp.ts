/** OpenTelemetry: which traces are recorded, and how spans get to a collector. Loaded only where `--otlp` is set. */
import { ROOT_CONTEXT, SpanKind, SpanStatusCode, TraceFlags } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { type ReadableSpan, SamplingDecision, TraceIdRatioBasedSampler } from '@opentelemetry/sdk-trace';
import type { FollowedJob, JobSpan } from './spans.ts';

/** A span with the places of the spans that it follows. */
export interface LinkedSpan extends JobSpan {
  readonly links: readonly {
    readonly traceId: string;
    readonly spanId: string;
    readonly relation: FollowedJob['relation'];
  }[];
}

/** Where spans go. */
export interface SpanExporter {
  /**
   * @returns `refused`: the collector will never take these
   * @throws {Error} when it may take them later
   */
  send(spans: readonly LinkedSpan[]): Promise<'taken' | 'refused'>;
}

export interface OtlpSettings {
  /** `http://host:4318`, or with the path of the collector for traces. */
  readonly url: string;
  readonly clusterId: string;
  readonly version: string;
  /** Of one request, milliseconds. */
  readonly timeoutMs: number;
}

const tracesPath = '/v1/traces';
/** What a collector answers to a request that it does not understand, or finds too large. */
const refusals: readonly unknown[] = [400, 413];

/**
 * By the sampler of OpenTelemetry, so that other services with the same ratio record the same traces.
 * @param ratio 0 to 1: the share of the traces that are recorded
 */
export function ratioSampler(ratio: number): (traceId: string) => boolean {
  const sampler = new TraceIdRatioBasedSampler(ratio);
  return (traceId) =>
    sampler.shouldSample(ROOT_CONTEXT, traceId).decision === SamplingDecision.RECORD_AND_SAMPLED;
}

/** Headers, certificates and compression are those of the variables OTEL_EXPORTER_OTLP_*. */
export function openOtlp({ url, clusterId, version, timeoutMs }: OtlpSettings): SpanExporter {
  const exporter = new OTLPTraceExporter({
    url: endpointOf(url),
    timeoutMillis: timeoutMs,
    // One is under way, and one may be that nobody waits for any longer.
    concurrencyLimit: 2,
  });
  const resource = resourceFromAttributes({
    'service.name': 'muster-coordinator',
    'service.version': version,
    'service.instance.id': clusterId,
  });
  const instrumentationScope = { name: 'muster', version };
  return {
    send: (spans) =>
      new Promise((resolve, reject) => {
        const readable = spans.map((span) => ({ ...readableSpan(span), resource, instrumentationScope }));
        exporter.export(readable, ({ error }) => {
          if (error === undefined) resolve('taken');
          else if ('code' in error && refusals.includes(error.code)) resolve('refused');
          else reject(error);
        });
      }),
  };
}

/** The path of the collector for traces follows its address, unless the address has it. */
export function endpointOf(url: string): string {
  const base = url.replace(/\/+$/, '');
  return base.endsWith(tracesPath) ? base : `${base}${tracesPath}`;
}

function readableSpan(span: LinkedSpan): Omit<ReadableSpan, 'resource' | 'instrumentationScope'> {
  const { traceId, spanId, parent, startMs, endMs, error } = span;
  const context = { traceId, spanId, traceFlags: TraceFlags.SAMPLED };
  return {
    name: span.name,
    kind: SpanKind.INTERNAL,
    spanContext: () => context,
    ...(parent === null ? {} : { parentSpanContext: { ...context, ...parent } }),
    startTime: hrTimeOf(startMs),
    endTime: hrTimeOf(endMs),
    duration: hrTimeOf(endMs - startMs),
    status: error === null ? { code: SpanStatusCode.UNSET } : { code: SpanStatusCode.ERROR, message: error },
    attributes: Object.fromEntries(
      Object.entries(span.attributes).map(([name, value]) => [
        name,
        typeof value === 'object' ? [...value] : value,
      ]),
    ),
    links: span.links.map(({ relation, ...place }) => ({
      context: { ...place, traceFlags: TraceFlags.NONE },
      attributes: { 'muster.relation': relation },
    })),
    events: [],
    ended: true,
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  };
}

/** Seconds and nanoseconds. @param ms a whole number of milliseconds */
function hrTimeOf(ms: number): [number, number] {
  return [Math.floor(ms / 1_000), Math.round((ms % 1_000) * 1_000_000)];
}
