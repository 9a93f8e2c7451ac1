/** The file that holds the admin token: anyone who may read it is admin. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeFileDurably } from '@muster/common/files';
import type { RandomBytes } from '@muster/common/ids';
import type { ClusterState } from '../state/state.ts';
import { emptyBatch, type Store } from '../store/store.ts';
import { adminCredential, hashToken, newToken } from './tokens.ts';

export class AdminTokenFile {
  readonly path: string;

  constructor(dataDir: string) {
    this.path = join(dataDir, 'admin.token');
  }

  write(token: string): void {
    writeFileDurably(this.path, `${token}\n`, 0o600);
  }

  /** To be called before anything is served. The token is made at the first start and shown to nobody. */
  async ensure(state: ClusterState, store: Store, random: RandomBytes, nowMs: number): Promise<void> {
    const known = existsSync(this.path) ? readFileSync(this.path, 'utf8').trim() : null;
    if (known !== null && state.credentialOf(hashToken(known))?.kind === 'admin') return;
    // No file, or a file that is not of this store: anyone who can write here is admin anyway, so a new one is made.
    const token = newToken('admin', random);
    const credential = adminCredential(hashToken(token), nowMs);
    const earlier = [...state.credentials.values()].filter(({ kind }) => kind === 'admin');
    const removedCredentials = earlier.map(({ id }) => id);
    await store.commit({ ...emptyBatch, credentials: [credential], removedCredentials });
    for (const id of removedCredentials) state.setCredential(id, null);
    state.setCredential(credential.id, credential);
    this.write(token);
  }
}
