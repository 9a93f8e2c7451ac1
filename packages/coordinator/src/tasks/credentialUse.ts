/**
 * Removes join tokens that nobody can use any more. Whoever adds nodes by program makes them by the thousand, and all
 * of them are in memory.
 */
import { coordinatorPart } from '../caller.ts';
import type { Loop } from '../loop.ts';
import type { ClusterState } from '../state.ts';
import type { Credential } from '../store/store.ts';

const caller = coordinatorPart('old credentials');

/** After its expiry: who looks into why a node could not join finds its token for so long. */
const keptForMs = 24 * 60 * 60_000;

/** One pass; idempotent. @param nowMs wall clock, by which tokens expire */
export function removeOldJoinTokens(
  state: ClusterState,
  loop: Loop,
  nowMs: number,
): readonly Promise<void>[] {
  const isOld = ({ kind, expiresAtMs }: Credential) =>
    kind === 'join' && expiresAtMs !== null && expiresAtMs + keptForMs <= nowMs;
  const old = [...state.credentials.values()].filter(isOld);
  if (old.length === 0) return [];
  return [
    loop.run(caller, (draft) => {
      for (const credential of old) draft.removeCredential(credential);
    }),
  ];
}
