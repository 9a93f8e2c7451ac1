/** What a training of a model of some size needs, as a rule of thumb, for whoever has no numbers of their own. Pure data and functions. */
import { MusterError } from '@muster/common/errors';
import { brief } from './size.ts';

export interface SizeAdvice {
  readonly modelSize: string;
  readonly gpusMin: number;
  /** null: as many as there are. */
  readonly gpusMax: number | null;
  readonly gpuType: string;
  readonly gpuMemoryMb: number;
  readonly strategy: string;
}

/** Up to so many billions of parameters; the last row has no end. */
const bySize: readonly (SizeAdvice & { readonly belowBillions: number })[] = [
  {
    belowBillions: 1,
    modelSize: 'below 1B',
    gpusMin: 1,
    gpusMax: 1,
    gpuType: 'A100-40G',
    gpuMemoryMb: 40_960,
    strategy: 'data parallel (DDP)',
  },
  {
    belowBillions: 7,
    modelSize: '1B to 7B',
    gpusMin: 1,
    gpusMax: 4,
    gpuType: 'A100-80G',
    gpuMemoryMb: 81_920,
    strategy: 'FSDP or ZeRO-2',
  },
  {
    belowBillions: 13,
    modelSize: '7B to 13B',
    gpusMin: 4,
    gpusMax: 8,
    gpuType: 'A100-80G',
    gpuMemoryMb: 81_920,
    strategy: 'FSDP or ZeRO-2',
  },
  {
    belowBillions: 70,
    modelSize: '13B to 70B',
    gpusMin: 8,
    gpusMax: null,
    gpuType: 'H100-80G',
    gpuMemoryMb: 81_920,
    strategy: 'ZeRO-3 or tensor parallel, activation checkpointing',
  },
  {
    belowBillions: Number.POSITIVE_INFINITY,
    modelSize: 'above 70B',
    gpusMin: 16,
    gpusMax: null,
    gpuType: 'H100-80G',
    gpuMemoryMb: 81_920,
    strategy: 'tensor and pipeline parallel (Megatron-LM, DeepSpeed 3D)',
  },
];

/** @param billions of parameters, more than 0 */
export function adviceForSize(billions: number): SizeAdvice {
  const row = bySize.find(({ belowBillions }) => billions < belowBillions) ?? bySize.at(-1);
  if (row === undefined) throw new Error('the table of sizes is empty');
  const { belowBillions: _, ...advice } = row;
  return advice;
}

/** From here on a number without a unit counts parameters, not billions of them: no model has as many billions. */
const parametersFrom = 1e6;
const scales: Readonly<Record<string, number>> = { k: 1e-6, m: 1e-3, b: 1, t: 1e3 };

/**
 * @param text `7B`, `350M`, `1.3b`, `7e9`, a number of parameters, or a number of billions below a million
 * @returns billions of parameters
 * @throws {MusterError} `invalid`
 */
export function billionsOf(text: string | number): number {
  const [, digits = '', unit = ''] =
    /^\s*(\d{1,15}(?:\.\d{1,6})?(?:e\d{1,2})?)\s*([kmbt])?\s*$/i.exec(String(text)) ?? [];
  const number = Number(digits);
  const scale = scales[unit.toLowerCase()] ?? (number >= parametersFrom ? 1e-9 : 1);
  const billions = number * scale;
  if (digits !== '' && billions > 0 && billions < parametersFrom) return billions;
  throw new MusterError(
    'invalid',
    `modelSize: got "${brief(String(text), 40)}"; expected a number of parameters such as 7B, 350M or 7000000000`,
  );
}

/** How often to save, by how long a job is expected to run. */
export function checkpointIntervalSeconds(hours: number): number {
  if (hours < 1) return 600;
  if (hours <= 4) return 1_800;
  return hours <= 24 ? 3_600 : 7_200;
}

/** Speed of a GPU against a T4. */
const speeds: readonly (readonly [RegExp, number])[] = [
  [/h100|h200|h800/i, 8],
  [/a100|a800/i, 5],
  [/v100/i, 3],
  [/t4/i, 1],
];

/** A fine-tuning of 7B takes 4 to 8 hours on 4 A100: all other estimates are in proportion to that. */
const reference = { billions: 7, gpus: 4, speed: 5, hours: [4, 8] } as const;

export interface DurationEstimate {
  readonly hoursMin: number;
  readonly hoursMax: number;
  readonly basis: string;
}

/** @param gpuType as asked for, or of the nodes */
export function estimateHours(billions: number, gpus: number, gpuType: string): DurationEstimate {
  const speed = speeds.find(([pattern]) => pattern.test(gpuType))?.[1] ?? reference.speed;
  const scale = (billions / reference.billions) * ((reference.gpus * reference.speed) / (gpus * speed));
  const [low, high] = reference.hours.map((hours) => Math.round(hours * scale * 10) / 10);
  return {
    hoursMin: low ?? 0,
    hoursMax: high ?? 0,
    basis:
      'a fine-tuning of 7B that takes 4 to 8 hours on 4 A100-80G, in proportion to parameters and to the relative speed of the GPUs; ' +
      'the data set and the number of epochs are not known',
  };
}
