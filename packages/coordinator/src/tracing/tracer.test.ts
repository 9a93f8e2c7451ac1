/** Traces as a collector gets them: from a coordinator with its real server, to a real server over HTTP. */
import type { JobId } from '@muster/common/ids';
import { silentLogger } from '@muster/common/log';
import { attemptSpanIdOf, spanIdOf, traceIdOf } from '@muster/common/traceContext';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import { cloudEventOf } from '../events/cloudEvents.ts';
import { aCaller, aCheckpoint } from '../modelFixture.ts';
import { finishJob, startJob, submitWith } from '../rpc/jobFixture.ts';
import { applyJobEvent } from '../state/applyJobEvent.ts';
import { type Collector, startCollector } from './collectorFixture.ts';
import { openOtlp, ratioSampler } from './otlp.ts';
import { type SpanResult, startTracer } from './tracer.ts';

const traceId = '0af7651916cd43dd8448eb211c80319c';
const spanId = 'b7ad6b7169203331';
const [sampled, notSampled] = [`00-${traceId}-${spanId}-01`, `00-${traceId}-${spanId}-00`];

let coordinator: TestCoordinator;
let collector: Collector;
beforeEach(async () => {
  [coordinator, collector] = await Promise.all([startTestCoordinator(), startCollector()]);
});
afterEach(async () => {
  await coordinator.close();
  await collector.close();
});

/** Counts of what the tracer tells. */
let counted: Record<SpanResult, number> = { sent: 0, failed: 0, dropped: 0 };
/** Number of the last event that the tracer has read. */
let readSeq = 0;

function trace(ratio: number, of: TestCoordinator = coordinator, timing = {}) {
  counted = { sent: 0, failed: 0, dropped: 0 };
  const { store, committed, state, clock } = of;
  readSeq = 0;
  const tracer = startTracer({
    store: {
      readMeta: (name) => store.readMeta(name),
      writeMeta: (name, value) => store.writeMeta(name, value),
      readEvents: async (...place) => {
        const events = await store.readEvents(...place);
        readSeq = events.at(-1)?.seq ?? readSeq;
        return events;
      },
    },
    committed,
    log: silentLogger,
    lastEventSeq: () => state.lastEventSeq,
    wallMs: () => clock.wallMs(),
    exporter: openOtlp({
      url: collector.url,
      clusterId: state.clusterId,
      version: '1.2.3',
      timeoutMs: 60_000,
    }),
    isSampled: ratioSampler(ratio),
    shown: collector.url,
    timing: { gatherMs: 0, answerMs: 60_000, flushMs: 60_000, ...timing },
    onSpans: (result, count) => {
      counted[result] += count;
    },
  });
  onTestFinished(() => tracer.close());
  return tracer;
}

/** @param traceparent of the submit; empty: none */
function submit(traceparent = ''): Promise<JobId> {
  return submitWith(coordinator, traceparent === '' ? {} : { traceparent });
}

/** A first step, and a checkpoint. */
async function train({ loop, clock }: TestCoordinator, jobId: JobId): Promise<void> {
  clock.nowMs += 5_000;
  await loop.run(aCaller, (draft, nowMs) => {
    const of = { attempt: 1, nodeRank: 0 };
    applyJobEvent(draft, jobId, { kind: 'firstStep', ...of, step: 1, atMs: nowMs - 1_000 }, nowMs);
    const saved = { checkpoint: aCheckpoint(10, { savedAtMs: nowMs }), shared: false, afterStop: false };
    applyJobEvent(draft, jobId, { kind: 'checkpoint', ...of, ...saved }, nowMs);
  });
}

const namesOf = (jobId: string) =>
  collector.spans.filter(({ attributes }) => attributes['muster.job.id'] === jobId).map(({ name }) => name);

const whole = ['plan', 'claim', 'release', 'first_step', 'checkpoint', 'attempt', 'job'];

test('the trace of a traceparent reaches the collector, from the submit to the end, and events name it', async () => {
  trace(0);
  const jobId = await submit(sampled);
  await startJob(coordinator, jobId);
  await train(coordinator, jobId);
  await finishJob(coordinator, jobId);
  await vi.waitFor(() => expect(namesOf(jobId)).toEqual(whole));
  const { spans } = collector;
  expect(new Set(spans.map((span) => span.traceId))).toEqual(new Set([traceId]));
  const root = spans.find(({ name }) => name === 'job');
  expect(root).toMatchObject({
    spanId: spanIdOf(jobId, ''),
    parentSpanId: spanId,
    hasRemoteParent: true,
    error: null,
    attributes: { 'muster.job.name': 'train', 'muster.project': 'default', 'muster.job.state': 'succeeded' },
  });
  const attempt = spans.find(({ name }) => name === 'attempt');
  expect(attempt).toMatchObject({ parentSpanId: root?.spanId, hasRemoteParent: false });
  expect(attempt?.attributes).toMatchObject({ 'muster.nodes': ['node-1'], 'muster.attempt': 1 });
  const first = spans.find(({ name }) => name === 'first_step');
  expect(first).toMatchObject({ parentSpanId: attempt?.spanId, attributes: { 'muster.step': 1 } });
  expect((first?.endMs ?? 0) - (first?.startMs ?? 0)).toBe(4_000);
  expect(collector.resources[0]).toMatchObject({
    'service.name': 'muster-coordinator',
    'service.version': '1.2.3',
    'service.instance.id': 'test',
  });
  const events = await coordinator.store.readEvents(0, 1_000, jobId);
  for (const event of events) expect(cloudEventOf('test', event)).toMatchObject({ traceid: traceId });
});

test('the trace of a job that was requeued leads to that of the one before', async () => {
  trace(1);
  const first = await submit(sampled);
  await startJob(coordinator, first);
  await finishJob(coordinator, first);
  const { jobId: second } = await coordinator.api.requeueJob(first, 'again');
  await coordinator.api.stopJobs([second], '');
  await vi.waitFor(() => expect(namesOf(second)).toEqual(['plan', 'job']));
  const roots = collector.spans.filter(({ name }) => name === 'job');
  expect(roots.map(({ links }) => links)).toEqual([
    [],
    [{ traceId, spanId: spanIdOf(first, ''), attributes: { 'muster.relation': 'requeued_from' } }],
  ]);
});

test('after a restart in the middle no span comes twice, and the others belong to them', async () => {
  const before = trace(1);
  const jobId = await submit();
  await startJob(coordinator, jobId);
  await vi.waitFor(() => expect(namesOf(jobId)).toEqual(['plan', 'claim', 'release']));
  await before.close();
  // Not sent by anybody yet.
  await train(coordinator, jobId);
  const { memory } = coordinator;
  const next = await startTestCoordinator({ memory });
  onTestFinished(() => next.close());
  next.clock.nowMs = coordinator.clock.nowMs;
  trace(1, next);
  await finishJob(next, jobId);
  await vi.waitFor(() => expect(namesOf(jobId)).toEqual(whole));
  const ids = collector.spans.map((span) => span.spanId);
  expect(new Set(ids).size).toBe(ids.length);
  const parents = new Set(collector.spans.map((span) => span.parentSpanId));
  expect(parents).toEqual(new Set([attemptSpanIdOf(jobId, 1), spanIdOf(jobId, ''), '']));
  expect(new Set(collector.spans.map((span) => span.traceId))).toEqual(new Set([traceIdOf(jobId, null)]));
});

test('a collector that never answers keeps nobody from anything, and gets everything later', async () => {
  collector.answer = 'never';
  const hanging = trace(1, coordinator, { answerMs: 50, flushMs: 50 });
  const jobId = await submit();
  await startJob(coordinator, jobId);
  await train(coordinator, jobId);
  await finishJob(coordinator, jobId);
  expect(await coordinator.api.getJob(jobId)).toMatchObject({ state: 'succeeded' });
  await vi.waitFor(() => expect(counted.failed).toBeGreaterThan(0));
  await hanging.close();
  expect(collector.spans).toEqual([]);
  collector.answer = 200;
  trace(1);
  await vi.waitFor(() => expect(namesOf(jobId)).toEqual(whole));
  await vi.waitFor(() => expect(counted).toEqual({ sent: 7, failed: 0, dropped: 0 }));
});

test('what a stop finds unsent is sent in the time that a stop has', async () => {
  const tracer = trace(1, coordinator, { gatherMs: 3_600_000 });
  const [first, second] = [await submit(), await submit()];
  await startJob(coordinator, first);
  await vi.waitFor(() => expect(counted.sent).toBe(3));
  await coordinator.api.stopJobs([second], 'enough');
  await vi.waitFor(() => expect(readSeq).toBe(coordinator.state.lastEventSeq));
  // It has the spans, and waits for more.
  await tracer.close();
  expect(namesOf(second)).toEqual(['plan', 'job']);
});

test('a trace that is not recorded leaves nothing with the collector: by the ratio, and as its caller has decided', async () => {
  trace(0);
  const jobs = [await submit(), await submit(notSampled), await submit(sampled)];
  for (const jobId of jobs) await coordinator.api.stopJobs([jobId], '');
  await vi.waitFor(() => expect(collector.spans).toHaveLength(2));
  expect(jobs.map(namesOf)).toEqual([[], [], ['plan', 'job']]);
});

test('spans that the collector refuses are dropped, and those behind them follow', async () => {
  collector.answer = 400;
  trace(1);
  const jobId = await submit();
  await startJob(coordinator, jobId);
  await vi.waitFor(() => expect(counted.dropped).toBe(3));
  collector.answer = 200;
  await finishJob(coordinator, jobId);
  await vi.waitFor(() => expect(namesOf(jobId)).toEqual(['attempt', 'job']));
  await vi.waitFor(() => expect(counted).toEqual({ sent: 2, failed: 0, dropped: 3 }));
});

test('spans that nobody has taken for a day are dropped', async () => {
  await trace(1).close();
  const old = await submit();
  await coordinator.api.stopJobs([old], '');
  coordinator.clock.nowMs += 25 * 3_600_000;
  const fresh = await submit();
  await coordinator.api.stopJobs([fresh], '');
  trace(1);
  await vi.waitFor(() => expect(namesOf(fresh)).toEqual(['plan', 'job']));
  expect(namesOf(old)).toEqual([]);
  await vi.waitFor(() => expect(counted).toEqual({ sent: 2, failed: 0, dropped: 2 }));
});

test('a ratio records that share of the traces, and of one trace always the same', () => {
  const ids = Array.from({ length: 20_000 }, (_, index) => traceIdOf(`job_${index}`, null));
  const shareOf = (ratio: number) => ids.filter(ratioSampler(ratio)).length / ids.length;
  expect([shareOf(0), shareOf(1)]).toEqual([0, 1]);
  expect(shareOf(0.1)).toBeCloseTo(0.1, 1.7);
  expect(ids.filter(ratioSampler(0.1))).toEqual(ids.filter(ratioSampler(0.1)));
});
