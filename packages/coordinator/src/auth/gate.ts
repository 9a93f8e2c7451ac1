/** Whom the server lets in: credentials as they are now, the calls that are open under them, and what was refused. */
import type { Logger } from '@muster/common/log';
import type { Identity } from '../caller.ts';
import type { Committed } from '../state/committed.ts';
import type { ClusterState } from '../state/state.ts';
import { Refusals } from './refusals.ts';
import { identityOf } from './tokens.ts';

export interface GateParts {
  readonly state: Pick<ClusterState, 'credentialOf' | 'people'>;
  readonly log: Logger;
  readonly wallMs: () => number;
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
    const identity = identityOf(credential, secretHash, peer, nowMs, user);
    if (identity !== null) this.lastUsedMs.set(credential.id, nowMs);
    return identity;
  }

  /** To be called after every commit: the calls of a credential end with it. */
  committed({ endedCredentials }: Pick<Committed, 'endedCredentials'>): void {
    for (const id of endedCredentials) {
      this.lastUsedMs.delete(id);
      this.calls.end(id);
    }
  }
}

/** Calls under way, by the credential they were made with, so that its end is theirs. */
type EndCall = () => void;

class OpenCalls {
  private readonly byCredential = new Map<string, Set<EndCall>>();

  /** @returns to be called when the call is over */
  add(credentialId: string, end: EndCall): () => void {
    const calls = this.byCredential.get(credentialId) ?? new Set();
    this.byCredential.set(credentialId, calls);
    calls.add(end);
    return () => {
      calls.delete(end);
      if (calls.size === 0 && this.byCredential.get(credentialId) === calls)
        this.byCredential.delete(credentialId);
    };
  }

  count(credentialId: string): number {
    return this.byCredential.get(credentialId)?.size ?? 0;
  }

  /** Ends every call of a credential. */
  end(credentialId: string): void {
    const calls = this.byCredential.get(credentialId);
    this.byCredential.delete(credentialId);
    for (const end of calls ?? []) end();
  }
}
