import { type StoredSecret, secretId } from '../store/secrets.ts';
import type { Batch } from '../store/store.ts';
import { removedOf } from './committed.ts';
import type { SetUndoably } from './people.ts';

/** What a draft changes of the secrets of projects. Memory has none of them: the store alone does. */
export class DraftedSecrets {
  /** By `secretId`; null: removed. */
  private readonly changed = new Map<string, StoredSecret | null>();
  private readonly set: SetUndoably;

  constructor(set: SetUndoably) {
    this.set = set;
  }

  put(secret: StoredSecret): void {
    this.set(this.changed, secretId(secret), secret);
  }

  remove(secret: Parameters<typeof secretId>[0]): void {
    this.set(this.changed, secretId(secret), null);
  }

  toBatch(): Pick<Batch, 'secrets' | 'removedSecrets'> {
    return {
      secrets: [...this.changed.values()].filter((secret) => secret !== null),
      removedSecrets: removedOf(this.changed),
    };
  }
}
