/**
 * The credential in use. The coordinator asks for another one long before it expires: this makes a key or a secret, stores it
 * beside the one in use, and offers it; once it is taken, it is stored as the one to use, and only then the agent informs the
 * coordinator that the earlier one may end. Wherever that is interrupted, what is stored is valid, and the next request
 * resumes from it.
 */
import { X509Certificate } from 'node:crypto';
import { MusterError, messageOf } from '@muster/common/errors';
import type { AgentMessage } from '@muster/common/gen/muster/v1/AgentMessage';
import type { CoordinatorMessage__Output } from '@muster/common/gen/muster/v1/CoordinatorMessage';
import type { Logger } from '@muster/common/log';
import {
  type CredentialFile,
  certifies,
  joinAgain,
  makeCredential,
  type NodeProof,
  replacing,
  type StoredCredential,
  usable,
} from './credential.ts';

export class CredentialRenewal {
  private readonly file: CredentialFile;
  private readonly log: Logger;
  private stored: StoredCredential;
  /** Which of `candidates` is shown. */
  private shown = 0;

  /** @param stored as the file holds it */
  constructor(file: CredentialFile, stored: StoredCredential, log: Logger) {
    this.file = file;
    this.log = log;
    this.stored = stored;
  }

  /** What to prove oneself by. */
  current(): NodeProof {
    const candidates = this.candidates();
    return candidates[this.shown % candidates.length] ?? this.stored;
  }

  /** Does what the coordinator asks for. @param send takes the answer, now or later */
  take(
    {
      renewCredential,
      credentialTaken,
    }: Pick<CoordinatorMessage__Output, 'renewCredential' | 'credentialTaken'>,
    send: (answer: AgentMessage) => void,
  ): void {
    if (credentialTaken != null && this.taken(credentialTaken.certificate ?? null))
      send({ credentialKept: {} });
    if (renewCredential == null) return;
    this.offer().then(
      (credential) => send({ credentialOffer: { credential } }),
      // The coordinator asks again.
      (error: unknown) => this.log.error({ error: messageOf(error) }, 'the credential could not be renewed'),
    );
  }

  /**
   * The same until it is taken.
   * @returns what to offer to the coordinator: a request for a certificate, or a secret
   */
  async offer(): Promise<string> {
    const { nodeName } = this.stored;
    const next = usable(this.stored.next, this.isEncrypted) ?? makeCredential(this.isEncrypted);
    if (this.stored.next !== next) this.store({ ...this.stored, next });
    return offered(next, nodeName, this.isEncrypted);
  }

  /**
   * The coordinator has taken what was offered.
   * @param certificate PEM; null: there is no TLS
   * @returns false when nothing was offered, the certificate is for another key, or it cannot be stored: the coordinator asks again
   */
  taken(certificate: string | null): boolean {
    const { next } = this.stored;
    if (next == null) return false;
    if (this.isEncrypted && (certificate === null || !certifies(certificate, next))) return false;
    return this.use({ credential: next, certificate });
  }

  /** The coordinator has admitted the one that was shown. */
  welcomed(): void {
    if (this.shown > 0) this.use(this.current());
  }

  /**
   * The coordinator does not know the one that was shown. It may know another: the one that it never answered about, or,
   * restored from a backup, the one before.
   * @returns whether there is one that was not tried
   */
  refused(): boolean {
    this.shown += 1;
    if (this.shown < this.candidates().length) return true;
    this.shown = 0;
    return false;
  }

  /**
   * A refusal with what a user can do about it.
   * @param nowMs wall clock of this node; the coordinator decides by its own
   */
  explain(refusal: MusterError, nowMs: number): MusterError {
    const { nodeName, certificate } = this.stored;
    if (refusal.code !== 'unauthenticated' || certificate == null) return refusal;
    const { validTo, validToDate } = new X509Certificate(certificate);
    const state =
      validToDate.getTime() <= nowMs
        ? `expired on ${validTo}`
        : `is good until ${validTo} by the clock of this machine, but it was revoked or replaced, or one of the clocks is wrong`;
    return new MusterError(
      'unauthenticated',
      `the certificate of node ${nodeName} ${state}: ${joinAgain(nodeName)}. The coordinator's answer: ${refusal.message}`,
      { cause: refusal },
    );
  }

  private get isEncrypted(): boolean {
    return this.stored.caCertificate !== null;
  }

  /** @returns false: it cannot be stored, such as on a full disk; what was shown until now is shown again */
  private use(proof: NodeProof): boolean {
    try {
      if (this.stored.credential !== proof.credential)
        this.store({ ...this.stored, ...replacing(this.stored, proof) });
    } catch (error) {
      this.log.error({ error: messageOf(error) }, 'the credential of this node could not be stored');
      return false;
    }
    this.shown = 0;
    return true;
  }

  /** A key whose certificate has not arrived proves nothing. */
  private candidates(): readonly NodeProof[] {
    const { next, previous } = this.stored;
    const secret = next == null ? [] : [{ credential: next, certificate: null }];
    const all = [this.stored, ...secret, ...(previous == null ? [] : [previous])];
    return all.filter(
      ({ credential, certificate }) =>
        usable(credential, this.isEncrypted) !== null && (!this.isEncrypted || certificate != null),
    );
  }

  /** On disk first: what is shown is never forgotten by a crash. */
  private store(stored: StoredCredential): void {
    this.file.write(stored);
    this.stored = stored;
  }
}

/** What is sent for a credential: of a key only that there is one. */
export async function offered(credential: string, nodeName: string, encrypted: boolean): Promise<string> {
  if (!encrypted) return credential;
  const { certificateRequest } = await import('./certificateRequest.ts');
  return certificateRequest(credential, nodeName);
}
