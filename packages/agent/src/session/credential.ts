/** The agent's own credential: made here, stored before it is used, traded for a join token and renewed from then on. */
import { createHash, randomBytes } from 'node:crypto';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { MusterError } from '@muster/common/errors';
import { writeFileDurably } from '@muster/common/files';

export interface StoredCredential {
  readonly nodeName: string;
  readonly credential: string;
  /** The coordinator has taken it. */
  readonly joined: boolean;
  /** PEM of the CA that the coordinator has to prove itself by, from the join on; null: it had no TLS. */
  readonly caCertificate: string | null;
  /** Offered to the coordinator, or traded for a newer join token, without its answer having arrived. */
  readonly next?: string | null;
  /** The one before it, for a coordinator whose store was restored from a backup of that time. */
  readonly previous?: string | null;
  /** SHA-256 of the join token that was tried last: another one is somebody's word to join anew. */
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
    // Said below: the reason of a parser helps nobody.
  }
  throw new MusterError(
    'failed_precondition',
    `${path} does not hold a credential: restore it from a backup, or delete it and join again: muster token create NAME --replace`,
  );
}

/**
 * The credential to present, and what is stored with it, joining the cluster first if that has not happened yet.
 * @param requestJoin trades the token; safe to repeat with the same credential
 * @param caCertificate what the coordinator has proved itself by, to be kept; null: there is no TLS
 * @throws {MusterError} when there is neither a credential nor a token, or the directory is another node's
 */
export async function obtainCredential(
  file: CredentialFile,
  nodeName: string,
  joinToken: string | null,
  requestJoin: (joinToken: string, credential: string) => Promise<void>,
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
  if (stored?.joined === true) {
    const known = { ...stored, caCertificate };
    if (joinToken !== null && stored.joinedWith !== digestOf(joinToken))
      return joinAnew(file, known, joinToken, requestJoin);
    if (stored.caCertificate !== caCertificate) file.write(known);
    return known;
  }
  if (stored === null && joinToken === null) throw notJoined(nodeName);
  const credential = stored?.credential ?? newSecret();
  // An earlier join may have been taken without its answer having arrived: then this credential is good already, and
  // if it is not, the session will be refused with the reason.
  const fresh = { nodeName, credential, joined: false, caCertificate };
  if (joinToken === null) return fresh;
  file.write(fresh);
  try {
    await requestJoin(joinToken, credential);
  } catch (error) {
    const mayHaveJoined = stored !== null && error instanceof MusterError && spent.has(error.code);
    if (mayHaveJoined) return fresh;
    // Refused by the coordinator, it has not joined: the directory is nobody's, and may be used under another name.
    if (stored === null && isRefusal(error)) file.remove();
    throw error;
  }
  return written(file, { ...fresh, joined: true, joinedWith: digestOf(joinToken) });
}

function written(file: CredentialFile, stored: StoredCredential): StoredCredential {
  file.write(stored);
  return stored;
}

export function newSecret(): string {
  return `muster_agent_${randomBytes(32).toString('base64url')}`;
}

function digestOf(joinToken: string): string {
  return createHash('sha256').update(joinToken).digest('hex');
}

/**
 * For one that has joined, and has a token that it has not tried: its credential may have expired or been revoked. A token
 * that is refused, such as the one it joined with long ago, changes nothing.
 */
async function joinAnew(
  file: CredentialFile,
  stored: StoredCredential,
  joinToken: string,
  requestJoin: (joinToken: string, credential: string) => Promise<void>,
): Promise<StoredCredential> {
  const next = stored.next ?? newSecret();
  file.write({ ...stored, next });
  const joinedWith = digestOf(joinToken);
  try {
    await requestJoin(joinToken, next);
  } catch (error) {
    if (!(error instanceof MusterError && spent.has(error.code))) throw error;
    return written(file, { ...stored, next, joinedWith });
  }
  return written(file, { ...stored, credential: next, previous: stored.credential, next: null, joinedWith });
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
