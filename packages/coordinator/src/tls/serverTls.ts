/**
 * TLS of the gRPC server. The server's own key and certificate are never on disk: they are made at each start and again
 * when two thirds of their life are over, for new connections only; those that are open stay open.
 */
import { createHash, generateKeyPairSync, X509Certificate } from 'node:crypto';
import { hostname, networkInterfaces } from 'node:os';
import type { SecureContextOptions } from 'node:tls';
import { ServerCredentials } from '@grpc/grpc-js';
import { formatAddress, isLoopbackHost, parseAddress } from '@muster/common/address';
import { messageOf } from '@muster/common/errors';
import type { RandomBytes } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import { type Authority, backdatedMs, hasAuthority, openAuthority } from './authority.ts';
import { certifiedHosts, hostsForOthers, type Machine } from './hosts.ts';
import { NodeCertificates } from './nodeCertificates.ts';

const dayMs = 24 * 60 * 60_000;
/** A client whose clock is ahead by a year must still take it. Some clients refuse certificates of more than 825 days in all. */
export const serverLifetimeMs = 410 * dayMs;
/** For a client to prove that it speaks TLS at all; Node would wait two minutes for a client that just holds a connection. */
const handshakeTimeoutMs = 10_000;
/** Timers cannot count 60 days, and a machine may sleep; so the clock is looked at. */
const renewalCheckMs = 60 * 60_000;

/** Of the coordinator's own certificates, wall clock. */
export interface OwnCertificateEnds {
  readonly authorityMs: number;
  /** Changes with each renewal. */
  readonly serverMs: number;
}

export interface ServerTls {
  /** For gRPC. */
  readonly credentials: TlsCredentials;
  /** For HTTP, which asks for no certificate of clients: the same key and certificate. */
  readonly https: HttpsContext;
  /** That the certificate names. */
  readonly hosts: readonly string[];
  /** For clients on this machine. */
  readonly authorityPath: string;
  /** What join tokens pin: SHA-256 of the CA's certificate, DER. */
  readonly authorityDigest: Buffer;
  readonly nodeCertificates: NodeCertificates;
  /** When its certificates end, as of now. */
  ends(): OwnCertificateEnds;
  close(): void;
}

export interface HttpsContext {
  readonly options: SecureContextOptions;
  /** Called with what new connections use from then on. */
  onRenewed: (listener: (options: SecureContextOptions) => void) => void;
}

export interface ServerTlsParts {
  readonly dataDir: string;
  readonly clusterId: string;
  /** Host that is listened on. */
  readonly host: string;
  readonly advertise: readonly string[];
  readonly random: RandomBytes;
  /** The wall clock that is trusted. */
  readonly wallMs: () => number;
  /** The system clock, by which programs on this machine verify the certificate. Default: the trusted one. */
  readonly systemWallMs?: () => number;
  readonly log: Logger;
}

/**
 * @returns null for a coordinator that has never left loopback. One that has keeps its CA and its TLS there too: clients
 * that trust the CA must never find themselves asked to do without.
 * @throws {MusterError} when the CA cannot be used
 */
export async function openServerTls(parts: ServerTlsParts): Promise<ServerTls | null> {
  if (isLoopbackHost(parts.host) && !hasAuthority(parts.dataDir)) return null;
  const authority = await openAuthority(parts.dataDir, parts.clusterId, parts.random, parts.wallMs());
  warnOfClockBehind(parts, authority);
  let issued = issuedNow(parts);
  let context = await issue(parts, authority, issued);
  const credentials = new TlsCredentials(context, authority);
  const listeners: ((options: SecureContextOptions) => void)[] = [];
  const renewWhenDue = async () => {
    const now = issuedNow(parts);
    if (!isRenewalDue(issued.lastMs, now.lastMs) && !isRenewalDue(issued.firstMs, now.firstMs)) return;
    context = await issue(parts, authority, now);
    credentials.renew(context);
    for (const listener of listeners) listener(context);
    issued = now;
    parts.log.info({}, 'the server certificate was renewed');
  };
  const timer = setInterval(() => {
    renewWhenDue().catch((error: unknown) =>
      parts.log.warn(
        { error: messageOf(error) },
        'the server certificate could not be renewed, trying again later',
      ),
    );
  }, renewalCheckMs);
  timer.unref();
  return {
    credentials,
    https: {
      get options() {
        return context;
      },
      onRenewed: (listener) => void listeners.push(listener),
    },
    hosts: hostsOf(parts),
    authorityPath: authority.certificatePath,
    nodeCertificates: new NodeCertificates(authority, parts.random),
    ends: () => ({ authorityMs: authority.notAfterMs, serverMs: serverEndMs(issued.lastMs, authority) }),
    authorityDigest: createHash('sha256').update(new X509Certificate(authority.certificate).raw).digest(),
    close: () => clearInterval(timer),
  };
}

/** Others would hear of it only as a certificate that has expired, on machines whose clocks are right. */
function warnOfClockBehind(
  { wallMs, log }: ServerTlsParts,
  { notBeforeMs, certificatePath }: Authority,
): void {
  const nowMs = wallMs();
  if (nowMs >= notBeforeMs) return;
  log.warn(
    {
      clock: new Date(nowMs).toISOString(),
      validFrom: new Date(notBeforeMs).toISOString(),
      path: certificatePath,
    },
    'the clock of this machine is wrong: it shows a time before the CA of this cluster was made, and machines whose clocks are right ' +
      'will take the certificate of this coordinator for expired; set the clock and restart the coordinator',
  );
}

/** The earlier and the later of both clocks at the moment of an issue. */
interface IssuedAt {
  readonly firstMs: number;
  readonly lastMs: number;
}

/** While the clocks differ, the certificate has to be valid by both: clients go by either. */
function issuedNow({ wallMs, systemWallMs = wallMs }: ServerTlsParts): IssuedAt {
  const [trustedMs, systemMs] = [wallMs(), systemWallMs()];
  return { firstMs: Math.min(trustedMs, systemMs), lastMs: Math.max(trustedMs, systemMs) };
}

/** A clock that was put back would otherwise keep a certificate until it is not valid yet. */
export function isRenewalDue(issuedMs: number, nowMs: number): boolean {
  return nowMs >= issuedMs + (serverLifetimeMs * 2) / 3 || nowMs < issuedMs - backdatedMs;
}

/** `host:port` for agents on other machines, best first. @param served the address that it came to listen on */
export function addressesForOthers(
  host: string,
  advertise: readonly string[],
  served: string,
): readonly string[] {
  const port = parseAddress(served)?.port ?? 0;
  const hosts = isLoopbackHost(host) ? advertise : hostsForOthers(host, advertise, thisMachine());
  return hosts.map((each) => formatAddress({ host: each, port }));
}

function thisMachine(): Machine {
  return { hostname: hostname(), interfaces: interfacesOrNone() };
}

/** In a sandbox without netlink sockets they cannot be listed; then `advertise` must contain the addresses. */
function interfacesOrNone(): Machine['interfaces'] {
  try {
    return networkInterfaces();
  } catch {
    return {};
  }
}

function serverEndMs(issuedMs: number, { notAfterMs }: Authority): number {
  return Math.min(issuedMs + serverLifetimeMs, notAfterMs);
}

function hostsOf({ host, advertise }: ServerTlsParts): readonly string[] {
  return certifiedHosts(host, advertise, thisMachine());
}

async function issue(
  parts: ServerTlsParts,
  authority: Authority,
  { firstMs, lastMs }: IssuedAt,
): Promise<SecureContextOptions> {
  // Loaded only where there is TLS: the library behind it costs memory that loopback need not pay.
  const { serverCertificate } = await import('./certificate.ts');
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const certificate = await serverCertificate(
    {
      name: `Muster coordinator of cluster ${parts.clusterId}`,
      publicKey,
      hosts: hostsOf(parts),
      serial: parts.random(16),
      notBeforeMs: firstMs - backdatedMs,
      notAfterMs: serverEndMs(lastMs, authority),
    },
    authority,
  );
  return {
    // With the CA's own, which joining agents compare with what their token pins.
    cert: certificate + authority.certificate,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }),
    // By which certificates of nodes are verified.
    ca: authority.certificate,
    minVersion: 'TLSv1.3',
  };
}

/** grpc-js takes new certificates from credentials that notify it; those that it makes itself never do. */
export class TlsCredentials extends ServerCredentials {
  private readonly authority: X509Certificate;

  constructor(context: SecureContextOptions, { certificate }: Pick<Authority, 'certificate'>) {
    // Users have no certificate, so one is asked for and not required; the interceptor decides what each call needs.
    const clients = { requestCert: true, rejectUnauthorized: false };
    super({ minVersion: 'TLSv1.3', handshakeTimeout: handshakeTimeoutMs, ...clients }, context);
    this.authority = new X509Certificate(certificate);
  }

  /** True if the CA has made the certificate, whenever it is valid. @param certificate DER */
  hasCertified(certificate: Uint8Array): boolean {
    const shown = new X509Certificate(certificate);
    return !shown.ca && shown.checkIssued(this.authority) && shown.verify(this.authority.publicKey);
  }

  renew(context: SecureContextOptions): void {
    this.updateSecureContextOptions(context);
  }

  override _equals(other: ServerCredentials): boolean {
    return this === other;
  }
}
