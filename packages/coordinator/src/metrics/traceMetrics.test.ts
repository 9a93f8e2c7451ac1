import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { addTraceMetrics } from './traceMetrics.ts';

test('spans are counted by what became of them', async () => {
  const registry = new Registry();
  const count = addTraceMetrics(registry);
  count('sent', 3);
  count('sent', 2);
  count('failed', 5);
  const [metric] = await registry.getMetricsAsJSON();
  expect(metric).toMatchObject({
    name: 'muster_trace_spans_total',
    values: [
      { labels: { result: 'sent' }, value: 5 },
      { labels: { result: 'failed' }, value: 5 },
    ],
  });
});
