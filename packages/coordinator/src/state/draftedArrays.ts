/** What a draft changes of arrays whose jobs are not all stored yet. */
import type { ArrayId } from '@muster/common/ids';
import type { Batch, JobArrayRecord } from '../store/store.ts';
import type { SetUndoably } from './people.ts';

export class DraftedArrays {
  private readonly changed = new Map<ArrayId, JobArrayRecord>();
  private readonly added = new Map<ArrayId, true>();
  private readonly base: Map<ArrayId, JobArrayRecord>;
  private readonly set: SetUndoably;

  constructor(base: Map<ArrayId, JobArrayRecord>, set: SetUndoably) {
    this.base = base;
    this.set = set;
  }

  get(id: ArrayId): JobArrayRecord | undefined {
    return this.changed.get(id) ?? this.base.get(id);
  }

  every(): readonly JobArrayRecord[] {
    const ids = new Set([...this.base.keys(), ...this.changed.keys()]);
    return [...ids].flatMap((id) => this.get(id) ?? []);
  }

  add(array: JobArrayRecord): void {
    this.set(this.added, array.id, true);
    this.put(array);
  }

  put(array: JobArrayRecord): void {
    this.set(this.changed, array.id, array);
  }

  toBatch(): Pick<Batch, 'newArrays' | 'arrays'> {
    const arrays = [...this.changed.values()];
    return {
      newArrays: arrays.filter(({ id }) => this.added.has(id)),
      arrays: arrays.filter(({ id }) => !this.added.has(id)),
    };
  }

  /** After the commit. */
  apply(): void {
    for (const array of this.changed.values()) {
      if (array.filled === array.size) this.base.delete(array.id);
      else this.base.set(array.id, array);
    }
  }
}
