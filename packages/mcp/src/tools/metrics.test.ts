import type { MusterApi } from '@muster/common/wire/client';
import { expect, test } from 'vitest';
import { answerBytesMax, jsonBytes } from '../size.ts';
import { fakeApi, openSession, someMs } from '../testing/session.ts';

const points = Array.from({ length: 500 }, (_, index) => ({ atMs: someMs + index * 1000, value: index }));
const queries: Parameters<MusterApi['queryMetrics']>[0][] = [];
const api = fakeApi({
  queryMetrics: (query) => {
    queries.push(query);
    const one = { attempt: 1, nodeRank: 0, node: 'gpu-1', points };
    const series = Array.from({ length: 8 }, (_, gpu) => ({ ...one, gpuUuid: `GPU-${gpu}` }));
    const origin = { name: query.name, sources: [], notes: ['nothing before noon'] };
    return Promise.resolve({ unit: 'percent', series, origin });
  },
});

test('the usual call is that of the last half hour, under the names that agents use', async () => {
  const session = await openSession(api);
  const given = { metric: 'gpu_memory_used', workloadId: 'job_1', start_time: '-30m' };
  const { data } = await session.call('metrics_query', given);
  expect(queries.at(-1)).toEqual({ name: 'gpu_memory_used_mb', jobId: 'job_1', startTime: '-30m' });
  expect(data).toMatchObject({
    metric: 'gpu_memory_used_mb',
    seriesTotal: 8,
    notes: ['nothing before noon'],
  });
  const [first] = (data as { series: { last: number; mean: number; points: { value: number }[] }[] }).series;
  expect(first).toMatchObject({ last: 499, mean: 249.5 });
  expect(first?.points.at(-1)).toMatchObject({ value: 499 });
});

test('cursors lead through all series, below the size of an answer', async () => {
  const session = await openSession(api);
  const gpus: string[] = [];
  let cursor: string | null = null;
  do {
    const given = { metric: 'gpu_utilization', ...(cursor === null ? {} : { cursor }) };
    const { data, text } = await session.call('metrics_query', given);
    expect(jsonBytes(data) + text.length).toBeLessThan(answerBytesMax);
    const { series, nextCursor }: { series: { gpu: string }[]; nextCursor: string | null } = data;
    gpus.push(...series.map(({ gpu }) => gpu));
    cursor = nextCursor;
  } while (cursor !== null);
  expect(gpus).toEqual(Array.from({ length: 8 }, (_, gpu) => `GPU-${gpu}`));
});

test('a wrong name is answered with those that there are', async () => {
  const { text } = await (await openSession(api)).call('metrics_query', { metric: 'gpu_utilisation' });
  expect(text).toContain('there is no metric "gpu_utilisation". Did you mean gpu_utilization?');
});
