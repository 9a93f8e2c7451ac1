import type { Credential } from '../store/store.ts';

/** Hashes of the secrets that it may be shown by. */
export function secretsOf(credential: Credential | null | undefined): readonly string[] {
  return [credential?.secretHash, credential?.nextHash].filter((hash) => hash != null);
}
