/** How clients reach a coordinator: on loopback as it is, everywhere else by TLS that trusts one CA and no other. */
import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { checkServerIdentity, createSecureContext, type SecureContext } from 'node:tls';
import { type ChannelCredentials, type ChannelOptions, credentials } from '@grpc/grpc-js';
import { isLoopbackHost, parseAddress } from '../address.ts';
import { MusterError } from '../errors.ts';

export interface ChannelTarget {
  /** `host:port`. */
  readonly address: string;
  /** PEM of the CA that the coordinator's certificate has to be of; null: no TLS, on loopback only. */
  readonly caCertificate: string | null;
}

/** TLS forbids IP addresses where the name of the server is sent ahead; this stands in for them. Servers here ignore it. */
const nameForIpAddresses = 'coordinator.muster.internal';

/** @throws {MusterError} for an address that is none, that would need TLS, or a CA that cannot be read */
export function channelTo({ address, caCertificate }: ChannelTarget): {
  readonly credentials: ChannelCredentials;
  readonly options: ChannelOptions;
} {
  const host = parseAddress(address)?.host;
  if (host === undefined) {
    throw new MusterError(
      'invalid',
      `invalid address "${address}"; expected HOST:PORT, such as 127.0.0.1:7070`,
    );
  }
  if (caCertificate === null) {
    if (isLoopbackHost(host)) return { credentials: credentials.createInsecure(), options: {} };
    throw new MusterError('failed_precondition', `no CA to verify the coordinator at ${address}`);
  }
  const secureContext = secureContextOf(caCertificate);
  return {
    credentials: credentials.createFromSecureContext(secureContext, {
      // Against the host that was asked for, whatever name stood in for it.
      checkServerIdentity: (_name, certificate) => checkServerIdentity(host, certificate),
    }),
    options: isIP(host) === 0 ? {} : { 'grpc.ssl_target_name_override': nameForIpAddresses },
  };
}

/** Trusts this CA alone. */
function secureContextOf(caCertificate: string): SecureContext {
  try {
    // `createSecureContext` takes text that is no certificate too, and then trusts nobody.
    const ca = new X509Certificate(caCertificate).toString();
    return createSecureContext({ ca, minVersion: 'TLSv1.3' });
  } catch (error) {
    throw new MusterError('invalid', 'the CA is not a certificate in PEM', { cause: error });
  }
}
