import { attemptSpanIdOf } from '@muster/common/traceContext';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Collector, startCollector } from '../../packages/coordinator/src/tracing/collectorFixture.ts';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { waitFor } from '../support/services.ts';

let collector: Collector;
let cluster: Cluster;
beforeAll(async () => {
  collector = await startCollector();
  const coordinatorFlags = ['--otlp', collector.url, '--trace-ratio', '1'];
  cluster = await startCluster({ nodes: 1, coordinatorFlags });
});
afterAll(() => collector?.close());

const spansWith = (names: readonly string[]) =>
  waitFor(`the spans ${names.join(', ')}`, async () => collector.spans, {
    until: (spans) => names.every((name) => spans.some((span) => span.name === name)),
  });

test('a real job is one trace, which its program can go on with, and a killed coordinator continues it', async () => {
  const command = `echo "parent $TRACEPARENT"; echo '{"step": 1, "loss": 2.5}'; sleep 600`;
  const jobId = await cluster.submit({ name: 'traced', command });
  await spansWith(['plan', 'claim', 'release', 'first_step']);
  const { traceId } = await cluster.until(jobId, 'running');
  const { stdout } = await cluster.muster(['logs', jobId]);
  expect(stdout).toContain(`parent 00-${traceId}-${attemptSpanIdOf(jobId, 1)}-01\n`);

  const [agent] = cluster.agents;
  const lines = (agent?.log ?? '').split('\n').filter((line) => line.includes('a task trains'));
  expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([
    { node: 'node-1', job_id: jobId, attempt: 1, node_rank: 0, step: 1, loss: 2.5, epoch: null },
  ]);

  await cluster.coordinator.kill();
  await cluster.coordinator.start();
  await cluster.muster(['stop', jobId]);
  const spans = await spansWith(['stop', 'attempt', 'job']);

  // What was on its way at the kill may come again, as the same span.
  const names = new Map(spans.map((span) => [span.spanId, span.name])).values();
  expect([...names].join(' ')).toBe('plan claim release first_step stop attempt job');
  expect(new Set(spans.map((span) => span.traceId))).toEqual(new Set([traceId]));
  expect(collector.resources[0]).toMatchObject({ 'service.name': 'muster-coordinator' });
});

test('a submit by the command belongs to the trace of its environment', async () => {
  const [traceId, spanId] = ['0af7651916cd43dd8448eb211c80319c', 'b7ad6b7169203331'];
  const env = { TRACEPARENT: `00-${traceId}-${spanId}-01` };
  const { stdout } = await cluster.muster(['submit', '--', 'true'], { env });
  const [jobId = ''] = /job_\w+/.exec(stdout) ?? [];
  expect(await cluster.untilEnded(jobId)).toMatchObject({ state: 'succeeded', traceId });
  const root = await waitFor('its root', async () =>
    collector.spans.find((span) => span.name === 'job' && span.attributes['muster.job.id'] === jobId),
  );
  expect(root).toMatchObject({ traceId, parentSpanId: spanId, hasRemoteParent: true });
});
