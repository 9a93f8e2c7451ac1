/**
 * Requests to addresses that an operator has given, for which somebody else may answer: https, no redirects, a short time, a bounded
 * answer. The name is resolved once, and the connection goes to just the address that was looked at: a name that means another
 * address a moment later leads nowhere else. Private, link-local and loopback addresses are refused unless they are allowed, so that
 * a webhook is no way into the network of the coordinator.
 */
import { X509Certificate } from 'node:crypto';
import names from 'node:dns/promises';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { BlockList, isIP } from 'node:net';
import { rootCertificates } from 'node:tls';
import { MusterError, messageOf } from '@muster/common/errors';

/** For connecting, sending and the answer, all together. */
export const requestTimeoutMs = 5_000;
/** What is read of an answer; the rest is dropped with the connection. */
const answerBytesMax = 4_096;

export interface SafeTarget {
  readonly url: URL;
  /** http, and addresses of the own network. */
  readonly allowsPrivate: boolean;
  /** PEM of every authority that is trusted. Absent, or null: those of this machine. */
  readonly ca?: readonly string[] | null;
  /** Absent: `requestTimeoutMs`. */
  readonly timeoutMs?: number;
}

export interface SafeAnswer {
  readonly status: number;
  readonly text: string;
}

const privateAddresses = new BlockList();
for (const [network, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
] as const)
  privateAddresses.addSubnet(network, prefix, 'ipv4');
for (const [network, prefix] of [
  // IPv4 within it, as the old form, NAT64, Teredo and 6to4 write it, which may be any address.
  ['::', 96],
  ['64:ff9b::', 96],
  ['64:ff9b:1::', 48],
  ['2001::', 32],
  ['2002::', 16],
  ['fc00::', 7],
  ['fe80::', 10],
  ['fec0::', 10],
  ['ff00::', 8],
] as const)
  privateAddresses.addSubnet(network, prefix, 'ipv6');

/** Whether an address is of no public network. IPv4 within IPv6 counts as what it is. */
export function isPrivateAddress(address: string): boolean {
  const family = isIP(address);
  if (family === 4) return privateAddresses.check(address, 'ipv4');
  if (family !== 6) return true;
  const [, mapped] = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address) ?? [];
  if (mapped !== undefined) return privateAddresses.check(mapped, 'ipv4');
  return privateAddresses.check(address, 'ipv6');
}

/** @throws {MusterError} `invalid` when it is no address of the web, or one that is not encrypted and not allowed */
export function checkedTarget(what: string, text: string, allowsPrivate: boolean): SafeTarget {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    // The text itself may hold a password, so the message does not repeat it.
    throw new MusterError('invalid', `${what} is not a URL; expected https://host/path`);
  }
  if (url.protocol === 'https:' || (url.protocol === 'http:' && allowsPrivate)) return { url, allowsPrivate };
  throw new MusterError(
    'invalid',
    `${what} has the scheme ${url.protocol.slice(0, -1)}; expected https, or http with --alert-private on`,
  );
}

/** The address for a host: resolved once. @throws {Error} when it is not found, or private and not allowed */
export async function pinnedAddress(
  host: string,
  allowsPrivate: boolean,
): Promise<{ readonly address: string; readonly family: 4 | 6 }> {
  const { address, family } = await names.lookup(host.replace(/^\[|\]$/g, ''));
  if (!allowsPrivate && isPrivateAddress(address))
    throw new Error(
      `${host} is ${address}, an address of a private network; to allow it, start the coordinator with --alert-private on`,
    );
  return { address, family: family === 6 ? 6 : 4 };
}

/**
 * Posts a body. A redirect is an answer like any other, and is not followed.
 * @throws {Error} when there is no answer in time
 */
export async function post(
  { url, allowsPrivate, ca = null, timeoutMs = requestTimeoutMs }: SafeTarget,
  body: string,
  headers: Readonly<Record<string, string>>,
  abort: AbortSignal,
): Promise<SafeAnswer> {
  const signal = AbortSignal.any([abort, AbortSignal.timeout(timeoutMs)]);
  const { address, family } = await untilSignal(
    pinnedAddress(url.hostname, allowsPrivate),
    signal,
    timeoutMs,
  );
  const send = url.protocol === 'https:' ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const request = send(
      url,
      {
        method: 'POST',
        headers: { ...headers, 'content-length': String(Buffer.byteLength(body)) },
        // Node asks here for the address, whatever the name means by now.
        lookup: (_host, options, callback) =>
          options.all === true ? callback(null, [{ address, family }]) : callback(null, address, family),
        agent: false,
        signal,
        ...(isIP(url.hostname) === 0 ? { servername: url.hostname } : {}),
        ...(ca === null ? {} : { ca: [...ca] }),
      },
      (response) => void readAnswer(response).then(resolve, reject),
    );
    request.on('error', (error) =>
      reject(signal.aborted && !abort.aborted ? noAnswer(timeoutMs) : withRemedy(error, url.hostname)),
    );
    request.end(body);
  });
}

/**
 * Authorities of an own file are trusted beside the public ones.
 * @throws {MusterError} `invalid` for a text without a certificate
 */
export function trustedWith(pem: string): readonly string[] {
  const own = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  try {
    if (own.length === 0) throw new Error('it has none');
    return [...rootCertificates, ...own.map((each) => new X509Certificate(each).toString())];
  } catch (error) {
    throw new MusterError(
      'invalid',
      `the file of --alert-ca has to hold certificates as PEM: ${messageOf(error)}`,
    );
  }
}

const untrusted: readonly string[] = [
  ...(['DEPTH_ZERO_SELF_SIGNED_CERT', 'SELF_SIGNED_CERT_IN_CHAIN', 'UNABLE_TO_GET_ISSUER_CERT'] as const),
  ...(['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'] as const),
];

/** An error of a connection, with what to do where the certificate of the other side is not trusted. */
export function withRemedy(error: Error, host: string): Error {
  const { code = '' } = error as { code?: string };
  const text = `${code} ${error.message}`;
  if (!untrusted.some((each) => text.includes(each)) && !/self-signed|unable to (?:get|verify)/.test(text))
    return error;
  const message = `the certificate of ${host} is not trusted: ${error.message}; to trust its CA, start the coordinator with --alert-ca FILE`;
  return new Error(message, { cause: error });
}

async function readAnswer(response: IncomingMessage): Promise<SafeAnswer> {
  let text = '';
  response.setEncoding('utf8');
  for await (const piece of response) {
    text += String(piece);
    if (text.length > answerBytesMax) break;
  }
  return { status: response.statusCode ?? 0, text: text.slice(0, answerBytesMax) };
}

function noAnswer(timeoutMs: number): Error {
  return new Error(`no answer within ${timeoutMs / 1_000} s`);
}

async function untilSignal<T>(work: Promise<T>, signal: AbortSignal, timeoutMs: number): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const onAbort = () => aborted.reject(noAnswer(timeoutMs));
  signal.addEventListener('abort', onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
