/**
 * The CA of a coordinator that somebody knows only by the SHA-256 of its certificate, from a join token or a login code.
 *
 * The server at the address is asked for its chain, which is not trusted, and the certificate with that digest is kept:
 * no matter who handed it over, it is the one that the coordinator made. Nothing is sent on that connection. Every later connection is
 * verified against this CA and the host that was dialled, so somebody in between can pass the real chain on but never finish a
 * handshake: that takes a key which this CA has certified.
 */
import { createHash, X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { connect, type TLSSocket } from 'node:tls';
import { parseAddress } from './address.ts';
import { MusterError } from './errors.ts';
import { connectionProblem } from './wire/connectionProblem.ts';

const answerTimeoutMs = 10_000;

/**
 * Join tokens and login codes of a coordinator with TLS end in `.` and the SHA-256 of its CA's certificate.
 * @returns null: there is none in this one
 */
export function pinInToken(token: string | null): Buffer | null {
  const encoded = /^[\w-]+\.([\w-]{43})$/.exec(token ?? '')?.[1];
  return encoded === undefined ? null : Buffer.from(encoded, 'base64url');
}

/** @param certificate PEM or DER */
export function digestOf(certificate: string | Buffer): Buffer {
  return createHash('sha256').update(new X509Certificate(certificate).raw).digest();
}

/**
 * @param address `host:port`
 * @param known PEM of the CA that stays trusted where the server does not have the pinned one: the token is of the time before it
 * @returns PEM
 * @throws {MusterError} `unauthenticated` when the server there does not show the certificate, or `unavailable`
 */
export async function fetchCa(address: string, pin: Buffer, known: string | null = null): Promise<string> {
  const chain = await peerChain(address);
  const pinned = chain.find((certificate) => digestOf(certificate.raw).equals(pin));
  if (pinned?.ca === true) return pinned.toString();
  if (known !== null) return known;
  throw new MusterError(
    'unauthenticated',
    `the server at ${address} is not the coordinator that issued this token: its CA differs. ` +
      'A man in the middle is possible; if the address is right, create another token there.',
  );
}

/** The certificates that a server shows, no matter who it is. Nothing is sent to it but the handshake. */
function peerChain(address: string): Promise<readonly X509Certificate[]> {
  const { host, port } = parseAddress(address) ?? { host: address, port: 0 };
  return new Promise((resolve, reject) => {
    const socket = connect({
      host,
      port,
      ...(isIP(host) === 0 ? { servername: host } : {}),
      ALPNProtocols: ['h2'],
      minVersion: 'TLSv1.3',
      // The digest decides which CA to trust; there is nothing yet to verify the chain by.
      rejectUnauthorized: false,
      timeout: answerTimeoutMs,
    });
    const fail = (error: Error) => {
      socket.destroy();
      const problem = connectionProblem(address, error.message, true);
      reject(problem ?? new MusterError('unavailable', `cannot connect to ${address}: ${error.message}`));
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
