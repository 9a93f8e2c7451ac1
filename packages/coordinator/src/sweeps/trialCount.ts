/** How many trials a sweep will have. */
import { MusterError } from '@muster/common/errors';
import { Chance } from '@muster/experiments/chance';
import type { SweepSpec } from '@muster/experiments/file/sweepFile';
import { gridSize } from '@muster/experiments/samplers/grid';
import { randomPoint } from '@muster/experiments/samplers/random';
import { EmptySpaceError } from '@muster/experiments/space';
import { trialSpec } from '@muster/experiments/trialSpec';
import { spaceOfSweep } from './searchSpace.ts';

/** Nothing is started of a sweep that has no point. @throws {MusterError} `invalid` */
export async function trialsOfSweep(spec: SweepSpec): Promise<number> {
  const space = await spaceOfSweep(spec);
  const { sampler, seed, trials, parameters, job } = spec;
  const problem = { path: 'constraints', message: 'no point meets them', expected: null, suggestion: null };
  const empty = new MusterError('invalid', 'constraints: no point of the space meets them', {
    problems: [problem],
  });
  if (sampler === 'grid') {
    const size = gridSize(space) ?? 0;
    if (size === 0) throw empty;
    return Math.min(trials ?? size, size);
  }
  try {
    const point = randomPoint(space, new Chance(seed, 'check'));
    trialSpec({ job, parameters, number: 0, point, seed: null, onOom: spec.onOom }, null);
  } catch (error) {
    throw error instanceof EmptySpaceError ? empty : error;
  }
  return trials ?? 0;
}
