/** How the library for gRPC reaches a coordinator. */
import { isIP } from 'node:net';
import { checkServerIdentity } from 'node:tls';
import { type ChannelCredentials, type ChannelOptions, credentials, Metadata } from '@grpc/grpc-js';
import { type ChannelTarget, nameForIpAddresses, trustedTarget } from './trust.ts';

/** @throws {MusterError} as `trustedTarget` does */
export function channelTo(target: ChannelTarget): {
  readonly credentials: ChannelCredentials;
  readonly options: ChannelOptions;
} {
  const { host, secureContext } = trustedTarget(target);
  if (secureContext === null) return { credentials: credentials.createInsecure(), options: {} };
  return {
    credentials: credentials.createFromSecureContext(secureContext, {
      // Against the host that was asked for, whatever name stood in for it.
      checkServerIdentity: (_name, certificate) => checkServerIdentity(host, certificate),
    }),
    options: isIP(host) === 0 ? {} : { 'grpc.ssl_target_name_override': nameForIpAddresses },
  };
}

/** Metadata that carries a bearer token; a client may only send it to loopback or over TLS. */
export function bearer(token: string): Metadata {
  const metadata = new Metadata();
  metadata.set('authorization', `Bearer ${token}`);
  return metadata;
}
