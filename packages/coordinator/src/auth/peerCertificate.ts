/** The certificate that the peer of a call has shown in the TLS handshake, which proves that it holds the key. */
import { TLSSocket } from 'node:tls';
import type { ServerInterceptingCallInterface } from '@grpc/grpc-js';

/** True if the CA of this cluster has made the certificate, whenever it is valid. @param certificate DER */
export type HasCertified = (certificate: Uint8Array) => boolean;

/**
 * gRPC hides a certificate that OpenSSL has refused, and OpenSSL refuses by the system clock, which may be wrong. Such a
 * certificate is taken from the connection itself; the store knows when the credential ends, and the trusted clock decides.
 * @returns DER, or null if the peer has shown no certificate of the CA
 */
export function peerCertificate(
  call: ServerInterceptingCallInterface,
  hasCertified: HasCertified,
): Uint8Array | null {
  const verified = call.getAuthContext().sslPeerCertificate?.raw;
  if (verified !== undefined) return verified;
  const shown = socketOf(call)?.getPeerCertificate().raw;
  return shown !== undefined && hasCertified(shown) ? shown : null;
}

/** The library keeps it in a private member. Null if it does not, or if the connection has no TLS. */
function socketOf(call: object): TLSSocket | null {
  const { stream } = call as { readonly stream?: { readonly session?: { readonly socket?: unknown } } };
  const socket = stream?.session?.socket;
  return socket instanceof TLSSocket ? socket : null;
}
