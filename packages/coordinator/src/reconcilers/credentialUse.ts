/** Follows the use and age of credentials. Each function is one idempotent pass. */

import { clusterSubject } from '@muster/common/eventKinds';
import type { AgentRegistry } from '../agents/registry.ts';
import type { Gate } from '../auth/gate.ts';
import { coordinatorPart } from '../caller.ts';
import type { Loop } from '../loop.ts';
import type { ClusterState } from '../state/state.ts';
import type { Credential } from '../store/store.ts';

const caller = coordinatorPart('credentials');

/** How old the stored moment of the last use may be: a commit for every call would be too many. */
const useStoredEveryMs = 60 * 60_000;

/** So long after its end an expired token of a user is still listed. */
const expiredKeptMs = 30 * 24 * 60 * 60_000;

/**
 * Removes join tokens and login codes that have expired, and in the end tokens of users. They do not wait to be looked at: a clock
 * that is set back would bring them back to life.
 * @param nowMs wall clock, by which tokens expire
 */
export function removeExpiredTokens(
  state: ClusterState,
  loop: Loop,
  nowMs: number,
): readonly Promise<void>[] {
  const expired = [...state.credentials.values()].filter(
    ({ kind, expiresAtMs }) => expiresAtMs !== null && expiresAtMs + keptAfterMs(kind) <= nowMs,
  );
  if (expired.length === 0) return [];
  return [
    loop.run(caller, (draft, wallMs) => {
      for (const { id, kind, subject, usedFor } of expired) {
        if (draft.credential(id) === undefined) continue;
        draft.removeCredential({ id });
        if (usedFor !== null) continue;
        const data = kind === 'join' ? { id, node: subject } : { id, user: subject };
        draft.emit({ kind: 'token.expired', subject: clusterSubject, data }, wallMs);
      }
    }),
  ];
}

/** After its end. A clock that jumps ahead must not remove what agents prove themselves by. */
function keptAfterMs(kind: Credential['kind']): number {
  if (kind === 'join' || kind === 'login') return 0;
  return kind === 'user' ? expiredKeptMs : Number.POSITIVE_INFINITY;
}

export interface RenewalParts {
  readonly state: Pick<ClusterState, 'credentials'>;
  readonly agents: Pick<AgentRegistry, 'sessions'>;
  readonly lifetimeMs: number;
  readonly wallMs: () => number;
  readonly monotonicMs: () => number;
}

/** Asks connected agents for another secret once two thirds of the life of theirs are over, or it would never end. */
export function askToRenew({ state, agents, lifetimeMs, wallMs, monotonicMs }: RenewalParts): void {
  for (const session of agents.sessions()) {
    const credential = state.credentials.get(session.caller.id);
    if (credential === undefined) continue;
    const leftMs = credential.expiresAtMs === null ? 0 : credential.expiresAtMs - wallMs();
    if (leftMs <= lifetimeMs / 3) session.askToRenew(monotonicMs());
  }
}

/** Stores when credentials were used last. */
export function storeLastUse(state: ClusterState, gate: Gate, loop: Loop): readonly Promise<void>[] {
  const stale = [...gate.lastUsedMs].filter(([id, usedMs]) => {
    const storedMs = state.credentials.get(id)?.lastUsedAtMs;
    return storedMs === null || (storedMs !== undefined && Math.abs(usedMs - storedMs) >= useStoredEveryMs);
  });
  if (stale.length === 0) return [];
  return [
    loop.run(caller, (draft) => {
      for (const [id, lastUsedAtMs] of stale) {
        const credential = draft.credential(id);
        if (credential !== undefined) draft.putCredential({ ...credential, lastUsedAtMs });
      }
    }),
  ];
}
