import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  activationBytes,
  hostBytesOf,
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
  // s·b·h = 25,165,824 bytes; 5·a·s/h = 80, as in the paper for GPT-3; 96 layers.
  expect(activationBytes({ ...gpt3, degrees: one, recomputation: 'none' })).toBe(25_165_824 * 96 * (34 + 80));
  expect(activationBytes({ ...gpt3, degrees: one, recomputation: 'selective' })).toBe(25_165_824 * 96 * 34);
  // And all activations of one layer, which exist while it is recomputed.
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

const offloaded = {
  shape: {
    parameters: 13e9,
    layers: 40,
    hiddenSize: 5_120,
    attentionHeads: 40,
    sequenceLength: 2_048,
    isDerived: false,
  },
  precision: 'fp16',
  optimizer: 'adam',
  method: 'zero3',
  degrees: one,
  microBatch: 1,
  recomputation: 'full',
} as const;

test('an offload leaves weights in 16 bits on the GPU, or the layers that are computed', () => {
  // Section 3 of the ZeRO-Offload paper: 2 of 16 bytes for each parameter stay, and gradients of two layers that are moved.
  expect(memoryOf({ ...offloaded, method: 'zero2', offload: 'optimizer' })).toMatchObject({
    parametersBytes: 26e9,
    gradientsBytes: (26e9 * 2) / 40,
    optimizerBytes: 0,
    gatheredBytes: 0,
  });
  expect(memoryOf({ ...offloaded, offload: 'parameters' })).toMatchObject({
    parametersBytes: 0,
    gradientsBytes: (26e9 * 2) / 40,
    optimizerBytes: 0,
    gatheredBytes: (26e9 * 2) / 40,
  });
  // Megatron-LM keeps its gradients.
  expect(memoryOf({ ...offloaded, method: 'tensor', offload: 'optimizer' })).toMatchObject({
    gradientsBytes: 26e9,
    optimizerBytes: 0,
  });
});

test('nodes hold what DeepSpeed estimates of a model with 2,851 million parameters', () => {
  const shape = { ...offloaded.shape, parameters: 2_851e6 };
  const gib = (offload: 'optimizer' | 'parameters', nodes: number) =>
    (hostBytesOf({ ...offloaded, shape, offload }, nodes) / 2 ** 30).toFixed(1);
  expect([gib('parameters', 1), gib('optimizer', 1), gib('parameters', 2)]).toEqual(['71.7', '63.7', '35.8']);
  expect(hostBytesOf(offloaded, 1)).toBe(0);
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
    offload: fc.constantFrom('none', 'optimizer', 'parameters'),
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
