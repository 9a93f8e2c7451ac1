/**
 * The agent's way to its coordinator: which CA it trusts, and clients that trust no other.
 *
 * An agent on another machine starts with nothing but a join token that names the SHA-256 of the CA's certificate. It
 * asks the server at the coordinator's address for its chain, without believing a word of it, and keeps the certificate
 * with that digest: whoever handed it over, it is the one that the coordinator made. Nothing is sent on that connection.
 * Every later one, the joining one first, is verified against this CA and the host that was dialled, so somebody in
 * between can pass the real chain on but never finish a handshake: that takes a key which this CA has certified.
 */
import { createHash, X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { connect, type TLSSocket } from 'node:tls';
import { Client, makeClientConstructor } from '@grpc/grpc-js';
import { isLoopbackHost, parseAddress } from '@muster/common/address';
import { MusterError } from '@muster/common/errors';
import type { AgentHubClient } from '@muster/common/gen/muster/v1/AgentHub';
import { bearer, channelTo } from '@muster/common/wire/channel';
import { connectionProblem } from '@muster/common/wire/connectionProblem';
import { agentHubService } from '@muster/common/wire/service';
import { fromServiceError } from '@muster/common/wire/status';
import { notJoined, type StoredCredential } from './credential.ts';

/** A node with many tasks is welcomed with all of their specs in one message. */
const messageBytesMax = 64 * 1024 * 1024;

const answerTimeoutMs = 10_000;

export interface CoordinatorEndpoint {
  /** `host:port`. */
  readonly address: string;
  /** PEM of the CA that it has to prove itself by; null: none, on loopback only. */
  readonly caCertificate: string | null;
}

/** A client with a connection of its own. */
export function connectHub(coordinator: CoordinatorEndpoint): AgentHubClient {
  const Hub = makeClientConstructor(agentHubService, 'AgentHub') as unknown as new (
    ...args: ConstructorParameters<typeof Client>
  ) => AgentHubClient;
  const channel = channelTo(coordinator);
  return new Hub(coordinator.address, channel.credentials, {
    ...channel.options,
    'grpc.use_local_subchannel_pool': 1,
    // Our own backoff decides when to dial; gRPC's, which grows to two minutes, would refuse to for that long.
    'grpc.initial_reconnect_backoff_ms': 100,
    'grpc.max_reconnect_backoff_ms': 500,
    'grpc.max_receive_message_length': messageBytesMax,
    // A coordinator whose machine lost its power says nothing: without this an upload would wait for it for ever.
    'grpc.keepalive_time_ms': 20_000,
    'grpc.keepalive_timeout_ms': 10_000,
  });
}

/** Trades the join token for the agent's credential. @param nowMs wall clock, which deadlines of calls go by */
export function requestJoin(
  client: AgentHubClient,
  coordinator: CoordinatorEndpoint,
  request: { readonly nodeName: string; readonly joinToken: string; readonly credential: string },
  nowMs: number,
): Promise<void> {
  return new Promise((resolve, reject) => {
    client.Join(request, bearer(request.joinToken), { deadline: nowMs + answerTimeoutMs }, (error) => {
      if (error === null) return resolve();
      const known = fromServiceError(error);
      const { address, caCertificate } = coordinator;
      const problem = connectionProblem(address, known.message, caCertificate !== null);
      reject(known.code === 'unavailable' ? (problem ?? known) : known);
    });
  });
}

export interface CoordinatorTrust {
  /** `host:port`. */
  readonly address: string;
  readonly nodeName: string;
  readonly joinToken: string | null;
  /** PEM of a CA that the operator named; null: none was. */
  readonly caCertificate: string | null;
}

/**
 * The CA to trust: the one named now, then the one trusted since the join, then the one that the join token pins.
 * @returns null: none, for a coordinator without TLS on this machine
 * @throws {MusterError} when another machine's coordinator could not be distinguished from an impostor, or is one
 */
export async function caOfCoordinator(
  { address, nodeName, joinToken, caCertificate }: CoordinatorTrust,
  stored: StoredCredential | null,
): Promise<string | null> {
  if (caCertificate !== null) return caCertificate;
  const pin = pinOf(joinToken);
  const known = stored?.caCertificate ?? null;
  // Until it has joined it may have been led to the wrong coordinator; the newer token is the better guide.
  if (known !== null && (stored?.joined === true || pin === null || digestOf(known).equals(pin)))
    return known;
  if (pin !== null) return fetchCa(address, pin);
  const host = parseAddress(address)?.host;
  if (host === undefined || isLoopbackHost(host)) return null;
  if (stored === null && joinToken === null) throw notJoined(nodeName);
  throw new MusterError(
    'failed_precondition',
    joinToken === null
      ? `node ${nodeName} has no CA to verify the coordinator at ${address}: copy tls/ca.pem from the coordinator's ` +
          'data directory to this machine and name it with --ca or MUSTER_CA'
      : `this token was issued by a coordinator that listens on loopback only, not by one at ${address}: start the ` +
          'coordinator with --listen on an address that this machine reaches, and create another token: ' +
          `muster token create ${nodeName}`,
  );
}

/** Tokens of a coordinator with TLS end in `.` and the SHA-256 of its CA's certificate. */
function pinOf(joinToken: string | null): Buffer | null {
  const encoded = /^[\w-]+\.([\w-]{43})$/.exec(joinToken ?? '')?.[1];
  return encoded === undefined ? null : Buffer.from(encoded, 'base64url');
}

/** @param certificate PEM or DER */
function digestOf(certificate: string | Buffer): Buffer {
  return createHash('sha256').update(new X509Certificate(certificate).raw).digest();
}

async function fetchCa(address: string, pin: Buffer): Promise<string> {
  const chain = await peerChain(address);
  const pinned = chain.find((certificate) => digestOf(certificate.raw).equals(pin));
  if (pinned?.ca === true) return pinned.toString();
  throw new MusterError(
    'unauthenticated',
    `the server at ${address} is not the coordinator that issued this join token: its CA differs. ` +
      'A man in the middle is possible; if the address is right, create another token there.',
  );
}

/** The certificates that a server shows, whoever it is. Nothing is sent to it but the handshake. */
function peerChain(address: string): Promise<readonly X509Certificate[]> {
  const { host, port } = parseAddress(address) ?? { host: address, port: 0 };
  return new Promise((resolve, reject) => {
    const socket = connect({
      host,
      port,
      ...(isIP(host) === 0 ? { servername: host } : {}),
      ALPNProtocols: ['h2'],
      minVersion: 'TLSv1.3',
      // The digest decides whom to trust; there is nothing yet to verify the chain by.
      rejectUnauthorized: false,
      timeout: answerTimeoutMs,
    });
    const fail = (error: Error) => {
      socket.destroy();
      const problem = connectionProblem(address, error.message, true);
      reject(problem ?? new MusterError('unavailable', `cannot join at ${address}: ${error.message}`));
    };
    socket.once('error', fail);
    socket.once('timeout', () => fail(new Error('no answer')));
    socket.once('secureConnect', () => {
      const chain = chainOf(socket);
      socket.destroy();
      resolve(chain);
    });
  });
}

function chainOf(socket: TLSSocket): readonly X509Certificate[] {
  const chain: X509Certificate[] = [];
  let next = socket.getPeerX509Certificate();
  while (next !== undefined && chain.length < 8) {
    chain.push(next);
    next = next.issuerCertificate;
  }
  return chain;
}
