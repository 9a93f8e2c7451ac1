/** The spec of one job of an array, from the spec that all of them share, and the text of a spec. */

import { fillArrayIndex, memberSpec } from '@muster/common/spec/arrayIndex';
import { encodeJobSpec } from '@muster/common/spec/serialize';
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

/** Specs are immutable and shared by all jobs of an array, so each is encoded once for store, agents and API. */
const encoded = new WeakMap<JobSpec, string>();

/** The canonical JSON of a spec. */
export function specText(spec: JobSpec): string {
  let text = encoded.get(spec);
  if (text === undefined) {
    text = encodeJobSpec(spec);
    encoded.set(spec, text);
  }
  return text;
}
