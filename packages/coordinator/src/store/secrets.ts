/** The secrets of projects as a store keeps them: encrypted, with the name of the key. */

export interface StoredSecret {
  readonly project: string;
  readonly name: string;
  /** Names the key, and tells nothing of it. */
  readonly keyId: string;
  /** Nonce, ciphertext and tag. */
  readonly sealed: Uint8Array;
  /** Wall clock. */
  readonly createdAtMs: number;
  /** Wall clock: when its value was last set. */
  readonly changedAtMs: number;
  /** Who set it last, as events name a caller. */
  readonly changedBy: string;
}

export interface SecretStore {
  /** null: the project has none by that name. */
  read(project: string, name: string): Promise<StoredSecret | null>;
  /** By project and name. @param project null: every project */
  list(project: string | null): Promise<readonly StoredSecret[]>;
}

/** A project's name and a secret's name hold no slash. */
export function secretId({ project, name }: Pick<StoredSecret, 'project' | 'name'>): string {
  return `${project}/${name}`;
}
