/** Whom the server lets in: credentials as they are now, the calls that are open under them, and what was refused. */
import type { Logger } from '@muster/common/log';
import type { Identity } from '../caller.ts';
import type { Committed } from '../state/committed.ts';
import type { ClusterState } from '../state/state.ts';
import { OpenCalls } from './openCalls.ts';
import { Refusals } from './refusals.ts';
import { hashToken, identityOf } from './tokens.ts';

export interface GateParts {
  readonly state: Pick<ClusterState, 'credentialOf'>;
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

  /** @returns null for a token that nobody knows or that has expired */
  identify(token: string, peer: string | null): Identity | null {
    const secretHash = hashToken(token);
    const credential = this.parts.state.credentialOf(secretHash);
    if (credential === undefined) return null;
    const nowMs = this.parts.wallMs();
    const identity = identityOf(credential, secretHash, peer, nowMs);
    if (identity !== null) this.lastUsedMs.set(credential.id, nowMs);
    return identity;
  }

  /** To be told of every commit: what ends takes its calls along. */
  committed({ endedCredentials }: Pick<Committed, 'endedCredentials'>): void {
    for (const id of endedCredentials) {
      this.lastUsedMs.delete(id);
      this.calls.end(id);
    }
  }
}
