/** Specs of arrays, decoded once for all the jobs that share one. */
import { decodeJobSpec } from '@muster/common/spec/serialize';
import type { JobSpec } from '@muster/common/spec/types';

export interface SharedSpec {
  readonly spec: JobSpec;
  /** As it is stored. */
  readonly text: string;
}

/** Characters of the specs that are kept in mind. */
const keptSizeMax = 4 * 1024 * 1024;

export class ArraySpecs {
  private readonly read: (arrayId: string) => string | undefined;
  /** Least recently read first. */
  private readonly kept = new Map<string, SharedSpec>();
  private keptSize = 0;

  /** @param read the stored text; undefined: no such array is stored */
  constructor(read: (arrayId: string) => string | undefined) {
    this.read = read;
  }

  /** undefined: its jobs were stored by a version that stored a spec with each. */
  of(arrayId: string): SharedSpec | undefined {
    const known = this.kept.get(arrayId);
    if (known !== undefined) return known;
    const text = this.read(arrayId);
    if (text === undefined) return undefined;
    const shared = { spec: decodeJobSpec(text), text };
    this.kept.set(arrayId, shared);
    this.keptSize += text.length;
    for (const [oldest, { text: oldText }] of this.kept) {
      if (this.keptSize <= keptSizeMax || oldest === arrayId) break;
      this.kept.delete(oldest);
      this.keptSize -= oldText.length;
    }
    return shared;
  }
}
