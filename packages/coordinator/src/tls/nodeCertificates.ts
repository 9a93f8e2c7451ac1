/**
 * Certificates of nodes. An agent makes its key, which never leaves its machine, and sends a request that this key has signed;
 * the CA certifies the key as the node's. Later the TLS handshake of each connection shows that the client holds the key.
 */
import { createHash, type KeyObject, X509Certificate } from 'node:crypto';
import type { NodeName, RandomBytes } from '@muster/common/ids';
import type { Authority } from './authority.ts';

/** A key whose holder has been proved. */
export interface NodeKey {
  readonly publicKey: KeyObject;
  /** As `keyHashOf`. */
  readonly hash: string;
}

export class NodeCertificates {
  private readonly authority: Authority;
  private readonly random: RandomBytes;

  constructor(authority: Authority, random: RandomBytes) {
    this.authority = authority;
    this.random = random;
  }

  /**
   * @param request PEM, PKCS #10; the name in it is not looked at, because the caller knows whose request it is
   * @throws {MusterError} `invalid` for a request that its key has not signed, or for a key that is not ECDSA P-256
   */
  async keyOf(request: string): Promise<NodeKey> {
    const { certifiableKey } = await import('./certificate.ts');
    const publicKey = await certifiableKey(request);
    return { publicKey, hash: keyHash(publicKey) };
  }

  /**
   * @param untilMs wall clock; earlier where the CA itself ends
   * @returns PEM
   */
  async certify({ publicKey }: NodeKey, node: NodeName, untilMs: number): Promise<string> {
    const { nodeCertificate } = await import('./certificate.ts');
    const { authority } = this;
    return nodeCertificate(
      {
        name: node,
        publicKey,
        serial: this.random(16),
        // The CA's own first moment: only the coordinator checks it, and its clock may be set back after this was made.
        notBeforeMs: authority.notBeforeMs,
        notAfterMs: Math.min(untilMs, authority.notAfterMs),
      },
      authority,
    );
  }
}

/**
 * SHA-256 of the public key, hexadecimal: by this a credential is found again. It stays the same when a key is certified twice,
 * as after an answer that was lost.
 * @param certificate DER
 */
export function keyHashOf(certificate: Uint8Array): string {
  return keyHash(new X509Certificate(certificate).publicKey);
}

function keyHash(publicKey: KeyObject): string {
  return createHash('sha256')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest('hex');
}
