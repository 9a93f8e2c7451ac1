import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import { someRows } from '../rows/rowFixture.ts';
import { startJob, submitJob } from '../rpc/jobFixture.ts';
import { ask, problemIn } from './apiFixture.ts';

let coordinator: TestCoordinator;
const abort = { controller: new AbortController() };
beforeEach(async () => {
  abort.controller = new AbortController();
  coordinator = await startTestCoordinator({ api: {} });
});
afterEach(async () => {
  abort.controller.abort();
  await coordinator.close();
});

interface SseEvent {
  readonly id: string | null;
  readonly name: string | null;
  readonly data: Readonly<Record<string, unknown>>;
}

/** What a client of server-sent events has got so far. */
async function follow(
  path: string,
  headers: Readonly<Record<string, string>> = {},
  token = coordinator.adminToken,
) {
  const events: SseEvent[] = [];
  const answer = await fetch(`${coordinator.apiUrl}/api/v1${path}`, {
    headers: { authorization: `Bearer ${token}`, ...headers },
    signal: abort.controller.signal,
  });
  expect([answer.status, answer.headers.get('content-type')]).toEqual([
    200,
    'text/event-stream; charset=utf-8',
  ]);
  const done = (async () => {
    let rest = '';
    for await (const chunk of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      const parts = `${rest}${chunk}`.split('\n\n');
      rest = parts.pop() ?? '';
      events.push(...parts.filter((part) => !part.startsWith(':')).map(eventOf));
    }
  })().catch(() => {});
  return { events, done };
}

function eventOf(text: string): SseEvent {
  const fields = new Map(text.split('\n').map((line) => line.split(/: (.*)/s) as [string, string]));
  const data = JSON.parse(fields.get('data') ?? '{}') as SseEvent['data'];
  return { id: fields.get('id') ?? null, name: fields.get('event') ?? null, data };
}

const typesOf = (events: readonly SseEvent[]) => events.map(({ data }) => data['type']);

test('events are those of `muster events`, as they are committed, and resumed after the last one', async () => {
  const first = await submitJob(coordinator, 'r1');
  const all: unknown[] = [];
  for await (const { cloudEvent } of coordinator.api.watchEvents({ sinceSeq: 0 })) all.push(cloudEvent);
  const { events } = await follow('/events/stream');
  await vi.waitFor(() => expect(events.map(({ data }) => data)).toEqual(all));
  const lastEventId = events.at(-1)?.id ?? '';
  expect(lastEventId).toBe(events.at(-1)?.data['sequence']);

  await coordinator.api.stopJobs([first]);
  await vi.waitFor(() => expect(typesOf(events)).toContain('muster.job.cancelled'));
  const resumed = await follow('/events/stream', { 'last-event-id': lastEventId });
  await vi.waitFor(() => expect(resumed.events).toEqual(events.slice(all.length)));
});

test('a stream that is not to follow says that it is over', async () => {
  await submitJob(coordinator, 'r1');
  const { events, done } = await follow('/events/stream?follow=false');
  await done;
  expect(events.at(-1)).toEqual({ id: null, name: 'end', data: {} });
  expect(events.length).toBeGreaterThan(1);
});

test('what a stream cannot begin with is an answer of its own', async () => {
  const wrong = await ask(coordinator, 'GET /events/stream', { headers: { 'last-event-id': 'latest' } });
  expect([wrong.status, problemIn(wrong).code]).toEqual([400, 'invalid_argument']);
  const logs = await ask(coordinator, 'GET /jobs/none/logs/stream');
  expect([logs.status, logs.type]).toEqual([404, 'application/problem+json; charset=utf-8']);
  expect((await ask(coordinator, 'GET /events/stream', { token: null })).status).toBe(401);
});

test('lines of output come as `muster logs -o json` prints them, and are resumed to the byte', async () => {
  const jobId = await submitJob(coordinator, 'r1');
  await startJob(coordinator, jobId);
  const task = { jobId, attempt: 1, nodeRank: 0 };
  await coordinator.logs.append(task, 0, Buffer.from('one\ntwo\nthr'));
  const { events } = await follow(`/jobs/${jobId}/logs/stream`);
  const line = (text: string, position: number) => ({
    id: `1.0=${position}`,
    name: null,
    data: { attempt: 1, nodeRank: 0, line: text },
  });
  await vi.waitFor(() => expect(events).toEqual([line('one', 4), line('two', 8)]));
  await coordinator.logs.append(task, 11, Buffer.from('ee\nfour\n'));
  const resumed = await follow(`/jobs/${jobId}/logs/stream`, { 'last-event-id': '1.0=4' });
  const rest = [line('two', 8), line('three', 14), line('four', 19)];
  await vi.waitFor(() => expect(resumed.events).toEqual(rest));
  await vi.waitFor(() => expect(events).toEqual([line('one', 4), ...rest]));
});

test('values of a metric come as they arrive, and are resumed after the last one', async () => {
  const jobId = await submitJob(coordinator, 'r1');
  await startJob(coordinator, jobId);
  const task = { jobId, attempt: 1, nodeRank: 0 };
  const append = (from: number, to: number) =>
    coordinator.rowKeeping.rows.append(task, someRows(from, to), 1e9, 1e15);
  await append(0, 2);
  const path = `/jobs/${jobId}/metrics/train_loss/stream`;
  const { events } = await follow(`${path}?startTime=1000000000`);
  await vi.waitFor(() => expect(events).toHaveLength(1));
  expect(events[0]).toMatchObject({
    id: '1000000000,1.0=200',
    data: { unit: 'loss', series: [{ attempt: 1, nodeRank: 0, points: [{ step: 0 }, { step: 1 }] }] },
  });
  await append(2, 3);
  await vi.waitFor(() => expect(events).toHaveLength(2));
  const resumed = await follow(path, { 'last-event-id': events[0]?.id ?? '' });
  await vi.waitFor(() => expect(resumed.events).toEqual(events.slice(1)));
  coordinator.clock.nowMs += 20_000;
  const whole = await follow(
    `${path}?startTime=1000000000&stepMs=1000000000&aggregation=min&by=job&follow=false`,
  );
  await whole.done;
  expect(whole.events.map(({ name }) => name)).toEqual([null, 'end']);
  expect(whole.events[0]).toMatchObject({
    id: expect.stringMatching(/^\d+$/),
    data: { unit: 'loss', series: [{ points: [{ step: 0 }] }] },
  });
  const ended = await follow('/metrics/jobs_queued/stream?follow=false');
  await ended.done;
  expect(ended.events.at(-1)?.name).toBe('end');
  const wrong = await ask(coordinator, `GET ${path}`, { headers: { 'last-event-id': 'latest' } });
  expect([wrong.status, problemIn(wrong).detail]).toEqual([
    400,
    expect.stringMatching(/^position: got "latest"/),
  ]);
});

test('a stream ends with a reason when its token is revoked', async () => {
  await coordinator.api.addUser({ name: 'vera', role: 'viewer', projects: [] });
  const { token } = await coordinator.api.createUserToken({
    user: 'vera',
    label: 'watch',
    projects: [],
    verbs: [],
  });
  const { events, done } = await follow('/events/stream?sinceSeq=-1', {}, token);
  await coordinator.api.removeUser('vera');
  await done;
  expect(events.at(-1)).toMatchObject({ name: 'problem', data: { status: 401, code: 'unauthenticated' } });
});
