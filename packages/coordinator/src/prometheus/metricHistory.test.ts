import { metricNamed } from '@muster/common/metricNames';
import { expect, test } from 'vitest';
import { historyFrom } from './metricHistory.ts';

const metric = metricNamed('gpu_utilization') ?? expect.fail('there is no such metric');
const question = { metric, jobIds: ['job_a'], nodes: null, attempt: null, stepMs: 60_000, condensed: null };
const range = { fromMs: 1_000, toMs: 121_000, withJobs: true };

/** A Prometheus that answers so. */
function answering(answer: () => Response | Promise<Response>) {
  const asked: [string, string][] = [];
  const read = historyFrom('http://p:9090/prefix/', (url, { body }) => {
    asked.push([url, body.toString()]);
    return Promise.resolve(answer());
  });
  return { asked, ask: () => read(question, range) };
}

const json = (value: unknown, status = 200) => new Response(JSON.stringify(value), { status });

test('it asks for the range, below the path that was given', async () => {
  const { asked, ask } = answering(() => json({ status: 'success', data: { result: [] } }));
  expect(await ask()).toEqual([]);
  const [[url, body] = ['', '']] = asked;
  expect(url).toBe('http://p:9090/prefix/api/v1/query_range');
  expect(Object.fromEntries(new URLSearchParams(body))).toEqual({
    query: 'DCGM_FI_DEV_GPU_UTIL{muster_job=~"job_a"}',
    start: '1',
    end: '121',
    step: '60',
    timeout: '10s',
  });
});

test.each<[string, () => Response | Promise<Response>, RegExp]>([
  ['refuses', () => json({ status: 'error', error: 'bad query' }, 400), /HTTP 400: bad query$/],
  ['is another server', () => new Response('<html>', { status: 200 }), /HTTP 200$/],
  ['has another form', () => json({ status: 'success', data: 7 }), /the answer is not one of Prometheus$/],
  ['never ends', endless, /the answer is larger than \d+ bytes/],
  [
    'is away',
    () => Promise.reject(new TypeError('fetch failed', { cause: new Error('connect ECONNREFUSED') })),
    /fetch failed: connect ECONNREFUSED$/,
  ],
  ['is slow', () => Promise.reject(new DOMException('late', 'TimeoutError')), /no answer within 10 s$/],
])('a Prometheus that %s costs the older values, and the sentence says why', async (_, answer, why) => {
  const answered = await answering(answer).ask();
  expect(answered).toMatch(/^earlier values are missing: Prometheus at http:\/\/p:9090\/prefix\/: /);
  expect(answered).toMatch(why);
});

function endless(): Response {
  const piece = new Uint8Array(4 * 1024 * 1024).fill(32);
  return new Response(new ReadableStream({ pull: (controller) => controller.enqueue(piece) }));
}

test('what has no form of a sample is left out', async () => {
  const result = [null, {}, { metric: {}, values: [[1, '2'], ['x', 1], null] }];
  const { ask } = answering(() => json({ status: 'success', data: { result } }));
  expect(await ask()).toMatchObject([{ points: [{ atMs: 1_000, value: 2 }] }]);
});

test('of many questions at once only some are asked', async () => {
  const waiting: (() => void)[] = [];
  const { asked, ask } = answering(
    () =>
      new Promise((resolve) =>
        waiting.push(() => resolve(json({ status: 'success', data: { result: [] } }))),
      ),
  );
  const answers = Array.from({ length: 20 }, ask);
  expect(asked).toHaveLength(8);
  for (const answer of waiting) answer();
  const all = await Promise.all(answers);
  expect(all.filter((each) => typeof each === 'string')).toHaveLength(12);
  expect(all.at(-1)).toMatch(/8 questions are being answered; ask again in a moment$/);
});
