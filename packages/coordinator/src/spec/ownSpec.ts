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

/** A spec whose larger fields are in the store only. Sizes are in characters of its canonical JSON. */
export interface StoredSpec {
  /** Reads the canonical JSON. */
  readonly read: () => string;
  readonly size: number;
  /** Size of the fields that memory has. */
  readonly sizeInMemory: number;
}

const stored = new WeakMap<JobSpec, StoredSpec>();
const sizes = new WeakMap<JobSpec, number>();

/** Notes the size of a spec whose text its caller has, so that it need not be encoded for that. */
export function noteSpecSize(spec: JobSpec, size: number): void {
  sizes.set(spec, size);
}

export function noteStoredSpec(spec: JobSpec, about: StoredSpec): void {
  stored.set(spec, about);
}

/** Characters of a spec in the store, and of its part in memory. */
export function specSizes(spec: JobSpec): Pick<StoredSpec, 'size' | 'sizeInMemory'> {
  const about = stored.get(spec);
  if (about !== undefined) return about;
  const size = sizes.get(spec) ?? specText(spec).length;
  return { size, sizeInMemory: size };
}

/** The canonical JSON of a spec. */
export function specText(spec: JobSpec): string {
  const about = stored.get(spec);
  if (about !== undefined) return about.read();
  let text = encoded.get(spec);
  if (text === undefined) {
    text = encodeJobSpec(spec);
    encoded.set(spec, text);
  }
  return text;
}
