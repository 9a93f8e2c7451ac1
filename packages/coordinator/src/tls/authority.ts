/** The CA of one cluster: made at the first start that needs it, kept in the data directory, trusted by nobody else. */
import { createPrivateKey, generateKeyPairSync, type KeyObject, X509Certificate } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { MusterError, messageOf } from '@muster/common/errors';
import { writeFileDurably } from '@muster/common/files';
import type { RandomBytes } from '@muster/common/ids';

const dayMs = 24 * 60 * 60_000;

/** Changing a CA means visiting every machine, so it lasts longer than they do. */
export const authorityLifetimeMs = 3_650 * dayMs;

/**
 * Clocks of other machines may be behind ours; to them a certificate made now would not be valid yet. A clock without a battery can be
 * off by a year.
 */
export const backdatedMs = 410 * dayMs;

export interface Authority {
  /** PEM. */
  readonly certificate: string;
  readonly certificatePath: string;
  readonly privateKey: KeyObject;
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
}

/** Where the CA's certificate lies in a data directory: what clients on other machines need a copy of. */
export function authorityPath(dataDir: string): string {
  return join(dataDir, 'tls', 'ca.pem');
}

export function hasAuthority(dataDir: string): boolean {
  return existsSync(authorityPath(dataDir));
}

/**
 * @param clusterId goes into its name, so that people with several clusters can tell their CAs apart
 * @throws {MusterError} when the files are damaged, do not belong together or are expired
 */
export async function openAuthority(
  dataDir: string,
  clusterId: string,
  random: RandomBytes,
  nowMs: number,
): Promise<Authority> {
  const certificatePath = authorityPath(dataDir);
  const keyPath = join(dataDir, 'tls', 'ca.key');
  if (!existsSync(certificatePath)) await makeAuthority(certificatePath, keyPath, clusterId, random, nowMs);
  const startOver =
    `Restore ${join(dataDir, 'tls')} from a backup; without one, remove that directory: ` +
    'the next start makes a new CA, and each node joins it by a token of its own (muster token create NODE --replace)';
  try {
    const certificate = readFileSync(certificatePath, 'utf8');
    const privateKey = createPrivateKey(readFileSync(keyPath, 'utf8'));
    const parsed = new X509Certificate(certificate);
    const notAfterMs = Date.parse(parsed.validTo);
    if (!parsed.checkPrivateKey(privateKey)) throw new Error('key and certificate do not belong together');
    if (notAfterMs <= nowMs) throw new Error(`its certificate expired on ${parsed.validTo}`);
    const notBeforeMs = Date.parse(parsed.validFrom);
    return { certificate, certificatePath, privateKey, notBeforeMs, notAfterMs };
  } catch (error) {
    throw new MusterError(
      'failed_precondition',
      `the CA of this cluster cannot be used: ${messageOf(error)}. ${startOver}`,
      { cause: error },
    );
  }
}

/** The key first: a certificate without its key would be taken for a CA. */
async function makeAuthority(
  certificatePath: string,
  keyPath: string,
  clusterId: string,
  random: RandomBytes,
  nowMs: number,
): Promise<void> {
  const { authorityCertificate } = await import('./certificate.ts');
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  mkdirSync(join(keyPath, '..'), { recursive: true, mode: 0o700 });
  writeFileDurably(keyPath, privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(), 0o600);
  const certificate = await authorityCertificate({
    name: `Muster CA of cluster ${clusterId}`,
    privateKey,
    serial: random(16),
    notBeforeMs: nowMs - backdatedMs,
    notAfterMs: nowMs + authorityLifetimeMs,
  });
  writeFileDurably(certificatePath, certificate, 0o600);
}
