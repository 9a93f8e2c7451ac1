/** How clients of the public API reach a coordinator. */
import { connect, isIP } from 'node:net';
import { type GrpcChannel, grpcChannel } from '../grpc/channel.ts';
import { Http2Connection } from '../grpc/connection.ts';
import { musterVersion, versionKey } from '../version.ts';
import { type ChannelTarget, nameForIpAddresses, trustedTarget } from './trust.ts';

/** The coordinator tells those who are too old, or too new for it. */
const ofVersion = [versionKey, musterVersion] as const;

/**
 * A channel that dials at its first call.
 * @param token is sent with every call, once the coordinator has shown its certificate
 * @param more headers of every call
 * @throws {MusterError} as `trustedTarget` does
 */
export function openChannel(
  target: ChannelTarget,
  token: string,
  more: readonly (readonly [string, string])[] = [],
): GrpcChannel {
  const headers = [ofVersion, ...more];
  const { host, port, secureContext } = trustedTarget(target);
  const authority = target.address;
  if (secureContext === null) {
    const dial = () => new Http2Connection(connect({ host, port }), 'connect');
    return grpcChannel(dial, { scheme: 'http', authority, token, headers });
  }
  const { checkServerIdentity, connect: connectTls } = process.getBuiltinModule('node:tls');
  const dial = () => {
    const socket = connectTls({
      host,
      port,
      secureContext,
      servername: isIP(host) === 0 ? host : nameForIpAddresses,
      ALPNProtocols: ['h2'],
      // Against the host that was asked for, whatever name stood in for it.
      checkServerIdentity: (_name, certificate) => checkServerIdentity(host, certificate),
    });
    return new Http2Connection(socket, 'secureConnect');
  };
  return grpcChannel(dial, { scheme: 'https', authority, token, headers });
}
