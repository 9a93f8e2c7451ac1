/** The agent's own credential: made here, stored before it is used, traded once for a join token. */
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
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
}

export interface CredentialFile {
  read(): StoredCredential | null;
  write(stored: StoredCredential): void;
}

/** `credential` in the agent's data directory, mode 0600. */
export function credentialFile(dataDir: string): CredentialFile {
  const path = join(dataDir, 'credential');
  return {
    read: () => (existsSync(path) ? parseCredential(path, readFileSync(path, 'utf8')) : null),
    write: (stored) => writeFileDurably(path, `${JSON.stringify(stored)}\n`, 0o600),
  };
}

function parseCredential(path: string, text: string): StoredCredential {
  try {
    const { nodeName, credential, joined, caCertificate } = JSON.parse(text) as Partial<StoredCredential>;
    if (typeof nodeName === 'string' && typeof credential === 'string') {
      return { nodeName, credential, joined: joined === true, caCertificate: caCertificate ?? null };
    }
  } catch {
    // Said below: the reason of a parser helps nobody.
  }
  throw new MusterError(
    'failed_precondition',
    `${path} does not hold a credential: restore it from a backup, or delete it and join again under another node name`,
  );
}

/**
 * The credential to present, joining the cluster first if that has not happened yet.
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
): Promise<string> {
  const stored = file.read();
  if (stored !== null && stored.nodeName !== nodeName) {
    throw new MusterError(
      'failed_precondition',
      `this data directory belongs to node ${stored.nodeName}, not ${nodeName}: use --name ${stored.nodeName}, or another --data`,
    );
  }
  if (stored?.joined === true) {
    if (stored.caCertificate !== caCertificate) file.write({ ...stored, caCertificate });
    return stored.credential;
  }
  if (stored === null && joinToken === null) throw notJoined(nodeName);
  const credential = stored?.credential ?? `muster_agent_${randomBytes(32).toString('base64url')}`;
  // An earlier join may have been taken without its answer having arrived: then this credential is good already, and
  // if it is not, the session will be refused with the reason.
  if (joinToken === null) return credential;
  file.write({ nodeName, credential, joined: false, caCertificate });
  try {
    await requestJoin(joinToken, credential);
  } catch (error) {
    const mayHaveJoined = stored !== null && error instanceof MusterError && spent.has(error.code);
    if (!mayHaveJoined) throw error;
    return credential;
  }
  file.write({ nodeName, credential, joined: true, caCertificate });
  return credential;
}

export function notJoined(nodeName: string): MusterError {
  return new MusterError(
    'unauthenticated',
    `node ${nodeName} has not joined yet: make a token with \`muster token create ${nodeName}\` and start the agent ` +
      'with it in MUSTER_JOIN_TOKEN or --join-token-file',
  );
}

/** The token was used, perhaps by us; or it has expired since. */
const spent: ReadonlySet<string> = new Set(['already_exists', 'unauthenticated']);
