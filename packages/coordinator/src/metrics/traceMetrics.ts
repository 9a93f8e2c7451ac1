import { Counter, type Registry } from 'prom-client';
import type { SpanResult } from '../tracing/tracer.ts';

/** @returns counts spans */
export function addTraceMetrics(registry: Registry): (result: SpanResult, count: number) => void {
  const spans = new Counter({
    name: 'muster_trace_spans_total',
    help: 'Spans of traces since the coordinator started: sent to the collector, failed and to be tried again, or dropped.',
    labelNames: ['result'],
    registers: [registry],
  });
  return (result, count) => spans.inc({ result }, count);
}
