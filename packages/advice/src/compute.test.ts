import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { checkpointMinutes, manageCompute } from './compute.ts';
import { aTrainingContext } from './file/contextFixture.ts';
import { readContext } from './file/readContext.ts';
import { gpuTable, withPrices } from './gpus.ts';

const advise = (given: Readonly<Record<string, unknown>>, gpus = gpuTable) =>
  manageCompute(aTrainingContext(given, 'manage_compute'), gpus);

/** One epoch over 1 GB of text, which is 250 million tokens at four bytes each. */
const sevenB = { model: { parameters: '7B' }, data_size_gb: 1 };

test('a fine-tune of 7 B parameters takes 4 × A100-80G and 4 to 8 hours', () => {
  const { recommended, cost_estimate: cost, tokens, checkpointIntervalMinutes } = advise(sevenB);
  expect(tokens).toBe(250e6);
  expect(recommended).toMatchObject({ gpu: 'A100-SXM4-80GB', gpuCount: 4, method: 'zero2', slowdown: 1 });
  // 6 × 7e9 × 250e6 operations on 4 × 312e12 a second, of which 50 % and 30 % are reached.
  const [least = 0, most = 0] = recommended?.durationRangeHours ?? [];
  expect([least.toFixed(2), most.toFixed(2)]).toEqual(['4.67', '7.79']);
  expect(Object.keys(cost ?? {})).toEqual(['hourly_cost_usd', 'estimated_duration_hours', 'total_cost_usd']);
  expect(cost?.hourly_cost_usd).toBe(20);
  expect(cost?.total_cost_usd).toBeCloseTo((20 * (10.5e18 / (4 * 312e12 * 0.4))) / 3_600, 6);
  expect(checkpointIntervalMinutes).toBe(60);
});

test.each([
  ['350M', 1, 'A100-SXM4-40GB'],
  ['3B', 1, 'A100-SXM4-80GB'],
  ['13B', 8, 'H100-SXM5-80GB'],
  // On 16, weights, gradients and optimizer alone would take 70 of the 72 GB that can be used.
  ['70B', 32, 'H100-SXM5-80GB'],
])('%s: %d × %s', (parameters, gpuCount, gpu) => {
  const context = {
    model: { parameters },
    training_config: { target_tokens: '1B' },
    compute_requirements: { interconnect: 'infiniband' },
  };
  expect(advise(context).recommended).toMatchObject({ gpuCount, gpu });
});

test('an own price wins, the longest name first', () => {
  const gpus = withPrices(gpuTable, [
    { name: 'A100', usdPerHour: 1 },
    { name: 'a100-sxm4-80gb', usdPerHour: 1.5 },
  ]);
  expect(gpus.map(({ usdPerHour }) => usdPerHour)).toEqual([0.35, 2.5, 1, 1.5, 8]);
  expect(advise(sevenB, gpus).cost_estimate?.hourly_cost_usd).toBe(6);
});

test('limits choose the cheapest that keeps them even at the lowest speed', () => {
  const { recommended } = advise({ ...sevenB, budget: { usd: 90, hours: 6 } });
  expect(recommended).toMatchObject({ gpu: 'H100-SXM5-80GB', gpuCount: 2, isWithinLimits: true });
  const tooSmall = advise({ ...sevenB, budget: { usd: 1, hours: 0.1 } });
  expect(tooSmall.recommended?.isWithinLimits).toBe(false);
  expect(tooSmall.reasons[0]).toBe(
    'Nothing is within the limits; this is the cheapest that fits into memory.',
  );
});

test('spot loses half an interval and a restart for each interruption of each node', () => {
  const context = { ...sevenB, spot: { price_factor: 0.5, interruptions_per_day: 2.4, restart_minutes: 30 } };
  const { spot, cost_estimate: cost } = advise(context);
  // 0.1 an hour, each of which loses half an hour of work and half an hour of restart.
  const hours = (cost?.estimated_duration_hours ?? 0) / 0.9;
  expect(spot?.estimated_duration_hours).toBeCloseTo(hours, 6);
  expect(spot?.interruptions).toBeCloseTo(0.1 * hours, 6);
  expect(spot?.lostHours).toBeCloseTo(0.1 * hours, 6);
  expect(spot?.total_cost_usd).toBeCloseTo(10 * hours, 6);
  expect(advise({ ...sevenB, spot: { interruptions_per_day: 100 } }).spot).toBeNull();
});

test('GPUs between which a step exchanges data for longer than it computes take longer', () => {
  const slow = advise({
    ...sevenB,
    compute_requirements: {
      gpu_type: 'a100',
      gpu_count: 16,
      interconnect: 'ethernet',
      interconnect_gb_per_s: 1,
    },
  });
  // ZeRO 2 moves 15 of 16 parts of 14 GB at 1 GB/s for each of 8 microbatches, and once for the weights; meanwhile 8 samples of 2,048 tokens
  // are computed.
  const exchanged = ((8 + 1) * 14 * 15) / 16;
  const computed = (6 * 7e9 * 8 * 2_048) / (312e12 * 0.4);
  expect(slow.recommended?.slowdown).toBeCloseTo(exchanged / computed, 6);
});

test('tensor parallelism waits for the activations of each layer', () => {
  const { recommended } = advise({ ...sevenB, compute_requirements: { gpu_type: 'v100', gpu_count: 4 } });
  // For each token 4 reductions in 32 layers, each of which moves 3 of 4 parts of 4,096 numbers of 2 bytes twice, at 150 GB/s.
  const exchanged = (4 * 32 * 2 * 4_096 * 2 * (3 / 4)) / 150e9;
  const computed = (6 * (7e9 / 4)) / (125e12 * 0.4);
  expect(recommended?.method).toBe('tensor');
  expect(recommended?.slowdown).toBeCloseTo(1 + exchanged / computed, 6);
});

test('the policy of scaling stays between what holds the model and what the batch divides among', () => {
  const { scalingPolicy } = advise({ ...sevenB, training_config: { batch_size: 8 } });
  expect(scalingPolicy).toMatchObject({ minGpus: 2, maxGpus: 8, counts: [2, 4, 8] });
});

test.each([
  [0.5, 10],
  [1, 30],
  [4, 60],
  [24, 60],
  [25, 120],
])('a job of %d hours saves every %d minutes', (hours, minutes) => {
  expect(checkpointMinutes(hours)).toBe(minutes);
});

test('any input gets an answer or a problem', () => {
  const input = fc.record({
    model: fc.record({ parameters: fc.integer({ min: 1e5, max: 1e13 }) }),
    data_size_gb: fc.double({ min: 0.001, max: 1e9, noNaN: true }),
    compute_requirements: fc.record(
      {
        gpu_type: fc.constantFrom('t4', 'v100', 'a100', 'h100'),
        gpu_count: fc.integer({ min: 1, max: 128 }),
        gpus_per_node: fc.integer({ min: 1, max: 16 }),
      },
      { requiredKeys: [] },
    ),
    training_config: fc.record({ batch_size: fc.integer({ min: 1, max: 5_000 }) }, { requiredKeys: [] }),
    budget: fc.record({ usd: fc.integer({ min: 1, max: 1e6 }) }, { requiredKeys: [] }),
  });
  fc.assert(
    fc.property(input, (given) => {
      const read = readContext({ training_context: given }, 'manage_compute', gpuTable);
      if (!read.ok) {
        expect(read.findings.map(({ path }) => path[0])).toContain('training_context');
        return;
      }
      const { recommended, cost_estimate: cost, alternatives } = manageCompute(read.context, gpuTable);
      expect(cost === null).toBe(recommended === null);
      for (const option of [...(recommended === null ? [] : [recommended]), ...alternatives]) {
        expect(Number.isFinite(option.total_cost_usd)).toBe(true);
        expect(option.durationRangeHours[0]).toBeLessThan(option.durationRangeHours[1]);
      }
    }),
    { numRuns: 100 },
  );
});
