import type { EventKind } from '@muster/common/eventKinds';
import { attemptSpanIdOf, spanIdOf, traceIdOf } from '@muster/common/traceContext';
import { expect, test } from 'vitest';
import type { StoredEvent } from '../model.ts';
import { type JobSpan, type OpenSpans, spansAfter } from './spans.ts';

const jobId = 'job_0123456789ab';
const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

type EventFields = readonly [kind: EventKind, timeMs: number, data?: Readonly<Record<string, unknown>>];

function eventsOf(fields: readonly EventFields[], more: Partial<StoredEvent> = {}): readonly StoredEvent[] {
  return fields.map(([kind, timeMs, data = {}], index) => ({
    kind,
    subject: jobId,
    data: { name: 'train', ...data },
    seq: index + 10,
    id: `c-${index}`,
    subjectSeq: index + 1,
    timeMs,
    by: 'admin',
    peer: '',
    ...more,
  }));
}

/** Every span, in the order in which they end. */
function spansOf(events: readonly StoredEvent[]): readonly JobSpan[] {
  let open: OpenSpans | null = null;
  const spans: JobSpan[] = [];
  for (const event of events) {
    const step = spansAfter(open, event);
    open = step.open;
    spans.push(...step.spans);
  }
  return spans;
}

const cause = { kind: 'cuda_oom', message: 'rank 0 ran out of memory' };
const allocated = (attempt: number, ...nodes: readonly string[]) => ({
  attempt,
  tasks: nodes.map((node) => ({ node, gpuUuids: [] })),
});

/** Two attempts: the first fails while it runs, the second succeeds. */
const story: readonly EventFields[] = [
  ['job.submitted', 1_000, { project: 'vision' }],
  ['attempt.allocated', 2_000, allocated(1, 'node-1', 'node-2')],
  ['attempt.checked', 2_500, { attempt: 1 }],
  ['attempt.released', 3_000, { attempt: 1 }],
  ['attempt.running', 4_000, { attempt: 1 }],
  ['training.started', 9_500, { attempt: 1, step: 1, atMs: 9_000 }],
  [
    'checkpoint.saved',
    20_000,
    { attempt: 1, checkpoint: 'step_10', step: 10, bytes: 5, saveDurationMs: 3_000 },
  ],
  ['task.ended', 30_000, { attempt: 1 }],
  ['job.stopping', 30_000, { attempt: 1, next: 'queued', cause }],
  ['attempt.ended', 31_000, { attempt: 1, cause }],
  ['job.queued', 31_000, { cause }],
  ['attempt.allocated', 35_000, allocated(2, 'node-1')],
  ['attempt.released', 36_000, { attempt: 2 }],
  ['attempt.running', 37_000, { attempt: 2 }],
  ['attempt.ended', 50_000, { attempt: 2, cause: null }],
  ['job.succeeded', 50_000],
];

test('a job is one trace of spans, from its submit to its end', () => {
  const spans = spansOf(eventsOf(story));
  const shown = spans.map(({ name, startMs, endMs, attributes, error }) => [
    name,
    attributes['muster.attempt'],
    startMs,
    endMs,
    error,
  ]);
  expect(shown).toEqual([
    ['plan', 1, 1_000, 2_000, null],
    ['claim', 1, 2_000, 3_000, null],
    ['release', 1, 3_000, 4_000, null],
    ['first_step', 1, 4_000, 9_000, null],
    ['checkpoint', 1, 17_000, 20_000, null],
    ['stop', 1, 30_000, 31_000, null],
    ['attempt', 1, 2_000, 31_000, cause.message],
    ['plan', 2, 31_000, 35_000, null],
    ['claim', 2, 35_000, 36_000, null],
    ['release', 2, 36_000, 37_000, null],
    ['attempt', 2, 35_000, 50_000, null],
    ['job', undefined, 1_000, 50_000, null],
  ]);
  expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set([traceIdOf(jobId, null)]));
  expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(spans.length);
  const [root] = spans.toReversed();
  expect(root).toMatchObject({ parent: null, spanId: spanIdOf(jobId, '') });
  expect(root?.attributes).toEqual({
    'muster.job.id': jobId,
    'muster.job.name': 'train',
    'muster.project': 'vision',
    'muster.job.state': 'succeeded',
    'muster.attempts': 2,
  });
  const first = spans.find(({ name }) => name === 'attempt');
  expect(first).toMatchObject({
    spanId: attemptSpanIdOf(jobId, 1),
    parent: { spanId: root?.spanId, isRemote: false },
  });
  expect(first?.attributes).toMatchObject({
    'muster.nodes': ['node-1', 'node-2'],
    'muster.cause': 'cuda_oom',
  });
  const checkpoint = spans.find(({ name }) => name === 'checkpoint');
  expect(checkpoint?.parent?.spanId).toBe(first?.spanId);
  expect(checkpoint?.attributes).toMatchObject({
    'muster.checkpoint': 'step_10',
    'muster.step': 10,
    'muster.checkpoint.bytes': 5,
  });
});

test('the spans of the rest are the same, whoever has read the beginning', () => {
  const events = eventsOf(story);
  const whole = spansOf(events);
  for (let at = 1; at < events.length; at += 1) {
    let open: OpenSpans | null = null;
    for (const event of events.slice(0, at)) ({ open } = spansAfter(open, event));
    // As if it had been written down in between.
    open = JSON.parse(JSON.stringify(open)) as OpenSpans | null;
    const rest: JobSpan[] = [];
    for (const event of events.slice(at)) {
      const step = spansAfter(open, event);
      open = step.open;
      rest.push(...step.spans);
    }
    expect(rest).toEqual(whole.slice(whole.length - rest.length));
  }
});

test('a traceparent of the submit is the trace, and the parent of the root', () => {
  const spans = spansOf(eventsOf(story, { traceparent }));
  expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set(['0af7651916cd43dd8448eb211c80319c']));
  expect(spans.at(-1)?.parent).toEqual({ spanId: 'b7ad6b7169203331', isRemote: true });
});

test('a job that continues another one says which, in its root', () => {
  const from = (data: Readonly<Record<string, unknown>>) =>
    spansOf(
      eventsOf([
        ['job.submitted', 1_000, data],
        ['job.cancelled', 2_000],
      ]),
    ).map(({ follows = [] }) => follows);
  const [first, second] = ['job_00000000000a', 'job_00000000000b'];
  expect(from({})).toEqual([[], []]);
  expect(from({ requeuedFrom: first, resumedFrom: { jobId: first } }).at(-1)).toEqual([
    { jobId: first, relation: 'requeued_from' },
  ]);
  expect(from({ requeuedFrom: first, resumedFrom: { jobId: second } }).at(-1)).toEqual([
    { jobId: first, relation: 'requeued_from' },
    { jobId: second, relation: 'resumed_from' },
  ]);
});

test('what has not come to its end ends with its attempt, and says why', () => {
  const unprepared = spansOf(
    eventsOf([
      ...story.slice(0, 2),
      ['attempt.ended', 8_000, { attempt: 1, cause }],
      ['job.failed', 8_000, { cause }],
    ]),
  );
  expect(unprepared.map(({ name, endMs, error }) => [name, endMs, error])).toEqual([
    ['plan', 2_000, null],
    ['claim', 8_000, cause.message],
    ['attempt', 8_000, cause.message],
    ['job', 8_000, cause.message],
  ]);
  const unstarted = spansOf(
    eventsOf([...story.slice(0, 4), ['attempt.ended', 8_000, { attempt: 1, cause }]]),
  );
  expect(unstarted.map(({ name }) => name)).toEqual(['plan', 'claim', 'release', 'attempt']);
  const unplanned = spansOf(
    eventsOf([
      ['job.submitted', 1_000],
      ['job.cancelled', 3_000, { cause }],
    ]),
  );
  expect(unplanned.map(({ name, startMs, endMs, error }) => [name, startMs, endMs, error])).toEqual([
    ['plan', 1_000, 3_000, null],
    ['job', 1_000, 3_000, null],
  ]);
});

test('a job whose first events are gone, and a clock that was set back, give no span that ends before it begins', () => {
  const late = spansOf(eventsOf(story.slice(6)));
  expect(late.map(({ name }) => name)).toEqual(['plan', 'claim', 'release', 'attempt', 'job']);
  const backwards = spansOf(
    eventsOf(story.map(([kind, timeMs, data = {}]) => [kind, 60_000 - timeMs, data])),
  );
  for (const { startMs, endMs } of [...late, ...backwards]) expect(endMs).toBeGreaterThanOrEqual(startMs);
  expect(backwards).toHaveLength(12);
});
