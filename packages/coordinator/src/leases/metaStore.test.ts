import { expect, test } from 'vitest';
import { StoreError, type StoreErrorKind } from '../store/store.ts';
import { metaStore } from './metaStore.ts';

/** @param failures of the writes, in order; those after them succeed */
function aStore(failures: readonly StoreErrorKind[]) {
  const left = [...failures];
  const fatal: string[] = [];
  let writes = 0;
  const store = metaStore({
    store: {
      readMeta: async () => null,
      readEvents: async () => [],
      async writeMeta() {
        writes += 1;
        const kind = left.shift();
        if (kind !== undefined) throw new StoreError(kind, kind);
      },
    },
    onFatal: ({ kind }) => fatal.push(kind),
  });
  return { store, fatal, writes: () => writes };
}

test('a full disk fails the write, and not the coordinator', async () => {
  const { store, fatal } = aStore(['full']);
  await expect(store.writeMeta('a', 'b')).rejects.toMatchObject({ kind: 'full' });
  expect(fatal).toEqual([]);
});

test('after any other failure the store is not to be trusted, and nothing is tried again', async () => {
  const { store, fatal, writes } = aStore(['io']);
  await expect(store.writeMeta('a', 'b')).rejects.toMatchObject({ kind: 'io' });
  expect({ fatal, writes: writes() }).toEqual({ fatal: ['io'], writes: 1 });
});
