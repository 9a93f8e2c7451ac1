import { MusterError } from '@muster/common/errors';
import { namedMetrics } from '@muster/common/metricNames';
import { expect, test } from 'vitest';
import { type AskedMetrics, planOf } from './plan.ts';
import { timeOf } from './timeRange.ts';

const nowMs = Date.parse('2026-03-01T12:00:00Z');
const plan = (asked: Partial<AskedMetrics>) =>
  planOf({ jobId: 'job_a', name: 'gpu_utilization', ...asked }, nowMs);

test.each([
  ['-30m', nowMs - 1_800_000],
  ['-1h30m', nowMs - 5_400_000],
  ['-90', nowMs - 90_000],
  ['now', nowMs],
  ['2026-03-01', Date.parse('2026-03-01T00:00:00Z')],
  ['2026-03-01T11:00:00Z', nowMs - 3_600_000],
  ['2026-03-01 11:00', nowMs - 3_600_000],
  ['2026-03-01T12:00:00+01:00', nowMs - 3_600_000],
  [String(nowMs), nowMs],
])('%s is a time', (text, ms) => {
  expect(timeOf('start_time', text, nowMs)).toBe(ms);
});

test.each(['', '30m', 'yesterday', '-', '-5x', '2026-13-01', '12', '-1e9h', `-${'9'.repeat(100)}`])(
  '"%s" is none, and the message shows what would be one',
  (text) => {
    expect(() => timeOf('start_time', text, nowMs)).toThrow(
      /^start_time: got ".*"; expected a time such as -30m/,
    );
  },
);

test('a question without more is for every value that is kept', () => {
  expect(plan({})).toMatchObject({
    job: 'job_a',
    fromMs: Number.NEGATIVE_INFINITY,
    toMs: Number.POSITIVE_INFINITY,
    shape: null,
  });
});

test('aggregation and steps', () => {
  expect(plan({ aggregation: 'max' }).shape).toEqual({
    aggregation: 'max',
    by: 'gpu',
    stepMs: null,
    toMs: nowMs,
  });
  expect(plan({ stepMs: 60_000, startTime: '-1h' })).toMatchObject({
    fromMs: nowMs - 3_600_000,
    shape: { aggregation: 'mean', stepMs: 60_000 },
  });
  expect(plan({ name: 'gpu_energy_joules', by: 'job' }).shape).toMatchObject({
    aggregation: 'sum',
    by: 'job',
  });
});

test('over several jobs there is a step and a beginning, and the values of a job become one', () => {
  const ofUser = plan({ jobId: '', user: 'ann' });
  expect(ofUser).toMatchObject({
    fromMs: nowMs - 6 * 3_600_000,
    shape: { by: 'job', stepMs: 90_000, aggregation: 'mean' },
  });
  expect(plan({ jobId: '', node: 'node-1', startTime: '-10m' }).shape).toMatchObject({
    by: 'gpu',
    stepMs: 10_000,
  });
  expect(plan({ jobId: '', name: 'jobs_queued' }).shape).toBeNull();
});

test('usual names of elsewhere are understood', () => {
  expect(plan({ name: 'gpu_memory_used' }).metric.name).toBe('gpu_memory_used_mb');
  expect(plan({ name: 'training_loss' }).metric.name).toBe('train_loss');
});

test.each<[Partial<AskedMetrics>, RegExp]>([
  [
    { name: 'gpu_utilisation' },
    /there is no metric "gpu_utilisation"; did you mean gpu_utilization\? The metrics are/,
  ],
  [{ name: 'x'.repeat(5_000) }, /there is no metric "x{80} …"; The metrics are/],
  [{ user: 'ann' }, /^user: gpu_utilization is asked for one job; omit user/],
  [{ jobId: '', attempt: 2 }, /^attempt: attempts are those of one job/],
  [{ name: 'jobs_queued' }, /^job_id: jobs_queued is a metric of the cluster/],
  [{ jobId: '', name: 'node_load1', project: 'p' }, /^project: node_load1 is a metric of nodes/],
  [{ name: 'train_loss', node: 'node-1' }, /^node: train_loss comes from the output of jobs/],
  [{ sinceMs: -1 }, /^since_ms: /],
  [{ sinceMs: 1, startTime: '-1m' }, /^start_time: since_ms is given too/],
  [{ startTime: '-1m', endTime: '-2m' }, /^start_time: .* is after the end/],
  [{ stepMs: 10 }, /^step_ms: got 10; expected 1000 at least/],
  [
    { stepMs: 1_000, startTime: '-30d' },
    /^step_ms: 1000 gives more than 11000 values in that time; use 236000/,
  ],
  [{ aggregation: 'meen' }, /^aggregation: got "meen"; expected mean, min, .*; did you mean mean\?/],
  [{ aggregation: 'sum' }, /^aggregation: values of gpu_utilization do not add up/],
  [{ by: 'gpus' }, /^by: got "gpus"; expected gpu, .*; did you mean gpu\?/],
])('%o is refused with the field and the remedy', (asked, message) => {
  expect(() => plan(asked)).toThrow(message);
});

test('whatever is asked, there is a plan or an error of the caller', () => {
  const texts = [undefined, '', '-30m', 'now', 'mean', 'job', '\u0000', 'é'.repeat(3_000), '-9e99', '1e15'];
  const numbers = [undefined, 0, -1, 1_000, 0.5, Number.MAX_SAFE_INTEGER];
  // Steps that have no common factor with the lengths: many different combinations.
  const pick = <Value>(values: readonly Value[], at: number) => values[at % values.length] as Value;
  for (let index = 0; index < 20_000; index += 1) {
    const asked: AskedMetrics = {
      jobId: pick(['', 'job_a'], index),
      name: pick([...namedMetrics.keys(), 'x', '__proto__', 'constructor'], index * 7),
      sinceMs: pick(numbers, index * 11),
      attempt: pick(numbers, index >> 3),
      node: pick(texts, index >> 2),
      user: pick(texts, index >> 4),
      project: pick(texts, index >> 5),
      startTime: pick(texts, index * 3),
      endTime: pick(texts, index >> 1),
      stepMs: pick(numbers, index >> 6),
      aggregation: pick(texts, index >> 7),
      by: pick(texts, index >> 8),
    };
    try {
      const { fromMs, toMs } = planOf(asked, nowMs);
      expect(Number.isNaN(fromMs) || Number.isNaN(toMs)).toBe(false);
    } catch (error) {
      expect(error).toBeInstanceOf(MusterError);
      expect((error as MusterError).code).toBe('invalid');
      expect((error as MusterError).message.length).toBeLessThan(2_000);
    }
  }
});
