/** Which server a client trusts to be the coordinator: on loopback any, elsewhere one with a certificate of one CA. */
import type { SecureContext } from 'node:tls';
import { type Address, isLoopbackHost, parseAddress } from '../address.ts';
import { MusterError } from '../errors.ts';

export interface ChannelTarget {
  /** `host:port`. */
  readonly address: string;
  /** PEM of the CA that the coordinator's certificate has to be of; null: no TLS, on loopback only. */
  readonly caCertificate: string | null;
  /** What the client proves itself by in the handshake; null or absent: it sends a token instead. */
  readonly identity?: ClientIdentity | null;
}

export interface ClientIdentity {
  /** PEM. */
  readonly privateKey: string;
  /** PEM. */
  readonly certificate: string;
}

export interface TrustedTarget extends Address {
  /** null: no TLS. */
  readonly secureContext: SecureContext | null;
}

/** TLS forbids IP addresses where the name of the server is sent ahead; this stands in for them. Servers here ignore it. */
export const nameForIpAddresses = 'coordinator.muster.internal';

/** @throws {MusterError} for an address that is none, that would need TLS, or a CA that cannot be read */
export function trustedTarget({ address, caCertificate, identity }: ChannelTarget): TrustedTarget {
  const parsed = parseAddress(address);
  if (parsed === null) {
    throw new MusterError(
      'invalid',
      `invalid address "${address}"; expected HOST:PORT, such as 127.0.0.1:7070`,
    );
  }
  if (caCertificate !== null)
    return { ...parsed, secureContext: secureContextOf(caCertificate, identity ?? null) };
  if (isLoopbackHost(parsed.host)) return { ...parsed, secureContext: null };
  throw new MusterError('failed_precondition', `no CA to verify the coordinator at ${address}`);
}

/** Trusts this CA alone. */
function secureContextOf(caCertificate: string, identity: ClientIdentity | null): SecureContext {
  // Loaded here, because TLS takes as long to load as the rest of a command's start, and most commands stay on loopback.
  const { X509Certificate } = process.getBuiltinModule('node:crypto');
  const { createSecureContext } = process.getBuiltinModule('node:tls');
  let ca: string;
  try {
    // `createSecureContext` takes text that is no certificate too, and then trusts no server.
    ca = new X509Certificate(caCertificate).toString();
  } catch (error) {
    throw new MusterError('invalid', 'the CA is not a certificate in PEM', { cause: error });
  }
  const own = identity === null ? {} : { key: identity.privateKey, cert: identity.certificate };
  return createSecureContext({ ca, minVersion: 'TLSv1.3', ...own });
}
