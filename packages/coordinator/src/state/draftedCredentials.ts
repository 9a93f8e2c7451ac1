import type { Batch, Credential } from '../store/store.ts';
import { removedOf } from './committed.ts';
import type { SetUndoably } from './people.ts';
import { secretsOf } from './secrets.ts';

/** What the state knows of credentials. */
interface KnownCredentials {
  readonly credentials: ReadonlyMap<string, Credential>;
  credentialOf(secretHash: string): Credential | undefined;
}

/** What a draft changes of credentials. */
export class DraftedCredentials {
  /** By id; null: removed. */
  readonly changed = new Map<string, Credential | null>();
  private readonly base: KnownCredentials;
  private readonly set: SetUndoably;

  constructor(base: KnownCredentials, set: SetUndoably) {
    this.base = base;
    this.set = set;
  }

  get(id: string): Credential | undefined {
    const drafted = this.changed.get(id);
    return drafted === undefined ? this.base.credentials.get(id) : (drafted ?? undefined);
  }

  /** The one for which this secret is valid. */
  ofSecret(secretHash: string): Credential | undefined {
    for (const drafted of this.changed.values())
      if (drafted !== null && secretsOf(drafted).includes(secretHash)) return drafted;
    const known = this.base.credentialOf(secretHash);
    const current = known === undefined ? undefined : this.get(known.id);
    return secretsOf(current).includes(secretHash) ? current : undefined;
  }

  /** In no order. */
  every(): readonly Credential[] {
    const ids = new Set([...this.base.credentials.keys(), ...this.changed.keys()]);
    return [...ids].flatMap((id) => this.get(id) ?? []);
  }

  /** @param credential null: it is removed */
  put(id: string, credential: Credential | null): void {
    this.set(this.changed, id, credential);
  }

  toBatch(): Pick<Batch, 'credentials' | 'removedCredentials'> {
    return {
      credentials: [...this.changed.values()].filter((credential) => credential !== null),
      removedCredentials: removedOf(this.changed),
    };
  }
}
