/** Where NATS is, how to get in, and a connection to it. */
import { MusterError } from '@muster/common/errors';
import {
  type Authenticator,
  connect,
  credsAuthenticator,
  type NatsConnection,
  nkeyAuthenticator,
} from '@nats-io/transport-node';

export type NatsCredentials =
  | { readonly user: string; readonly pass: string }
  | { readonly token: string }
  | { readonly authenticator: Authenticator };

/** Where NATS is and how to get in. */
export interface NatsTarget {
  readonly servers: readonly string[];
  /** The same without credentials: what may be logged. */
  readonly shown: string;
  readonly tls: boolean;
  readonly credentials: NatsCredentials | null;
}

/** For one connection attempt, request or acknowledgement: longer than a loaded server takes, short enough to retry. */
export const answerTimeoutMs = 5_000;
/** A connection that nobody uses is asked for a sign of life this often; the second missing answer ends it. */
const pingIntervalMs = 20_000;
/** The seed of a user: base 32, with a checksum that the library looks at. */
const nkeySeed = /^SU[A-Z2-7]{56}$/;

/**
 * @param url `nats://[user:password@|token@]host[:port]`, several separated by commas; `tls://` insists on encryption
 * @throws {MusterError} `invalid` when it is no such address
 */
export function parseNatsUrl(url: string): NatsTarget {
  const parsed = url.split(',').map((each) => parseServer(each.trim()));
  const servers = parsed.filter((server) => server !== null);
  const [first] = servers;
  if (first === undefined || servers.length < parsed.length) {
    // The text itself may hold a password, so the message does not repeat it.
    throw new MusterError(
      'invalid',
      'the NATS address does not have the form nats://host:4222 (several: separated by commas; a password: percent-encoded)',
    );
  }
  const hosts = servers.map(({ host }) => host);
  const { tls, user, pass } = first;
  const credentials = user === '' ? null : pass === '' ? { token: user } : { user, pass };
  return { servers: hosts, shown: hosts.join(','), tls, credentials };
}

/**
 * @param text of a file: `user:password`, a token, the seed of an nkey, or what `nsc` writes for a user (JWT and seed)
 * @throws {MusterError} `invalid` when it is none of these; the message does not repeat it
 */
export function parseNatsCredentials(text: string): NatsCredentials {
  if (text.includes('BEGIN NATS USER JWT')) {
    return { authenticator: credsAuthenticator(new TextEncoder().encode(text)) };
  }
  const line = text.trim();
  if (nkeySeed.test(line)) return { authenticator: nkeyAuthenticator(new TextEncoder().encode(line)) };
  const colon = line.indexOf(':');
  if (/^[^\s]+$/.test(line) && colon !== 0) {
    return colon < 0 ? { token: line } : { user: line.slice(0, colon), pass: line.slice(colon + 1) };
  }
  const message =
    'the file of NATS credentials holds neither one line `user:password`, nor a token, nor the seed of an nkey, ' +
    'nor a credentials file of NATS';
  throw new MusterError('invalid', message);
}

function parseServer(text: string): { host: string; tls: boolean; user: string; pass: string } | null {
  try {
    const { protocol, host, username, password } = new URL(text);
    if ((protocol !== 'nats:' && protocol !== 'tls:') || host === '') return null;
    const [user, pass] = [decodeURIComponent(username), decodeURIComponent(password)];
    return { host, tls: protocol === 'tls:', user, pass };
  } catch {
    return null;
  }
}

/**
 * @param url see `parseNatsUrl`
 * @param credentials text of a file, see `parseNatsCredentials`; null: those of the address, or none
 * @throws {MusterError} `invalid` for a malformed address or file
 */
export function natsTarget(url: string, credentials: string | null): NatsTarget {
  const target = parseNatsUrl(url);
  return credentials === null ? target : { ...target, credentials: parseNatsCredentials(credentials) };
}

/**
 * A connection that ends when it is lost: whoever made it finds out what it has missed, and makes the next one.
 * @param name as NATS shows it to operators
 * @param ca PEM of the authority that has signed the servers' certificates; null: those that the system trusts
 * @throws {Error} when NATS does not answer or refuses
 */
export function connectNats(target: NatsTarget, name: string, ca: string | null): Promise<NatsConnection> {
  return connect({
    servers: [...target.servers],
    name,
    reconnect: false,
    timeout: answerTimeoutMs,
    pingInterval: pingIntervalMs,
    maxPingOut: 1,
    ...(target.tls || ca !== null ? { tls: ca === null ? {} : { ca } } : {}),
    ...target.credentials,
  });
}
