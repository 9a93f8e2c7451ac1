/** Which callers the server admits: the current credentials, the calls that are open under them, and what was refused. */
import { MusterError } from '@muster/common/errors';
import type { Logger } from '@muster/common/log';
import type { Identity, UserIdentity } from '../caller.ts';
import type { Committed } from '../state/committed.ts';
import type { ClusterState } from '../state/state.ts';
import type { Credential } from '../store/store.ts';
import { isReduced } from './access.ts';
import { Refusals } from './refusals.ts';
import { expired, identityOf, revoked } from './tokens.ts';

/** The system clock, and whether it was stepped. */
interface DoubtedClock {
  /** A step that nothing confirms, with the trusted time at which it was noticed. Null if there is none. */
  readonly step: { readonly sinceWallMs: number } | null;
  /** The wall clock of the machine, right or wrong. */
  readonly systemWallMs: () => number;
}

export interface GateParts {
  readonly state: Pick<ClusterState, 'credentialOf' | 'credentials' | 'people'>;
  readonly log: Logger;
  /** The wall clock that is trusted. */
  readonly wallMs: () => number;
  readonly clock: DoubtedClock;
  readonly monotonicMs: () => number;
}

export class Gate {
  readonly calls = new OpenCalls();
  readonly refusals: Refusals;
  /** Wall clock: when each credential was last shown since our start, by id. */
  readonly lastUsedMs = new Map<string, number>();
  private readonly parts: GateParts;

  constructor(parts: GateParts) {
    this.parts = parts;
    this.refusals = new Refusals(parts);
  }

  /**
   * @param secretHash of a token, or of the key of a certificate
   * @returns null for one that nobody knows or that has expired
   */
  identify(secretHash: string, peer: string | null): Identity | null {
    const credential = this.parts.state.credentialOf(secretHash);
    if (credential === undefined) return null;
    const nowMs = this.parts.wallMs();
    const user = this.parts.state.people.users.get(credential.subject);
    const identity = identityOf(credential, secretHash, peer, this.judgedAtMs(credential), user);
    if (identity !== null) this.lastUsedMs.set(credential.id, nowMs);
    return identity;
  }

  /** The error for the holder of an expired credential. @returns null: it has not expired, or it is no longer known */
  expiryOf(secretHash: string): MusterError | null {
    const credential = this.parts.state.credentialOf(secretHash);
    if (credential === undefined || credential.expiresAtMs === null) return null;
    const nowMs = this.judgedAtMs(credential);
    return credential.expiresAtMs > nowMs ? null : expired(credential.id, credential.expiresAtMs, nowMs);
  }

  /** Must run after every commit: the calls of a credential end with it, as do those of a user who may do less now. */
  committed({ endedCredentials, changedUsers }: Pick<Committed, 'endedCredentials' | 'changedUsers'>): void {
    for (const id of endedCredentials) {
      this.lastUsedMs.delete(id);
      this.calls.end(id, revoked(id));
    }
    if (changedUsers.length === 0) return;
    const changed = new Set(changedUsers);
    this.calls.endWhere((by) => (by.kind === 'user' && changed.has(by.user) ? this.reductionOf(by) : null));
  }

  /**
   * One pass: the calls of tokens that have expired end. Those of agents do not, for a clock that jumps ahead must not disconnect a
   * healthy cluster.
   */
  run(): void {
    this.calls.endWhere((by) => {
      const credential = this.parts.state.credentials.get(by.id);
      if (by.kind === 'agent' || credential === undefined || credential.expiresAtMs === null) return null;
      const nowMs = this.judgedAtMs(credential);
      return credential.expiresAtMs <= nowMs ? expired(by.id, credential.expiresAtMs, nowMs) : null;
    });
  }

  /**
   * The wall-clock time by which a credential is judged. While the time is in doubt no credential of an agent expires, and those
   * of users do by the later of both clocks. One that was issued since the step has no step between its issue and its end.
   */
  private judgedAtMs({ kind, createdAtMs }: Pick<Credential, 'kind' | 'createdAtMs'>): number {
    const { wallMs, clock } = this.parts;
    const { step } = clock;
    const trustedMs = wallMs();
    if (step === null) return trustedMs;
    if (kind === 'agent') return Number.NEGATIVE_INFINITY;
    return createdAtMs >= step.sinceWallMs ? trustedMs : Math.max(trustedMs, clock.systemWallMs());
  }

  /** Why a call that was let in must not continue. @returns null: it may */
  private reductionOf(by: UserIdentity): MusterError | null {
    const { state } = this.parts;
    const credential = state.credentials.get(by.id);
    const user = state.people.users.get(by.user);
    if (credential === undefined || user === undefined) return revoked(by.id);
    const now = identityOf(credential, credential.secretHash, by.peer, this.judgedAtMs(credential), user);
    if (now?.kind === 'user' && !isReduced(by, now)) return null;
    return new MusterError(
      'permission_denied',
      `the role or the projects of ${by.user} were reduced (now ${user.role}; ${user.projects.join(', ')}), which ends what was open; ` +
        'repeat the call for what they may still see',
    );
  }
}

/** A call in progress. It is kept by the credential that it was made with, and ends with it. */
interface OpenCall {
  /** Who made it, as they were then. */
  readonly by: Identity;
  readonly end: (why: MusterError) => void;
}

class OpenCalls {
  private readonly byCredential = new Map<string, Set<OpenCall>>();

  /** @returns a function that must run when the call is over */
  add(call: OpenCall): () => void {
    const { id } = call.by;
    const calls = this.byCredential.get(id) ?? new Set();
    this.byCredential.set(id, calls);
    calls.add(call);
    return () => {
      calls.delete(call);
      if (calls.size === 0 && this.byCredential.get(id) === calls) this.byCredential.delete(id);
    };
  }

  count(credentialId: string): number {
    return this.byCredential.get(credentialId)?.size ?? 0;
  }

  /** Ends every call of a credential. */
  end(credentialId: string, why: MusterError): void {
    const calls = this.byCredential.get(credentialId);
    this.byCredential.delete(credentialId);
    for (const { end } of calls ?? []) end(why);
  }

  /** Ends the calls for which there is a reason. */
  endWhere(reasonFor: (by: Identity) => MusterError | null): void {
    for (const { by, end } of [...this.byCredential.values()].flatMap((calls) => [...calls])) {
      const why = reasonFor(by);
      if (why !== null) end(why);
    }
  }
}
