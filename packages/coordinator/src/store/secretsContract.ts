/** What every store must do about secrets. */
import { describe, expect, it } from 'vitest';
import { someMs } from '../modelFixture.ts';
import type { StoredSecret } from './secrets.ts';
import { type Batch, emptyBatch, type Store } from './store.ts';

function aSecret(project: string, name: string, fields: Partial<StoredSecret> = {}): StoredSecret {
  const times = { createdAtMs: someMs, changedAtMs: someMs };
  return {
    project,
    name,
    keyId: 'key-1',
    sealed: Uint8Array.of(0, 255, 7),
    ...times,
    changedBy: 'admin',
    ...fields,
  };
}

/** Bytes compare as text: one store returns another class of them than the other. */
function plain(secret: StoredSecret | null): object | null {
  return secret && { ...secret, sealed: Buffer.from(secret.sealed).toString('hex') };
}

/** @param reopened what the store keeps, as it is after a restart */
export function describeSecrets(
  commit: (batch: Partial<Batch>) => Promise<void>,
  reopened: () => Promise<Store>,
): void {
  describe('of secrets keeps', () => {
    it('each by its project and name, as it was set last, until it is removed', async () => {
      const [secret, other] = [aSecret('lab', 'a'), aSecret('another', 'a')];
      await commit({ secrets: [secret, other] });
      const later = { keyId: 'key-2', sealed: Uint8Array.of(1), changedAtMs: someMs + 1, changedBy: 'agent' };
      const changed = aSecret('lab', 'a', later);
      await commit({ secrets: [changed] });
      const store = await reopened();
      const { secrets } = store;
      expect((await secrets.list(null)).map(plain)).toEqual([other, changed].map(plain));
      expect((await secrets.list('lab')).map(plain)).toEqual([plain(changed)]);
      expect(plain(await secrets.read('lab', 'a'))).toEqual(plain(changed));
      expect(await secrets.read('lab', 'b')).toBeNull();
      await store.commit({ ...emptyBatch, removedSecrets: ['lab/a', 'lab/nothing'] });
      expect((await secrets.list(null)).map(plain)).toEqual([plain(other)]);
    });
  });
}
