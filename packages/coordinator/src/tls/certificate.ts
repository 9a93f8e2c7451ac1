/**
 * The kinds of certificate that a coordinator makes: its CA's, its server's and its nodes'. Import this file lazily: the library
 * behind it costs start time and memory that a coordinator without TLS need not pay.
 */
// oxlint-disable-next-line no-unassigned-import -- first, as the library's dependency injection refuses to load without
import 'reflect-metadata';
import { createPublicKey, type KeyObject } from 'node:crypto';
import { isIP } from 'node:net';
import { MusterError } from '@muster/common/errors';
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  type Extension,
  type JsonGeneralName,
  KeyUsageFlags,
  KeyUsagesExtension,
  Name,
  Pkcs10CertificateRequest,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509';

export interface Validity {
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
}

export interface AuthorityRequest extends Validity {
  readonly name: string;
  /** ECDSA P-256, as are all keys here. */
  readonly privateKey: KeyObject;
  /** 16 random bytes: no two certificates of one CA share it. */
  readonly serial: Uint8Array;
}

export interface ServerRequest extends Validity {
  readonly name: string;
  readonly publicKey: KeyObject;
  /** DNS names and IP addresses that clients may call the server by. */
  readonly hosts: readonly string[];
  readonly serial: Uint8Array;
}

export interface NodeRequest extends Validity {
  readonly name: string;
  readonly publicKey: KeyObject;
  readonly serial: Uint8Array;
}

export interface Issuer {
  /** PEM. */
  readonly certificate: string;
  readonly privateKey: KeyObject;
}

/** A client that does not understand a critical extension must refuse the certificate. */
const critical = true;

/** @returns PEM; may sign servers, and no further CA */
export async function authorityCertificate(request: AuthorityRequest): Promise<string> {
  const publicKey = createPublicKey(request.privateKey);
  const name = commonName(request.name);
  return certificate({ ...request, publicKey, name }, { name, privateKey: request.privateKey }, [
    new BasicConstraintsExtension(true, 0, critical),
    new KeyUsagesExtension(KeyUsageFlags.keyCertSign, critical),
    await SubjectKeyIdentifierExtension.create(encoded(publicKey)),
  ]);
}

/** @returns PEM; good for one thing, being the server of these hosts */
export function serverCertificate(request: ServerRequest, issuer: Issuer): Promise<string> {
  return leafCertificate(request, issuer, [
    new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
    new SubjectAlternativeNameExtension(request.hosts.map(alternativeName)),
  ]);
}

/** @returns PEM; good for one thing, being a client: anyone who holds it cannot pass for the coordinator */
export function nodeCertificate(request: NodeRequest, issuer: Issuer): Promise<string> {
  return leafCertificate(request, issuer, [new ExtendedKeyUsageExtension([ExtendedKeyUsage.clientAuth])]);
}

/**
 * The key that a request for a certificate is about.
 * @param request PEM, PKCS #10
 * @throws {MusterError} `invalid` for text that is no request, one that its own key has not signed, or another kind of key
 */
export async function certifiableKey(request: string): Promise<KeyObject> {
  try {
    const parsed = new Pkcs10CertificateRequest(request);
    const publicKey = createPublicKey({
      key: Buffer.from(parsed.publicKey.rawData),
      format: 'der',
      type: 'spki',
    });
    // Before the signature is looked at: a key of another kind may take long to verify by.
    if (publicKey.asymmetricKeyDetails?.namedCurve === 'prime256v1' && (await parsed.verify()))
      return publicKey;
  } catch {
    // What a parser finds wrong is the same to its sender.
  }
  throw new MusterError(
    'invalid',
    'this is no request for a certificate (PKCS #10, PEM) that an ECDSA P-256 key has signed',
  );
}

async function leafCertificate(
  request: NodeRequest,
  issuer: Issuer,
  extensions: readonly Extension[],
): Promise<string> {
  // Name and key identifier as the CA's certificate has them: a chain whose ends differ is refused, whatever made the CA.
  const authority = new X509Certificate(issuer.certificate);
  const authorityKey = authority.getExtension(SubjectKeyIdentifierExtension)?.keyId;
  const signer = { name: authority.subjectName, privateKey: issuer.privateKey };
  return certificate({ ...request, name: commonName(request.name) }, signer, [
    new BasicConstraintsExtension(false, undefined, critical),
    new KeyUsagesExtension(KeyUsageFlags.digitalSignature, critical),
    ...extensions,
    ...(authorityKey === undefined ? [] : [new AuthorityKeyIdentifierExtension(authorityKey)]),
  ]);
}

interface Subject extends Validity {
  readonly name: Name;
  readonly publicKey: KeyObject;
  readonly serial: Uint8Array;
}

interface Signer {
  readonly name: Name;
  readonly privateKey: KeyObject;
}

async function certificate(subject: Subject, signer: Signer, extensions: Extension[]): Promise<string> {
  const made = await X509CertificateGenerator.create({
    serialNumber: Buffer.from(subject.serial).toString('hex'),
    subject: subject.name,
    issuer: signer.name,
    notBefore: new Date(subject.notBeforeMs),
    notAfter: new Date(subject.notAfterMs),
    publicKey: encoded(subject.publicKey),
    signingKey: signer.privateKey.toCryptoKey({ name: 'ECDSA', namedCurve: 'P-256' }, false, ['sign']),
    signingAlgorithm: { name: 'ECDSA', hash: 'SHA-256' },
    extensions,
  });
  // The library ends without a line break, and the next certificate of a chain has to start on a line of its own.
  return `${made.toString('pem')}\n`;
}

/** A plain string would be searched for escapes and quotes. */
function commonName(name: string): Name {
  return new Name([{ CN: [{ utf8String: name }] }]);
}

function encoded(publicKey: KeyObject): Buffer {
  return publicKey.export({ type: 'spki', format: 'der' });
}

function alternativeName(host: string): JsonGeneralName {
  const version = isIP(host);
  if (version === 0) return { type: 'dns', value: host };
  return { type: 'ip', value: version === 4 ? host : hexGroups(host) };
}

/** Without a zone, and without an IPv4 address in the last two groups, of which the library makes a wrong address. */
function hexGroups(ipv6: string): string {
  const [address = ipv6] = ipv6.split('%');
  return new URL(`http://[${address}]`).hostname.slice(1, -1);
}
