/**
 * Tokens and who they stand for. A token is 32 random bytes; the store keeps its SHA-256 only, and looking a hash up
 * tells an attacker nothing about how close a guess was.
 */
import { createHash } from 'node:crypto';
import { MusterError } from '@muster/common/errors';
import type { NodeName, RandomBytes } from '@muster/common/ids';
import { type User, unlimitedScope, verbsOf } from '@muster/common/people';
import type { Identity, UserIdentity } from '../caller.ts';
import type { Credential } from '../store/store.ts';

export const joinTokenLifetimeMs = 15 * 60_000;

export function newToken(kind: Credential['kind'], random: RandomBytes): string {
  return `muster_${kind}_${Buffer.from(random(32)).toString('base64url')}`;
}

/**
 * A join token or login code that identifies the coordinator as well.
 * @param authorityDigest SHA-256 of the CA's certificate, which a client on another machine checks before it sends this
 * token to anyone; null: the coordinator has none, being on loopback
 */
export function bindToAuthority(token: string, authorityDigest: Uint8Array | null): string {
  return authorityDigest === null ? token : `${token}.${Buffer.from(authorityDigest).toString('base64url')}`;
}

export function hashToken(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

/** The part of a secret's hash that tells credentials apart in lists and events. */
export function shortHash(secretHash: string): string {
  return secretHash.slice(0, 16);
}

/** A credential that nobody has used yet, and that takes the place of no other. */
export function newCredential(
  facts: Pick<Credential, 'id' | 'kind' | 'subject' | 'secretHash' | 'createdAtMs' | 'expiresAtMs'>,
): Credential {
  return {
    ...facts,
    usedFor: null,
    nextHash: null,
    lastUsedAtMs: null,
    replaces: false,
    label: '',
    scope: unlimitedScope,
  };
}

/**
 * The credential that makes the bearer of its secret the admin. It never expires.
 * @param nowMs wall clock
 */
export function adminCredential(secretHash: string, nowMs: number): Credential {
  const id = `admin:${shortHash(secretHash)}`;
  return newCredential({
    id,
    kind: 'admin',
    subject: 'admin',
    secretHash,
    createdAtMs: nowMs,
    expiresAtMs: null,
  });
}

/** For a call, or a command, of a credential that has ended meanwhile. */
export function revoked(id: string): MusterError {
  return new MusterError('unauthenticated', `the credential ${id} has been revoked or replaced`);
}

/** For a call of a token that has expired. Both moments are of the wall clock. */
export function expired(id: string, expiresAtMs: number, nowMs: number): MusterError {
  return new MusterError(
    'unauthenticated',
    `the credential ${id} has expired: it was valid until ${isoSeconds(expiresAtMs)}, and the clock of the coordinator shows ` +
      isoSeconds(nowMs),
  );
}

function isoSeconds(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}

/**
 * @param secretHash the one of its secrets that was shown
 * @param peer address of the client; null: unknown
 * @param nowMs wall clock: lifetimes of credentials are the one decision made on it
 * @param user who the subject is, as far as it is a user
 * @returns null for a credential that is expired, or of a user that does not exist
 */
export function identityOf(
  credential: Credential,
  secretHash: string,
  peer: string | null,
  nowMs: number,
  user: User | undefined,
): Identity | null {
  const { id, kind, subject } = credential;
  if (credential.expiresAtMs !== null && credential.expiresAtMs <= nowMs) return null;
  switch (kind) {
    case 'admin':
      return { kind, id, peer };
    case 'agent':
      return { kind, id, peer, node: subject as NodeName, renewed: secretHash === credential.nextHash };
    case 'join':
      return { kind, id, peer, node: subject as NodeName };
    case 'login':
      return user === undefined ? null : { kind, id, peer, user: subject };
    case 'user':
      return user === undefined ? null : userIdentity(credential, peer, user);
    default: {
      const never: never = kind;
      return never;
    }
  }
}

function userIdentity({ id, scope }: Credential, peer: string | null, user: User): UserIdentity {
  return {
    kind: 'user',
    id,
    peer,
    user: user.name,
    role: user.role,
    verbs: verbsOf[user.role].filter((verb) => scope.verbs?.includes(verb) ?? true),
    projects: user.projects,
    onlyProjects: scope.projects,
    budget: scope.budget,
    use: 'read',
  };
}
