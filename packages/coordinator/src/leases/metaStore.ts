/** The part of the store that leases use, under the rules that the loop keeps for its commits. */
import { messageOf } from '@muster/common/errors';
import { type Store, StoreError } from '../store/store.ts';

export type MetaStore = Pick<Store, 'readMeta' | 'writeMeta' | 'readEvents'>;

export interface MetaStoreParts {
  readonly store: MetaStore;
  /** The store is in an unknown state: nothing may be acknowledged any longer. */
  readonly onFatal: (error: StoreError) => void;
}

/** A write that finds the disk full fails alone. Any other failure of a write is final. */
export function metaStore({ store, onFatal }: MetaStoreParts): MetaStore {
  return {
    readMeta: (name) => store.readMeta(name),
    readEvents: (sinceSeq, limit, subject) => store.readEvents(sinceSeq, limit, subject),
    async writeMeta(name, value) {
      try {
        await store.writeMeta(name, value);
      } catch (error) {
        const known =
          error instanceof StoreError ? error : new StoreError('io', messageOf(error), { cause: error });
        if (known.kind !== 'full') onFatal(known);
        throw known;
      }
    },
  };
}
