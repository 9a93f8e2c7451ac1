/** Commands about credentials and join tokens. Secrets and public keys come in as hashes. */

import { MusterError } from '@muster/common/errors';
import { clusterSubject } from '@muster/common/eventKinds';
import type { NodeName } from '@muster/common/ids';
import { maySeeAllTokens } from '../auth/access.ts';
import { adminCredential, joinTokenLifetimeMs, newCredential, shortHash } from '../auth/tokens.ts';
import type { Identity } from '../caller.ts';
import { heldTasks } from '../state/heldTasks.ts';
import type { Draft } from '../state/state.ts';
import type { Credential } from '../store/store.ts';
import { forgetTokens } from './identity.ts';
import { isOfUser } from './people.ts';

export interface JoinTokenCommand {
  readonly node: NodeName;
  readonly secretHash: string;
  /** It ends the credential that the node has, once it is used. */
  readonly replaces: boolean;
}

/**
 * @returns when it expires, wall clock
 * @throws {MusterError} `already_exists` for the name of a node that has a credential, unless the token replaces that
 */
export function createJoinToken(
  draft: Draft,
  { node, secretHash, replaces }: JoinTokenCommand,
  nowMs: number,
): number {
  if (agentCredential(draft, node) !== undefined && !replaces) throw hasJoined(node, 'choose another name');
  const id = `join:${shortHash(secretHash)}`;
  const expiresAtMs = nowMs + joinTokenLifetimeMs;
  const token = newCredential({
    id,
    kind: 'join',
    subject: node,
    secretHash,
    createdAtMs: nowMs,
    expiresAtMs,
  });
  draft.putCredential({ ...token, replaces });
  draft.emit({ kind: 'token.created', subject: clusterSubject, data: { id, node, replaces } }, nowMs);
  return expiresAtMs;
}

export interface JoinCommand {
  readonly node: NodeName;
  readonly tokenHash: string;
  readonly credentialHash: string;
  readonly lifetimeMs: number;
}

/**
 * Trades a join token for a credential. Repeated with the same credential, it changes nothing.
 * @returns when the credential expires, wall clock
 * @throws {MusterError} `unauthenticated`, or `already_exists` for a token, a name or a secret that is in use
 */
export function joinNode(
  draft: Draft,
  { node, tokenHash, credentialHash, lifetimeMs }: JoinCommand,
  nowMs: number,
): number {
  const token = draft.credentialOf(tokenHash);
  if (token?.kind !== 'join' || token.subject !== node)
    throw new MusterError('unauthenticated', `the join token is not for a node named "${node}"`);
  const expiresAtMs = nowMs + lifetimeMs;
  const obtained = token.usedFor === credentialHash ? draft.credentialOf(credentialHash) : undefined;
  if (obtained !== undefined) return obtained.expiresAtMs ?? expiresAtMs;
  if (token.usedFor !== null) {
    const message = `this join token was used already; make another: muster token create ${node}`;
    throw new MusterError('already_exists', message);
  }
  const before = agentCredential(draft, node);
  if (before !== undefined && !token.replaces)
    throw hasJoined(node, 'choose another name: muster token create NAME');
  const holder = draft.credentialOf(credentialHash);
  // The store would refuse it too, but only by failing the whole commit.
  if (holder !== undefined && holder.id !== before?.id) {
    throw new MusterError(
      'already_exists',
      `the credential of ${node} belongs to another node: each agent needs a data directory of its own`,
    );
  }
  draft.putCredential({ ...token, usedFor: credentialHash });
  // The same again, whose answer was lost: the credential stays, and so do its sessions.
  const id = holder?.id ?? `agent:${node}:${shortHash(credentialHash)}`;
  forgetTokens(draft, node);
  if (before !== undefined && before.id !== id) draft.removeCredential(before);
  draft.putCredential(
    newCredential({
      id,
      kind: 'agent',
      subject: node,
      secretHash: credentialHash,
      createdAtMs: nowMs,
      expiresAtMs,
    }),
  );
  const replaced = before === undefined || before.id === id ? {} : { replaced: before.id };
  const data = { id, node, token: token.id, ...replaced };
  draft.emit({ kind: 'token.joined', subject: clusterSubject, data }, nowMs);
  return expiresAtMs;
}

function hasJoined(node: NodeName, otherwise: string): MusterError {
  return new MusterError(
    'already_exists',
    `a node named ${node} has joined already; for the same machine after a reinstall: muster token create ${node} ` +
      `--replace; for another machine ${otherwise}`,
  );
}

const namedMax = 3;

/**
 * That nothing ends unasked with a credential that is revoked: what runs on a node whose agent may not come back ends with its
 * lease.
 * @param name for the remedy
 * @throws {MusterError} `failed_precondition` while tasks that have not ended are on the node of one of these credentials
 */
export function requireIdleNodes(draft: Draft, credentials: readonly Credential[], name: string): void {
  const agents = credentials.filter(({ kind }) => kind === 'agent');
  const nodes = new Set<string>(agents.map(({ subject }) => subject));
  if (nodes.size === 0) return;
  const held = [...heldTasks(draft.activeJobs())].filter(([node]) => nodes.has(node));
  const ids = [...new Set(held.flatMap(([, tasks]) => tasks.map(({ job }) => job.id)))];
  if (ids.length === 0) return;
  const more = ids.length > namedMax ? ` and ${ids.length - namedMax} more` : '';
  throw new MusterError(
    'failed_precondition',
    `${[...nodes].join(', ')} runs ${ids.slice(0, namedMax).join(', ')}${more}, which end there with their leases. ` +
      `To confirm: muster token revoke ${name} --force (in the API: force)`,
  );
}

/**
 * Ends credentials.
 * @returns their ids
 * @throws {MusterError} `failed_precondition` for the admin token
 */
export function revoke(draft: Draft, credentials: readonly Credential[], nowMs: number): readonly string[] {
  if (credentials.some(({ kind }) => kind === 'admin')) {
    throw new MusterError(
      'failed_precondition',
      'the admin token cannot be revoked, because nobody could use this cluster then; replace it: muster token rotate',
    );
  }
  for (const credential of credentials) {
    draft.removeCredential(credential);
    const { id, subject } = credential;
    const data = isOfUser(credential) ? { id, user: subject } : { id, node: subject };
    draft.emit({ kind: 'token.revoked', subject: clusterSubject, data }, nowMs);
  }
  return credentials.map(({ id }) => id);
}

/** Whether a caller may list, rotate and revoke a credential: an admin any, a user the tokens of their own. */
export function maySee(caller: Identity, { kind, subject }: Pick<Credential, 'kind' | 'subject'>): boolean {
  return maySeeAllTokens(caller) || (caller.kind === 'user' && kind === 'user' && subject === caller.user);
}

/** Another admin token in the place of the one that there is. */
export function rotateAdminToken(draft: Draft, secretHash: string, nowMs: number): void {
  for (const before of draft.credentialsOf('admin'))
    if (before.kind === 'admin') draft.removeCredential(before);
  const credential = adminCredential(secretHash, nowMs);
  draft.putCredential(credential);
  draft.emit({ kind: 'token.rotated', subject: clusterSubject, data: { id: credential.id } }, nowMs);
}

/**
 * The secret that an agent will use from now on is valid beside the one in use.
 * @returns false for a credential that is no longer valid, and for a secret that is another credential's
 */
export function offerSecret(draft: Draft, id: string, nextHash: string): boolean {
  const credential = draft.credential(id);
  if (credential === undefined) return false;
  const holder = draft.credentialOf(nextHash);
  if (holder !== undefined) return holder.id === id && credential.nextHash === nextHash;
  draft.putCredential({ ...credential, nextHash });
  return true;
}

/** The agent keeps the secret that it offered: the earlier one ends. Without such an offer nothing changes. */
export function keepSecret(draft: Draft, id: string, lifetimeMs: number, nowMs: number): void {
  const credential = draft.credential(id);
  if (credential === undefined || credential.nextHash === null) return;
  draft.putCredential({
    ...credential,
    secretHash: credential.nextHash,
    nextHash: null,
    createdAtMs: nowMs,
    expiresAtMs: nowMs + lifetimeMs,
  });
  const data = { id, node: credential.subject };
  draft.emit({ kind: 'token.renewed', subject: clusterSubject, data }, nowMs);
}

/**
 * Credentials that a caller may see.
 * @param name an id, the beginning of exactly one, a node's name for all that it has, or `user:NAME` for all of a user
 * @throws {MusterError} `not_found`, or `invalid` when it is the beginning of several
 */
export function credentialsNamed(draft: Draft, caller: Identity, name: string): readonly Credential[] {
  const seen = draft.everyCredential().filter((each) => maySee(caller, each));
  const whole = seen.filter((each) => {
    if (each.id === name) return true;
    return isOfUser(each) ? name === `user:${each.subject}` : each.kind !== 'admin' && each.subject === name;
  });
  if (whole.length > 0) return whole;
  const [first, second] = name === '' ? [] : seen.filter(({ id }) => id.startsWith(name));
  if (first === undefined)
    throw new MusterError(
      'not_found',
      `no credential or join token named ${name}; \`muster token list\` lists them`,
    );
  if (second === undefined) return [first];
  throw new MusterError('invalid', `${name} is ambiguous (${first.id}, ${second.id} …): type more of it`);
}

/** The one credential with this name or id. @throws {MusterError} as `credentialsNamed` */
export function credentialNamed(draft: Draft, caller: Identity, name: string): Credential {
  const [first, second] = credentialsNamed(draft, caller, name);
  if (first !== undefined && second === undefined) return first;
  throw new MusterError('invalid', `${name} names several credentials: give the id of one`);
}

/** The credential that a node's agent shows. */
function agentCredential(draft: Draft, nodeName: string): Credential | undefined {
  return draft.credentialsOf(nodeName).find(({ kind }) => kind === 'agent');
}
