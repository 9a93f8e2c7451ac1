/**
 * The agent's connections to its coordinator: which CA it trusts, and clients that trust no other.
 *
 * An agent on another machine starts with nothing but a join token that names the SHA-256 of the CA's certificate, by which
 * it finds that certificate (`pinnedCa.ts`). Every connection, the joining one first, is verified against this CA.
 */
import { Client, Metadata, makeClientConstructor } from '@grpc/grpc-js';
import { isLoopbackHost, parseAddress } from '@muster/common/address';
import { MusterError, messageOf } from '@muster/common/errors';
import type { AgentHubClient } from '@muster/common/gen/muster/v1/AgentHub';
import type { TaskRef } from '@muster/common/ids';
import { digestOf, fetchCa, pinInToken } from '@muster/common/pinnedCa';
import { bearer, channelTo } from '@muster/common/wire/channel';
import { taskRefToWire } from '@muster/common/wire/codec';
import { connectionProblem } from '@muster/common/wire/connectionProblem';
import { agentHubService } from '@muster/common/wire/service';
import { fromServiceError } from '@muster/common/wire/status';
import type { ChannelTarget } from '@muster/common/wire/trust';
import { isNewToken, type NodeProof, notJoined, type StoredCredential } from './credential.ts';
import type { CredentialRenewal } from './credentialRenewal.ts';

/** A node with many tasks is welcomed with all of their specs in one message. */
const messageBytesMax = 64 * 1024 * 1024;

const answerTimeoutMs = 10_000;
const joinTriesMax = 6;

/** A client with a connection of its own. */
export function connectHub(coordinator: ChannelTarget): AgentHubClient {
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
    // A coordinator whose machine lost its power sends nothing: without this an upload would wait for it forever.
    'grpc.keepalive_time_ms': 20_000,
    'grpc.keepalive_timeout_ms': 10_000,
  });
}

/** A connection for one kind of calls. */
export class HubLane {
  private readonly coordinator: ChannelTarget;
  private readonly renewal: Pick<CredentialRenewal, 'current'>;
  private open: { readonly client: AgentHubClient; readonly certificate: string | null } | null = null;

  constructor(coordinator: ChannelTarget, renewal: Pick<CredentialRenewal, 'current'>) {
    this.coordinator = coordinator;
    this.renewal = renewal;
  }

  /** For the next call. A connection keeps the certificate that it began with, so a new certificate needs a new connection. */
  client(): AgentHubClient {
    const { credential, certificate = null } = this.renewal.current();
    if (this.open !== null && this.open.certificate === certificate) return this.open.client;
    // Calls that are open on the earlier one continue.
    this.open?.client.close();
    const identity = certificate === null ? null : { privateKey: credential, certificate };
    this.open = { certificate, client: connectHub({ ...this.coordinator, identity }) };
    return this.open.client;
  }

  close(): void {
    this.open?.client.close();
  }
}

/** What a call carries besides: the secret, where there is no certificate. */
export function tokenOf({ credential, certificate = null }: NodeProof): Metadata {
  return certificate === null ? bearer(credential) : new Metadata();
}

interface Joining {
  readonly nodeName: string;
  readonly joinToken: string;
  readonly credential: string;
}

/**
 * Trades the join token for the agent's credential. A coordinator that is slow to answer, such as one that all nodes of a cluster
 * join at once, is asked again: a join may be repeated with the same key.
 * @param wallMs deadlines of calls go by it
 * @returns the certificate; null: there is no TLS
 */
export async function requestJoin(
  client: AgentHubClient,
  coordinator: ChannelTarget,
  request: Joining,
  wallMs: () => number,
): Promise<string | null> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await joinOnce(client, coordinator, request, wallMs());
    } catch (error) {
      const isSlow = error instanceof MusterError && error.code === 'deadline_exceeded';
      if (!isSlow || tries === joinTriesMax) throw error;
    }
  }
}

function joinOnce(
  client: AgentHubClient,
  coordinator: ChannelTarget,
  request: Joining,
  nowMs: number,
): Promise<string | null> {
  return new Promise((resolve, reject) => {
    client.Join(
      request,
      bearer(request.joinToken),
      { deadline: nowMs + answerTimeoutMs },
      (error, answer) => {
        if (error === null) return resolve(answer?.certificate ?? null);
        const known = fromServiceError(error);
        reject(known.code === 'unavailable' ? (problemOf(coordinator, known.message) ?? known) : known);
      },
    );
  });
}

/** The values of the secrets of a task that this node must run. @param nowMs wall clock @throws {MusterError} */
export function requestSecrets(
  client: AgentHubClient,
  task: TaskRef,
  metadata: Metadata,
  nowMs: number,
): Promise<readonly { readonly name: string; readonly value: Uint8Array }[]> {
  return new Promise((resolve, reject) => {
    const request = { task: taskRefToWire(task) };
    client.ReadSecrets(request, metadata, { deadline: nowMs + answerTimeoutMs }, (error, answer) => {
      if (error === null) resolve(answer?.secrets ?? []);
      else reject(fromServiceError(error));
    });
  });
}

/** Why a connection to the coordinator has failed or ended, with what a user can do where it is known. */
export function whyUnconnected(coordinator: ChannelTarget, error: unknown): string {
  const message = messageOf(error);
  return problemOf(coordinator, message)?.message ?? message;
}

function problemOf({ address, caCertificate }: ChannelTarget, reason: string): MusterError | null {
  return connectionProblem(address, reason, caCertificate !== null);
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
 * The CA to trust: the one named now, then the one that a join token pins which was not tried yet, then the one trusted since the
 * join.
 * @returns null: none, for a coordinator without TLS on this machine
 * @throws {MusterError} when another machine's coordinator could not be distinguished from an impostor, or is one
 */
export async function caOfCoordinator(
  { address, nodeName, joinToken, caCertificate }: CoordinatorTrust,
  stored: StoredCredential | null,
): Promise<string | null> {
  if (caCertificate !== null) return caCertificate;
  const pin = pinInToken(joinToken);
  const known = stored?.caCertificate ?? null;
  if (known !== null) {
    if (joinToken === null || pin === null || digestOf(known).equals(pin)) return known;
    // A newer token takes precedence: the agent may have reached the wrong coordinator, or the coordinator's CA was replaced.
    if (stored?.joined !== true) return fetchCa(address, pin);
    return isNewToken(joinToken, stored) ? fetchCa(address, pin, known) : known;
  }
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
