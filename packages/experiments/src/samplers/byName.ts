import { sampleGrid } from './grid.ts';
import { sampleHalton } from './halton.ts';
import { sampleRandom } from './random.ts';
import type { Sampler } from './sampler.ts';
import { sampleTpe } from './tpe.ts';

/** The samplers by the names that sweep files have for them. */
export const samplers = {
  tpe: sampleTpe,
  random: sampleRandom,
  halton: sampleHalton,
  grid: sampleGrid,
} as const satisfies Readonly<Record<string, Sampler>>;
