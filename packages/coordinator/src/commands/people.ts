/** Commands about users, their tokens, and projects. Secrets come in as hashes. */
import { MusterError } from '@muster/common/errors';
import { clusterSubject } from '@muster/common/eventKinds';
import {
  builtInAdmin,
  defaultProject,
  isUserName,
  type Project,
  type Role,
  roles,
  type TokenBudget,
  type TokenScope,
  type User,
  unlimitedScope,
  userNameForm,
} from '@muster/common/people';
import { formatDuration } from '@muster/common/spec/duration';
import { labelForm, labelPattern } from '@muster/common/spec/forms';
import { newCredential, shortHash } from '../auth/tokens.ts';
import type { Draft } from '../state/state.ts';
import type { Credential } from '../store/store.ts';

const loginCodeLifetimeMs = 24 * 60 * 60_000;

/** Of what a user logs in with, and of a token that names no lifetime. */
const userTokenLifetimeMs = 90 * 24 * 60 * 60_000;

export const userTokenLifetimeMaxMs = 366 * 24 * 60 * 60_000;

/** @throws {MusterError} `invalid`, or `already_exists` */
export function addUser(
  draft: Draft,
  { name, role, projects }: { name: string; role: string; projects: readonly string[] },
  nowMs: number,
): User {
  if (!isUserName(name)) throw new MusterError('invalid', `"${name}": ${userNameForm}`);
  if (name === builtInAdmin)
    throw new MusterError(
      'invalid',
      `"${name}" is the user of the built-in admin token: choose another name`,
    );
  if (draft.people.user(name) !== undefined) {
    throw new MusterError(
      'already_exists',
      `there is a user ${name} already; to change their role or projects: muster user set ${name}`,
    );
  }
  const user = {
    name,
    role: knownRole(role),
    projects: projects.length === 0 ? [defaultProject] : checkedProjects(projects),
    createdAtMs: nowMs,
  };
  draft.people.putUser(user);
  draft.emit({ kind: 'user.added', subject: clusterSubject, data: factsOf(user) }, nowMs);
  return user;
}

/** @throws {MusterError} `invalid`, or `not_found` */
export function changeUser(
  draft: Draft,
  name: string,
  { role, projects }: { role: string | null; projects: readonly string[] },
  nowMs: number,
): User {
  const before = knownUser(draft, name);
  const user = {
    ...before,
    role: role === null ? before.role : knownRole(role),
    projects: projects.length === 0 ? before.projects : checkedProjects(projects),
  };
  draft.people.putUser(user);
  draft.emit({ kind: 'user.changed', subject: clusterSubject, data: factsOf(user) }, nowMs);
  return user;
}

/** Ends their tokens too. @throws {MusterError} `not_found` */
export function removeUser(draft: Draft, name: string, nowMs: number): void {
  knownUser(draft, name);
  for (const credential of draft.everyCredential())
    if (isOfUser(credential) && credential.subject === name) draft.removeCredential(credential);
  draft.people.removeUser(name);
  draft.emit({ kind: 'user.removed', subject: clusterSubject, data: { user: name } }, nowMs);
}

/** @returns when the code expires, wall clock. @throws {MusterError} `not_found` */
export function createLoginCode(draft: Draft, name: string, secretHash: string, nowMs: number): number {
  const { name: subject } = knownUser(draft, name);
  const id = `login:${shortHash(secretHash)}`;
  const expiresAtMs = nowMs + loginCodeLifetimeMs;
  draft.putCredential(
    newCredential({ id, kind: 'login', subject, secretHash, createdAtMs: nowMs, expiresAtMs }),
  );
  draft.emit({ kind: 'user.code_created', subject: clusterSubject, data: { id, user: subject } }, nowMs);
  return expiresAtMs;
}

/**
 * Exchanges a login code for a token. Repeated with the same token, it changes nothing.
 * @param codeId the code, with which the call was made
 * @returns when the token expires, wall clock
 * @throws {MusterError} `unauthenticated`, or `already_exists` for a code or a secret that is in use
 */
export function login(
  draft: Draft,
  { codeId, tokenHash, label }: { codeId: string; tokenHash: string; label: string },
  nowMs: number,
): { readonly user: User; readonly expiresAtMs: number } {
  const code = draft.credential(codeId);
  if (code?.kind !== 'login') throw new MusterError('unauthenticated', 'the login code no longer exists');
  const user = knownUser(draft, code.subject);
  requireEnabled(user);
  const holder = draft.credentialOf(tokenHash);
  if (code.usedFor === tokenHash && holder !== undefined)
    return { user, expiresAtMs: holder.expiresAtMs ?? nowMs };
  if (code.usedFor !== null) {
    throw new MusterError(
      'already_exists',
      `this login code was used already; ask an admin for another: muster user code ${user.name}`,
    );
  }
  if (holder !== undefined) throw new MusterError('already_exists', 'this token is in use already');
  draft.putCredential({ ...code, usedFor: tokenHash });
  const token = issue(draft, user, { secretHash: tokenHash, label, scope: unlimitedScope }, nowMs);
  const data = { id: token.id, user: user.name, label, by: 'login' };
  draft.emit({ kind: 'token.issued', subject: clusterSubject, data }, nowMs);
  return { user, expiresAtMs: token.expiresAtMs };
}

/** @throws {MusterError} `permission_denied` */
function requireEnabled({ name, role }: User): void {
  if (role === 'disabled')
    throw new MusterError(
      'permission_denied',
      `the user ${name} is disabled; an admin enables them with: muster user set ${name} --role user`,
    );
}

export interface IdTokenLogin {
  /** Who the ID token is of, and what groups give them. */
  readonly person: { readonly name: string; readonly access: Pick<User, 'role' | 'projects'> | null };
  /** The role of a user that nobody has added; null: they are refused. */
  readonly createRole: Role | null;
  readonly idTokenHash: string;
  readonly tokenHash: string;
}

/**
 * Exchanges an ID token, which was verified, for a token of Muster. Like a login code it is used once, and repeating it with the
 * same token changes nothing. What groups give a user replaces what they had.
 * @returns when the token expires, wall clock
 * @throws {MusterError} `permission_denied` for a user that nobody has added, or who is disabled; `already_exists` for an ID
 *   token or a secret that is in use
 */
export function loginWithIdToken(
  draft: Draft,
  { person, createRole, idTokenHash, tokenHash }: IdTokenLogin,
  nowMs: number,
): { readonly user: User; readonly expiresAtMs: number } {
  const { name, access } = person;
  const used = draft.credentialOf(idTokenHash);
  const holder = draft.credentialOf(tokenHash);
  if (used !== undefined) {
    if (used.usedFor === tokenHash && holder !== undefined)
      return { user: knownUser(draft, name), expiresAtMs: holder.expiresAtMs ?? nowMs };
    throw new MusterError('already_exists', 'this ID token was used already: log in again with muster login');
  }
  if (holder !== undefined) throw new MusterError('already_exists', 'this token is in use already');
  const user = userOfPerson(draft, name, access, createRole, nowMs);
  requireEnabled(user);
  // Remembered for longer than any ID token is accepted, also by a clock that is set back by hours.
  const code = newCredential({
    id: `login:${shortHash(idTokenHash)}`,
    kind: 'login',
    subject: name,
    secretHash: idTokenHash,
    createdAtMs: nowMs,
    expiresAtMs: nowMs + loginCodeLifetimeMs,
  });
  draft.putCredential({ ...code, usedFor: tokenHash });
  const token = issue(
    draft,
    user,
    { secretHash: tokenHash, label: loginLabel, scope: unlimitedScope },
    nowMs,
  );
  const data = { id: token.id, user: name, label: loginLabel, by: 'id_token' };
  draft.emit({ kind: 'token.issued', subject: clusterSubject, data }, nowMs);
  return { user, expiresAtMs: token.expiresAtMs };
}

function userOfPerson(
  draft: Draft,
  name: string,
  access: IdTokenLogin['person']['access'],
  createRole: Role | null,
  nowMs: number,
): User {
  const user = draft.people.user(name);
  if (user === undefined) {
    if (createRole === null)
      throw new MusterError(
        'permission_denied',
        `the issuer knows ${name}, and this cluster does not; an admin adds them with: muster user add ${name} --no-login`,
      );
    return addUser(draft, { name, ...(access ?? { role: createRole, projects: [] }) }, nowMs);
  }
  const isAsBefore =
    access === null ||
    (access.role === user.role && access.projects.join() === [...user.projects].sort().join());
  // A user that an admin has disabled is enabled only by an admin.
  return isAsBefore || user.role === 'disabled' ? user : changeUser(draft, name, access, nowMs);
}

export interface UserTokenCommand {
  readonly user: string;
  readonly secretHash: string;
  readonly label: string;
  readonly scope: Omit<TokenScope, 'budget'>;
  /** null: it has none. */
  readonly budget: TokenBudget | null;
  /** null: the usual one, as far as the token of `by` allows it. */
  readonly lifetimeMs: number | null;
  /** Id of the credential of the call. */
  readonly by: string;
}

/** @throws {MusterError} `not_found`, `invalid`, or `permission_denied` for one that would outlive the token of the call */
export function createUserToken(draft: Draft, command: UserTokenCommand, nowMs: number): IssuedCredential {
  const user = knownUser(draft, command.user);
  const { projects } = command.scope;
  if (projects !== null) checkedProjects(projects);
  const { secretHash, label, budget: limits, by } = command;
  const endMs = lastEndMs(draft, by) ?? Number.POSITIVE_INFINITY;
  const lifetimeMs = command.lifetimeMs ?? Math.min(userTokenLifetimeMs, endMs - nowMs);
  requireNoLonger(draft, by, nowMs + lifetimeMs, nowMs);
  const budget = limits === null ? null : tokenId(user, secretHash);
  const scope = { ...command.scope, budget };
  const token = issue(draft, user, { secretHash, label, scope, lifetimeMs }, nowMs);
  if (limits !== null) draft.people.putBudget({ id: token.id, limits, gpuSeconds: 0, jobsTotal: 0 });
  const data = { id: token.id, user: user.name, label: command.label, by: 'create' };
  draft.emit({ kind: 'token.issued', subject: clusterSubject, data }, nowMs);
  return token;
}

/** Of the tokens that users log in with. */
export const loginLabel = 'login';

/**
 * When whatever is issued with a token has ended at the latest. Without it, a token that was issued for a day could be made to last for
 * good. Whoever has logged in, with all that their user may do, can log in again.
 * @returns null: it does not matter
 */
function lastEndMs(draft: Draft, id: string): number | null {
  const held = draft.credential(id);
  if (held?.kind !== 'user') return null;
  const { verbs, projects, budget } = held.scope;
  const isLogin = held.label === loginLabel && verbs === null && projects === null && budget === null;
  return isLogin ? null : held.expiresAtMs;
}

/**
 * @param id of the credential of a call @param expiresAtMs when what it issues would end
 * @throws {MusterError} `permission_denied` where that is after its own end
 */
export function requireNoLonger(draft: Draft, id: string, expiresAtMs: number, nowMs: number): void {
  const endMs = lastEndMs(draft, id);
  if (endMs === null || expiresAtMs <= endMs) return;
  throw new MusterError(
    'permission_denied',
    `the token of this call ends in ${formatDuration(endMs - nowMs)}, and issues none that is valid for longer: ask for less, or for it ` +
      'after muster login',
  );
}

/** For how long the token that replaces this one is valid. */
export function rotatedLifetimeMs({
  createdAtMs,
  expiresAtMs,
}: Pick<Credential, 'createdAtMs' | 'expiresAtMs'>): number {
  return expiresAtMs === null ? userTokenLifetimeMs : expiresAtMs - createdAtMs;
}

export interface RotateCommand {
  readonly id: string;
  readonly secretHash: string;
  /** So long the earlier one stays valid; 0: it ends at once. */
  readonly keepMs: number;
  /** Id of the credential of the call. */
  readonly by: string;
}

/**
 * Another token with the limits, the budget and the lifetime of this one, which ends. A token that rotates itself gets no more time:
 * whoever has copied it could make it last for good.
 * @throws {MusterError} `not_found`
 */
export function rotateUserToken(
  draft: Draft,
  { id, secretHash, keepMs, by }: RotateCommand,
  nowMs: number,
): IssuedCredential {
  const before = draft.credential(id);
  if (before?.kind !== 'user') throw new MusterError('not_found', `there is no token ${id} of a user`);
  const user = knownUser(draft, before.subject);
  const lifetimeMs = rotatedLifetimeMs(before);
  const keepsEnd = id === by && lastEndMs(draft, id) !== null;
  const endMs = Math.min(before.expiresAtMs ?? Number.POSITIVE_INFINITY, nowMs + keepMs);
  if (endMs <= nowMs) draft.removeCredential(before);
  else draft.putCredential({ ...before, expiresAtMs: endMs });
  const { label, scope } = before;
  const createdAtMs = keepsEnd ? before.createdAtMs : nowMs;
  const token = issue(draft, user, { secretHash, label, scope, lifetimeMs }, createdAtMs);
  const data = { id: token.id, user: user.name, label, by: 'rotate', replaced: id };
  draft.emit({ kind: 'token.issued', subject: clusterSubject, data }, nowMs);
  return token;
}

/** @throws {MusterError} `invalid` */
export function setProject(draft: Draft, project: Project, nowMs: number): void {
  const { name, isPrivate } = project;
  checkedProjects([name]);
  draft.people.putProject({ name, isPrivate });
  draft.emit({ kind: 'project.changed', subject: clusterSubject, data: { project: name, isPrivate } }, nowMs);
}

/** Whether a credential is a token or a login code of a user. */
export function isOfUser({ kind }: Pick<Credential, 'kind'>): boolean {
  return kind === 'user' || kind === 'login';
}

type IssuedCredential = Credential & { readonly expiresAtMs: number };

function issue(
  draft: Draft,
  { name }: User,
  facts: Pick<Credential, 'secretHash' | 'label' | 'scope'> & { readonly lifetimeMs?: number },
  createdAtMs: number,
): IssuedCredential {
  const { secretHash, label, scope, lifetimeMs = userTokenLifetimeMs } = facts;
  const expiresAtMs = createdAtMs + lifetimeMs;
  const id = tokenId({ name }, secretHash);
  const plain = newCredential({
    id,
    kind: 'user',
    subject: name,
    secretHash,
    createdAtMs,
    expiresAtMs,
  });
  const token = { ...plain, label, scope, expiresAtMs };
  draft.putCredential(token);
  return token;
}

function tokenId({ name }: Pick<User, 'name'>, secretHash: string): string {
  return `user:${name}:${shortHash(secretHash)}`;
}

function knownUser(draft: Draft, name: string): User {
  const user = draft.people.user(name);
  if (user !== undefined) return user;
  throw new MusterError('not_found', `there is no user ${name}; \`muster user list\` lists them`);
}

function knownRole(text: string): Role {
  const role = roles.find((each) => each === text);
  if (role !== undefined) return role;
  throw new MusterError('invalid', `invalid role "${text}"; roles are ${roles.join(', ')}`);
}

function checkedProjects(names: readonly string[]): readonly string[] {
  const wrong = names.find((name) => !labelPattern.test(name));
  if (wrong !== undefined) throw new MusterError('invalid', `"${wrong}": a project name has ${labelForm}`);
  return [...new Set(names)];
}

function factsOf({ name, role, projects }: User): { user: string; role: Role; projects: readonly string[] } {
  return { user: name, role, projects };
}
