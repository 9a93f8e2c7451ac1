/** Derives the spec of one job of an array from the spec that all of them share. */
import { fillArrayIndex, memberSpec } from '@muster/common/spec/arrayIndex';
import type { JobSpec } from '@muster/common/spec/types';
import type { Job } from '../model.ts';

type SpecOwner = Pick<Job, 'spec' | 'array'>;

/** The spec with the job's own index in it: what its tasks run, and what is shown of it. */
export function ownSpec({ spec, array }: SpecOwner): JobSpec {
  return array === null ? spec : memberSpec(spec, array.index);
}

/** Its name alone, which costs less. */
export function ownName({ spec, array }: SpecOwner): string {
  return array === null ? spec.name : fillArrayIndex(spec.name, array.index);
}
