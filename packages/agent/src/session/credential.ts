/**
 * What the agent proves itself by: made here, stored before it is used, traded for a join token and renewed from then on. With TLS
 * it is a private key, for which the coordinator returns a certificate. On loopback without TLS it is a secret.
 */
import { createHash, createPrivateKey, generateKeyPairSync, randomBytes, X509Certificate } from 'node:crypto';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { MusterError } from '@muster/common/errors';
import { writeFileDurably } from '@muster/common/files';

export interface NodeProof {
  /** A private key in PEM, or a secret. */
  readonly credential: string;
  /** PEM, for that key; absent: it is a secret, or its certificate has not arrived. */
  readonly certificate?: string | null;
}

export interface StoredCredential extends NodeProof {
  readonly nodeName: string;
  /** The coordinator has taken it. */
  readonly joined: boolean;
  /** PEM of the CA that the coordinator has to prove itself by, from the join on; null: it had no TLS. */
  readonly caCertificate: string | null;
  /** Offered to the coordinator, or traded for a newer join token, without its answer having arrived. */
  readonly next?: string | null;
  /** The one before it, for a coordinator whose store was restored from a backup of that time. */
  readonly previous?: NodeProof | null;
  /** SHA-256 of the join token that was tried last: another one is a user's request to join again. */
  readonly joinedWith?: string | null;
}

export interface CredentialFile {
  read(): StoredCredential | null;
  write(stored: StoredCredential): void;
  remove(): void;
}

/** `credential` in the agent's data directory, mode 0600. */
export function credentialFile(dataDir: string): CredentialFile {
  const path = join(dataDir, 'credential');
  return {
    read: () => (existsSync(path) ? parseCredential(path, readFileSync(path, 'utf8')) : null),
    write: (stored) => writeFileDurably(path, `${JSON.stringify(stored)}\n`, 0o600),
    remove: () => rmSync(path, { force: true }),
  };
}

function parseCredential(path: string, text: string): StoredCredential {
  try {
    const parsed = JSON.parse(text) as Partial<StoredCredential>;
    const { nodeName, credential, joined, caCertificate } = parsed;
    if (typeof nodeName === 'string' && typeof credential === 'string') {
      return {
        ...parsed,
        nodeName,
        credential,
        joined: joined === true,
        caCertificate: caCertificate ?? null,
      };
    }
  } catch {
    // Reported below: the message of a parser helps nobody.
  }
  throw new MusterError(
    'failed_precondition',
    `${path} does not hold a credential: restore it from a backup, or delete it and join again: muster token create NAME --replace`,
  );
}

/**
 * Trades a join token for a credential. Safe to repeat with the same one.
 * @returns its certificate, PEM; null: there is no TLS
 */
export type RequestJoin = (joinToken: string, credential: string) => Promise<string | null>;

/**
 * The credential to present, and what is stored with it, joining the cluster first if that has not happened yet.
 * @param caCertificate what the coordinator has proved itself by, to be kept; null: there is no TLS
 * @throws {MusterError} when there is neither a credential nor a token, or the directory is another node's
 */
export async function obtainCredential(
  file: CredentialFile,
  nodeName: string,
  joinToken: string | null,
  requestJoin: RequestJoin,
  caCertificate: string | null,
): Promise<StoredCredential> {
  const found = file.read();
  // A join that was tried under another name and never answered claims nothing.
  const stored = found?.joined === false && found.nodeName !== nodeName ? null : found;
  if (stored !== null && stored.nodeName !== nodeName) {
    throw new MusterError(
      'failed_precondition',
      `this data directory belongs to node ${stored.nodeName}, not ${nodeName}: use --name ${stored.nodeName}, or another --data`,
    );
  }
  const encrypted = caCertificate !== null;
  if (stored?.joined === true) {
    const known = { ...stored, caCertificate };
    if (joinToken !== null && isNewToken(joinToken, stored))
      return joinAnew(file, known, joinToken, requestJoin);
    requirePresentable(known);
    if (stored.caCertificate !== caCertificate) file.write(known);
    return known;
  }
  if (stored === null && joinToken === null) throw notJoined(nodeName);
  const credential = usable(stored?.credential, encrypted) ?? makeCredential(encrypted);
  // An earlier join may have been taken without its answer having arrived: then this credential is good already, and
  // if it is not, the session will be refused with the reason. A key without its certificate is good for nothing yet.
  const fresh = { nodeName, credential, joined: false, caCertificate };
  if (joinToken === null) {
    requirePresentable(fresh);
    return fresh;
  }
  file.write(fresh);
  let certificate: string | null;
  try {
    certificate = await requestJoin(joinToken, credential);
  } catch (error) {
    const mayHaveJoined = stored !== null && error instanceof MusterError && spent.has(error.code);
    if (mayHaveJoined && !encrypted) return fresh;
    // Refused by the coordinator, it has not joined: the directory is nobody's, and may be used under another name.
    if (stored === null && isRefusal(error)) file.remove();
    throw error;
  }
  return written(file, { ...fresh, ...obtained(fresh, certificate), joinedWith: digestOf(joinToken) });
}

function written(file: CredentialFile, stored: StoredCredential): StoredCredential {
  file.write(stored);
  return stored;
}

/** @returns a private key in PEM, or without TLS a secret */
export function makeCredential(encrypted: boolean): string {
  if (!encrypted) return `muster_agent_${randomBytes(32).toString('base64url')}`;
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
}

/** @returns null for none, and for one of the time before the coordinator had TLS, or had none */
export function usable(credential: string | null | undefined, encrypted: boolean): string | null {
  return credential != null && credential.startsWith('muster_agent_') !== encrypted ? credential : null;
}

/** Whether the certificate is for this key. A damaged one is for none. */
export function certifies(certificate: string, privateKey: string): boolean {
  try {
    return new X509Certificate(certificate).checkPrivateKey(createPrivateKey(privateKey));
  } catch {
    return false;
  }
}

/** @throws {MusterError} for a credential that nothing can be proved with to a coordinator with TLS, or to one without it */
function requirePresentable({ nodeName, credential, certificate, caCertificate }: StoredCredential): void {
  const encrypted = caCertificate !== null;
  if (usable(credential, encrypted) !== null && (!encrypted || certificate != null)) return;
  throw new MusterError(
    'unauthenticated',
    encrypted
      ? `node ${nodeName} has no certificate, which agents of a coordinator with TLS prove themselves by: ${joinAgain(nodeName)}`
      : `node ${nodeName} has a certificate, which a coordinator without TLS cannot verify: name its CA with --ca, or ` +
          joinAgain(nodeName),
  );
}

/** The remedy for an agent whose credential is no longer valid. */
export function joinAgain(nodeName: string): string {
  return (
    `create a token with \`muster token create ${nodeName} --replace\` and start the agent with it in MUSTER_JOIN_TOKEN ` +
    'or --join-token-file'
  );
}

function digestOf(joinToken: string): string {
  return createHash('sha256').update(joinToken).digest('hex');
}

/** Whether this token is one that the agent has not tried, which makes it a user's request to join again. */
export function isNewToken(joinToken: string, stored: StoredCredential): boolean {
  return stored.joinedWith !== digestOf(joinToken);
}

/**
 * For one that has joined, and has a token that it has not tried: its credential may have expired or been revoked. A token
 * that is refused, such as the one it joined with long ago, changes nothing.
 */
async function joinAnew(
  file: CredentialFile,
  stored: StoredCredential,
  joinToken: string,
  requestJoin: RequestJoin,
): Promise<StoredCredential> {
  const encrypted = stored.caCertificate !== null;
  const next = usable(stored.next, encrypted) ?? makeCredential(encrypted);
  file.write({ ...stored, next });
  const joinedWith = digestOf(joinToken);
  let certificate: string | null;
  try {
    certificate = await requestJoin(joinToken, next);
  } catch (error) {
    if (!(error instanceof MusterError && spent.has(error.code))) throw error;
    requirePresentable(stored);
    return written(file, { ...stored, next, joinedWith });
  }
  const obtainedNext = obtained({ ...stored, credential: next }, certificate);
  return written(file, { ...stored, ...replacing(stored, obtainedNext), joinedWith });
}

/** @throws {MusterError} for an answer without what the agent needs */
function obtained(
  { nodeName, credential, caCertificate }: StoredCredential,
  certificate: string | null,
): NodeProof & Pick<StoredCredential, 'joined'> {
  if (caCertificate === null) return { credential, joined: true };
  if (certificate !== null && certifies(certificate, credential))
    return { credential, certificate, joined: true };
  throw new MusterError(
    'failed_precondition',
    `the coordinator returned no certificate for the key of ${nodeName}: it is of an earlier version; upgrade it first`,
  );
}

/** What is stored once another credential has taken the place of the one in use. */
export function replacing(
  { credential, certificate = null }: NodeProof,
  next: NodeProof,
): Pick<StoredCredential, 'credential' | 'certificate' | 'joined' | 'next' | 'previous'> {
  return {
    credential: next.credential,
    certificate: next.certificate ?? null,
    joined: true,
    next: null,
    previous: { credential, certificate },
  };
}

export function notJoined(nodeName: string): MusterError {
  return new MusterError(
    'unauthenticated',
    `node ${nodeName} has not joined yet: create a token with \`muster token create ${nodeName}\` and start the agent ` +
      'with it in MUSTER_JOIN_TOKEN or --join-token-file',
  );
}

/** An answer, and not the lack of one: the join was not taken. */
function isRefusal(error: unknown): boolean {
  return error instanceof MusterError && error.code !== 'unavailable' && error.code !== 'deadline_exceeded';
}

/** The token was used, perhaps by us; or it has expired since. */
const spent: ReadonlySet<string> = new Set(['already_exists', 'unauthenticated']);
