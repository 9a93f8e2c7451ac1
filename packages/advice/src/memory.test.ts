import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  activationBytes,
  type MemoryQuestion,
  memoryOf,
  type ParallelMethod,
  parallelMethods,
} from './memory.ts';

/** Without activations to speak of. */
function modelStates(parameters: number, method: ParallelMethod, data: number): string {
  const { parametersBytes, gradientsBytes, optimizerBytes } = memoryOf({
    shape: { parameters, layers: 1, hiddenSize: 1, attentionHeads: 1, sequenceLength: 1, isDerived: false },
    precision: 'fp16',
    optimizer: 'adam',
    method,
    degrees: { data, tensor: 1, pipeline: 1 },
    microBatch: 1,
    recomputation: 'none',
  });
  return ((parametersBytes + gradientsBytes + optimizerBytes) / 1e9).toFixed(1);
}

test.each([
  // Figure 1 of the ZeRO paper: 7.5 B parameters, Adam in mixed precision, 64 GPUs.
  ['ddp', 7.5e9, 64, '120.0'],
  ['zero1', 7.5e9, 64, '31.4'],
  ['zero2', 7.5e9, 64, '16.6'],
  ['zero3', 7.5e9, 64, '1.9'],
  ['fsdp', 7.5e9, 64, '1.9'],
  // Its table 1: 128 B on 64 and 1 T on 1,024 GPUs.
  ['zero1', 128e9, 64, '536.0'],
  ['zero2', 128e9, 64, '284.0'],
  ['zero3', 128e9, 64, '32.0'],
  ['zero3', 1e12, 1_024, '15.6'],
] as const)(
  '%s of %d parameters on %d GPUs takes %s GB, as the ZeRO paper says',
  (method, parameters, data, gb) => {
    expect(modelStates(parameters, method, data)).toBe(gb);
  },
);

/** GPT-3 of the Korthikanti paper: table 3, with tensor parallelism over 8 GPUs. */
const gpt3 = {
  shape: {
    parameters: 175e9,
    layers: 96,
    hiddenSize: 12_288,
    attentionHeads: 96,
    sequenceLength: 2_048,
    isDerived: false,
  },
  precision: 'fp16',
  microBatch: 1,
} as const;
const one = { data: 1, tensor: 1, pipeline: 1 };

test('activations are those of the Korthikanti paper', () => {
  // s·b·h = 25,165,824 bytes; 5·a·s/h = 80, as the paper says of GPT-3; 96 layers.
  expect(activationBytes({ ...gpt3, degrees: one, recomputation: 'none' })).toBe(25_165_824 * 96 * (34 + 80));
  expect(activationBytes({ ...gpt3, degrees: one, recomputation: 'selective' })).toBe(25_165_824 * 96 * 34);
  // And one layer, which is whole while it is recomputed.
  expect(activationBytes({ ...gpt3, degrees: one, recomputation: 'full' })).toBe(25_165_824 * (96 * 2 + 114));
  const divided = { data: 1, tensor: 8, pipeline: 1 };
  expect(activationBytes({ ...gpt3, degrees: divided, recomputation: 'none' })).toBe(25_165_824 * 12 * 114);
});

test('Megatron-LM with its distributed optimizer takes 6 + 12/d bytes a parameter in bf16', () => {
  const { parametersBytes, gradientsBytes, optimizerBytes } = memoryOf({
    ...gpt3,
    precision: 'bf16',
    optimizer: 'adamw',
    method: 'pipeline',
    degrees: { data: 4, tensor: 8, pipeline: 16 },
    recomputation: 'full',
  });
  expect(parametersBytes + gradientsBytes + optimizerBytes).toBeCloseTo((175e9 / 128) * (6 + 12 / 4), 0);
});

test('more GPUs never take more memory of each', () => {
  const question = fc.record({
    parameters: fc.integer({ min: 100_000, max: 1e12 }),
    layers: fc.integer({ min: 1, max: 200 }),
    heads: fc.integer({ min: 1, max: 128 }),
    sequenceLength: fc.integer({ min: 1, max: 100_000 }),
    precision: fc.constantFrom('fp32', 'fp16', 'bf16'),
    optimizer: fc.constantFrom('adamw', 'sgd', 'adam8bit'),
    method: fc.constantFrom(...parallelMethods),
    recomputation: fc.constantFrom('none', 'selective', 'full'),
    degrees: fc.record({
      data: fc.integer({ min: 1, max: 512 }),
      tensor: fc.integer({ min: 1, max: 8 }),
      pipeline: fc.integer({ min: 1, max: 32 }),
    }),
    grown: fc.constantFrom('data', 'tensor', 'pipeline'),
    factor: fc.integer({ min: 2, max: 5 }),
  });
  fc.assert(
    fc.property(question, ({ parameters, layers, heads, sequenceLength, grown, factor, ...rest }) => {
      const shape = {
        parameters,
        layers,
        hiddenSize: 128 * heads,
        attentionHeads: heads,
        sequenceLength,
        isDerived: false,
      };
      const less: MemoryQuestion = { ...rest, shape, microBatch: 1 };
      const more = { ...less, degrees: { ...less.degrees, [grown]: factor * less.degrees[grown] } };
      const slack = 1 + 1e-9;
      expect(memoryOf(more).totalBytes).toBeLessThanOrEqual(memoryOf(less).totalBytes * slack);
    }),
  );
});
