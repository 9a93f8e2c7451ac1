import { encodeJobSpec } from '@muster/common/spec/serialize';
import type { JobSpec } from '@muster/common/spec/types';

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
