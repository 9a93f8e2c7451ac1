/** The API's calls about credentials and join tokens. */
import { MusterError, messageOf } from '@muster/common/errors';
import { isNodeName, type RandomBytes } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import { budgetUseToWire, tokenBudgetToWire } from '@muster/common/wire/codec';
import type { Gate } from '../auth/gate.ts';
import { bindToAuthority, hashToken, newToken } from '../auth/tokens.ts';
import { budgetUseIn } from '../commands/budgets.ts';
import {
  createJoinToken,
  credentialsNamed,
  maySee,
  requireIdleNodes,
  revoke,
  rotateAdminToken,
} from '../commands/credentials.ts';
import { isOfUser } from '../commands/people.ts';
import type { Loop } from '../loop.ts';
import type { TimeLimits } from '../reconcilers/timeLimits.ts';
import type { ClusterState } from '../state/state.ts';
import { type MusterCalls, unary } from './calls.ts';

export interface CredentialCallParts {
  readonly state: ClusterState;
  readonly loop: Loop;
  readonly gate: Gate;
  readonly random: RandomBytes;
  readonly log: Logger;
  readonly timeLimits: Pick<TimeLimits, 'runningMs'>;
  /** SHA-256 of the certificate that agents are to trust, of which join tokens tell them; null: no TLS. */
  readonly authorityDigest: Uint8Array | null;
  /** Keeps the admin token where people on this machine find it. */
  readonly storeAdminToken: (token: string) => void;
}

type CredentialCalls = Pick<
  MusterCalls,
  'CreateJoinToken' | 'ListCredentials' | 'RevokeCredential' | 'RotateAdminToken'
>;

export function credentialCalls(parts: CredentialCallParts): CredentialCalls {
  const { state, loop, gate, random, log } = parts;

  function budgetFields(id: string | null) {
    const budget = state.people.budgets.get(id ?? '');
    if (budget === undefined) return {};
    const used = budgetUseIn(state, budget, parts.timeLimits.runningMs);
    return { budget: tokenBudgetToWire(budget.limits), usedBudget: budgetUseToWire(used) };
  }

  return {
    CreateJoinToken: unary(async ({ nodeName, replace }, caller) => {
      if (!isNodeName(nodeName)) {
        throw new MusterError(
          'invalid',
          `"${nodeName}": a node name has 1 to 63 lower-case letters, digits and hyphens`,
        );
      }
      const token = bindToAuthority(newToken('join', random), parts.authorityDigest);
      const command = { node: nodeName, secretHash: hashToken(token), replaces: replace };
      const expiresAtMs = await loop.run(caller, (draft, nowMs) => createJoinToken(draft, command, nowMs));
      return { token, expiresAtMs };
    }),

    ListCredentials: unary(async (_request, caller) => {
      const listed = [...state.credentials.values()].filter((each) => maySee(caller, each));
      const sorted = listed.sort((a, b) => (a.id < b.id ? -1 : 1));
      const credentials = sorted.map((each) => {
        const lastUsedAtMs = gate.lastUsedMs.get(each.id) ?? each.lastUsedAtMs;
        return {
          id: each.id,
          kind: each.kind,
          ...(each.kind === 'agent' || each.kind === 'join' ? { node: each.subject } : {}),
          ...(isOfUser(each) ? { user: each.subject } : {}),
          label: each.label,
          projects: [...(each.scope.projects ?? [])],
          verbs: [...(each.scope.verbs ?? [])],
          ...budgetFields(each.scope.budget),
          createdAtMs: each.createdAtMs,
          ...(lastUsedAtMs === null ? {} : { lastUsedAtMs }),
          ...(each.expiresAtMs === null ? {} : { expiresAtMs: each.expiresAtMs }),
          openCalls: gate.calls.count(each.id),
          used: each.usedFor !== null,
          replaces: each.replaces,
        };
      });
      return { credentials };
    }),

    RevokeCredential: unary(async ({ name, force }, caller) => {
      const ids = await loop.run(caller, (draft, nowMs) => {
        const found = credentialsNamed(draft, caller, name);
        if (!force) requireIdleNodes(draft, found, name);
        return revoke(draft, found, nowMs);
      });
      return { ids: [...ids] };
    }),

    RotateAdminToken: unary(async (_request, caller) => {
      const token = newToken('admin', random);
      await loop.run(caller, (draft, nowMs) => rotateAdminToken(draft, hashToken(token), nowMs));
      try {
        parts.storeAdminToken(token);
      } catch (error) {
        // It is valid, and its caller has it; the next start finds the file out of date and makes another.
        log.error({ error: messageOf(error) }, 'the file admin.token could not be written');
      }
      return { token };
    }),
  };
}
