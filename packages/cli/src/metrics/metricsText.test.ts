import { type MetricPoint, type MetricSeries, readingIntervalMs } from '@muster/common/telemetry';
import { expect, test } from 'vitest';
import { aView } from '../testing/testContext.ts';
import { formatGpuMetrics, formatMetric } from './metricsText.ts';
import { bucketMeans, summarize, summarizeAll, timeSpan } from './summary.ts';

const points = (...values: readonly (number | null)[]): readonly MetricPoint[] =>
  values.map((value, index) => ({ atMs: (index + 1) * readingIntervalMs, value }));

function aSeries(given: Partial<MetricSeries>): MetricSeries {
  return { attempt: 1, nodeRank: 0, node: 'node-1', gpuUuid: 'GPU-0', points: [], ...given };
}

const plain = aView();

test('what was not read counts nowhere', () => {
  expect(summarize(points(null, 10, null, 30, null))).toEqual({
    min: 10,
    mean: 20,
    max: 30,
    last: 30,
    total: 40,
  });
  expect(summarize(points(null))).toEqual({ min: null, mean: null, max: null, last: null, total: null });
  const series = [aSeries({ points: points(0, 100) }), aSeries({ points: points(20) }), aSeries({})];
  expect(summarizeAll(series)).toEqual({ mean: 40, max: 100, last: 60, total: 120 });
});

test('a chart has a bar per reading while there is room, means where there is not, and gaps stay gaps', () => {
  const span = timeSpan([aSeries({ points: points(1, 2, 3, 4) })]);
  expect(span).toEqual({ fromMs: 10_000, toMs: 40_000 });
  expect(bucketMeans(points(1, null, 3, 4), { fromMs: 10_000, toMs: 40_000 }, 4)).toEqual([1, null, 3, 4]);
  expect(bucketMeans(points(1, 2, 3, 5), { fromMs: 10_000, toMs: 40_000 }, 2)).toEqual([1.5, 4]);
  expect(bucketMeans(points(7), { fromMs: 10_000, toMs: 10_000 }, 1)).toEqual([7]);
  expect(timeSpan([aSeries({})])).toBeNull();
});

test('GPUs stand below each other on one scale and one stretch of time, by rank', () => {
  const series = [
    aSeries({ nodeRank: 1, gpuUuid: 'GPU-1', points: points(null, null, 100, 50) }),
    aSeries({ points: points(0, 30, null, 100) }),
  ];
  expect(formatMetric({ unit: 'percent', series }, plain)).toBe(
    [
      'RANK  NODE    GPU     LAST   MIN  MEAN    MAX  40 s, 0 to 100 %',
      '   0  node-1  GPU-0  100 %   0 %  43 %  100 %  ▁▃ █',
      '   1  node-1  GPU-1   50 %  50 %  75 %  100 %    █▄',
      '',
    ].join('\n'),
  );
  const ascii = formatMetric({ unit: 'percent', series }, { ...plain, unicode: false });
  expect(ascii).toMatch(/ {2}_- #\n/);
});

test('several attempts are distinguished, and units are those of the metric', () => {
  const series = [2, 1].map((attempt) => aSeries({ attempt, points: points(40_960, 71_680) }));
  const text = formatMetric({ unit: 'MiB', series }, plain);
  expect(text.split('\n').slice(1, 3)).toEqual([
    '      1     0  node-1  GPU-0  70 GiB  40 GiB  55 GiB  70 GiB  ▅█',
    '      2     0  node-1  GPU-0  70 GiB  40 GiB  55 GiB  70 GiB  ▅█',
  ]);
});

test('energy adds up, and has no mean', () => {
  const text = formatMetric(
    { unit: 'joules', series: [aSeries({ points: points(5_000, null, 7_500) })] },
    plain,
  );
  expect(text.split('\n').slice(0, 2)).toEqual([
    'RANK  NODE    GPU    TOTAL  30 s, 0 to 7500 J',
    '   0  node-1  GPU-0  13 kJ  ▆ █',
  ]);
});

test('of energy there is the sum only', () => {
  const series = [aSeries({ points: points(100, 200) })];
  const views = new Map([
    ['gpu_power_watts', { unit: 'watts', series }],
    ['gpu_energy_joules', { unit: 'joules', series }],
  ] as const);
  expect(formatGpuMetrics(views, plain)).toBe(
    [
      'METRIC              MEAN   PEAK          LAST',
      'gpu_power_watts    150 W  200 W         200 W',
      'gpu_energy_joules                300 J in all',
      '',
    ].join('\n'),
  );
});

test('rows stand by their steps, every one of a short run, and buckets count as many as they are', () => {
  const rows = [1, 3, 2].map((value, step) => ({ atMs: 7, value, step }));
  const text = formatMetric({ unit: 'loss', series: [aSeries({ gpuUuid: '', points: rows })] }, plain);
  expect(text.split('\n').slice(0, 2)).toEqual([
    'RANK  NODE    LAST  MIN  MEAN  MAX  steps 0 to 2, 0 to 3',
    '   0  node-1     2    1     2    3  ▃█▆',
  ]);
  const bucket = { rows: 3, firstStep: 0, min: 1, max: 9, last: 2 };
  expect(
    summarize([
      { atMs: 1, value: 4, step: 2, bucket },
      { atMs: 2, value: 8, step: 3 },
    ]),
  ).toMatchObject({
    min: 1,
    mean: 5,
    max: 9,
    last: 8,
  });
});

test('UUIDs are cut where their beginnings differ, and whole where they do not', () => {
  const uuids = ['GPU-11111111-aaaa', 'GPU-22222222-aaaa'];
  const text = (gpuUuids: readonly string[]) =>
    formatMetric({ unit: 'watts', series: gpuUuids.map((gpuUuid) => aSeries({ gpuUuid })) }, plain);
  expect(text(uuids)).toContain('GPU-11111111  ');
  expect(text(['GPU-11111111-aaaa', 'GPU-11111111-bbbb'])).toContain('GPU-11111111-bbbb');
});

test('a day of readings fits into 80 columns; where no chart fits, the numbers stand alone', () => {
  const series = [aSeries({ node: 'a-node-with-a-long-name', points: points(...Array(8_640).fill(50)) })];
  const at = (width: number) => formatMetric({ unit: 'percent', series }, { ...plain, width });
  const widest = (text: string) => Math.max(...text.split('\n').map((line) => line.length));
  expect(widest(at(80))).toBeLessThanOrEqual(80);
  expect(at(80)).toMatch(/▄{8,}/);
  expect(at(50)).not.toContain('▄');
});
