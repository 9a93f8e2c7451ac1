/** The API's calls about users, their tokens, and projects. */
import { MusterError } from '@muster/common/errors';
import type { CreateUserTokenRequest__Output } from '@muster/common/gen/muster/v1/CreateUserTokenRequest';
import type { RandomBytes } from '@muster/common/ids';
import {
  budgetVerbs,
  type TokenBudget,
  type TokenScope,
  unlimitedScope,
  type Verb,
  verbs,
} from '@muster/common/people';
import { callerToWire, tokenBudgetFromWire, userToWire } from '@muster/common/wire/codec';
import { isWithin, maySeeAllTokens } from '../auth/access.ts';
import type { IdTokens } from '../auth/idTokens.ts';
import { bindToAuthority, hashToken, newToken } from '../auth/tokens.ts';
import { budgetOf, type Identity, userOf } from '../caller.ts';
import { budgetUseIn } from '../commands/budgets.ts';
import { credentialNamed } from '../commands/credentials.ts';
import {
  addUser,
  changeUser,
  createLoginCode,
  createUserToken,
  login,
  loginLabel,
  loginWithIdToken,
  removeUser,
  requireNoLonger,
  rotatedLifetimeMs,
  rotateUserToken,
  setProject,
  userTokenLifetimeMaxMs,
} from '../commands/people.ts';
import type { Loop } from '../loop.ts';
import type { TimeLimits } from '../reconcilers/timeLimits.ts';
import { isPrivate } from '../state/people.ts';
import type { ClusterState } from '../state/state.ts';
import type { Credential } from '../store/store.ts';
import { type MusterCalls, unary } from './calls.ts';

export interface PeopleCallParts {
  readonly state: ClusterState;
  readonly loop: Loop;
  readonly random: RandomBytes;
  /** SHA-256 of the certificate that clients are to trust, which login codes contain; null: no TLS. */
  readonly authorityDigest: Uint8Array | null;
  readonly timeLimits: Pick<TimeLimits, 'runningMs'>;
  /** null: users log in by codes only. */
  readonly idTokens: IdTokens | null;
}

type PeopleCalls = Pick<
  MusterCalls,
  | 'AddUser'
  | 'ChangeUser'
  | 'RemoveUser'
  | 'ListUsers'
  | 'CreateLoginCode'
  | 'Login'
  | 'GetLoginMethod'
  | 'LoginWithIdToken'
  | 'CreateUserToken'
  | 'RotateUserToken'
  | 'GetCaller'
  | 'SetProject'
  | 'ListProjects'
>;

export function peopleCalls({
  state,
  loop,
  random,
  authorityDigest,
  idTokens,
  timeLimits,
}: PeopleCallParts): PeopleCalls {
  return {
    AddUser: unary(async (request, caller) =>
      userToWire(await loop.run(caller, (draft, nowMs) => addUser(draft, request, nowMs))),
    ),

    ChangeUser: unary(async ({ name, role, projects }, caller) => {
      const change = { role: role ?? null, projects };
      return userToWire(await loop.run(caller, (draft, nowMs) => changeUser(draft, name, change, nowMs)));
    }),

    RemoveUser: unary(async ({ name }, caller) => {
      await loop.run(caller, (draft, nowMs) => removeUser(draft, name, nowMs));
      return {};
    }),

    ListUsers: unary(async () => ({ users: byName(state.people.users.values()).map(userToWire) })),

    CreateLoginCode: unary(async ({ user }, caller) => {
      const code = bindToAuthority(newToken('login', random), authorityDigest);
      const hash = hashToken(code);
      const expiresAtMs = await loop.run(caller, (draft, nowMs) => createLoginCode(draft, user, hash, nowMs));
      return { code, expiresAtMs };
    }),

    Login: unary(async ({ token }, caller) => {
      requireRandom(token);
      const command = { codeId: caller.id, tokenHash: hashToken(token), label: loginLabel };
      const { user, expiresAtMs } = await loop.run(caller, (draft, nowMs) => login(draft, command, nowMs));
      return { user: userToWire(user), clusterId: state.clusterId, expiresAtMs };
    }),

    GetLoginMethod: unary(async () => {
      if (idTokens === null) return {};
      const { issuer, clientId, scope } = idTokens.settings;
      return { issuer, clientId, scope };
    }),

    LoginWithIdToken: unary(async ({ idToken, token }, caller) => {
      if (idTokens === null)
        throw new MusterError(
          'failed_precondition',
          'this coordinator accepts no ID tokens; log in with a code, which an admin creates with: muster user code NAME',
        );
      requireRandom(token);
      const person = await idTokens.verify(idToken);
      const { createRole } = idTokens.settings;
      // Of what is signed, because a signature has several spellings.
      const signedPart = idToken.slice(0, idToken.lastIndexOf('.'));
      const hashes = { idTokenHash: hashToken(signedPart), tokenHash: hashToken(token) };
      const command = { person, createRole, ...hashes };
      const by = { ...caller, id: `id_token:${person.name}` };
      const { user, expiresAtMs } = await loop.run(by, (draft, nowMs) =>
        loginWithIdToken(draft, command, nowMs),
      );
      return { user: userToWire(user), clusterId: state.clusterId, expiresAtMs };
    }),

    CreateUserToken: unary(async (request, caller) => {
      const scope = scopeOf(caller, request);
      const { label } = request;
      if (!/^[\x20-\x7e]{1,64}$/.test(label) || label === loginLabel)
        throw new MusterError(
          'invalid',
          `the label of a token has 1 to 64 printable characters, and is not "${loginLabel}", which marks a login`,
        );
      const token = newToken('user', random);
      const command = {
        user: userOfToken(caller, request.user),
        secretHash: hashToken(token),
        label,
        scope,
        budget: budgetAsked(request.budget, scope),
        lifetimeMs: request.lifetimeMs === undefined ? null : checkedLifetime(request.lifetimeMs),
        by: caller.id,
      };
      const issued = await loop.run(caller, (draft, nowMs) => createUserToken(draft, command, nowMs));
      return { id: issued.id, token, expiresAtMs: issued.expiresAtMs };
    }),

    RotateUserToken: unary(async ({ id: named, keepMs = 0 }, caller) => {
      if (!Number.isSafeInteger(keepMs) || keepMs < 0 || keepMs > tokenKeptMaxMs)
        throw new MusterError('invalid', `keep_ms: ${keepMs} ms; expected 0 to 30 days`);
      const token = newToken('user', random);
      const issued = await loop.run(caller, (draft, nowMs) => {
        const meant = named === undefined ? null : credentialNamed(draft, caller, named);
        if (meant !== null && meant.id !== caller.id) {
          requireWithin(draft.credential(caller.id)?.scope ?? unlimitedScope, meant);
          requireNoLonger(draft, caller.id, nowMs + rotatedLifetimeMs(meant), nowMs);
        }
        const by = caller.id;
        const command = { id: meant?.id ?? by, secretHash: hashToken(token), keepMs, by };
        return rotateUserToken(draft, command, nowMs);
      });
      return { id: issued.id, token, expiresAtMs: issued.expiresAtMs };
    }),

    GetCaller: unary(async (_request, caller) => {
      const budget = state.people.budgets.get(budgetOf(caller) ?? '') ?? null;
      const isUser = caller.kind === 'user';
      return callerToWire({
        id: caller.id,
        kind: caller.kind,
        user: userOf(caller),
        role: isUser ? caller.role : 'admin',
        verbs: isUser ? caller.verbs : verbs,
        budget: budget?.limits ?? null,
        used: budget === null ? null : budgetUseIn(state, budget, timeLimits.runningMs),
      });
    }),

    SetProject: unary(async (project, caller) => {
      await loop.run(caller, (draft, nowMs) => setProject(draft, project, nowMs));
      return project;
    }),

    ListProjects: unary(async () => {
      const ofUsers = [...state.people.users.values()].flatMap(({ projects }) => projects);
      const names = new Set([...state.people.projects.keys(), ...ofUsers]);
      return {
        projects: [...names].sort().map((name) => ({ name, isPrivate: isPrivate(state.people, name) })),
      };
    }),
  };
}

function byName<T extends { readonly name: string }>(each: Iterable<T>): readonly T[] {
  return [...each].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** @throws {MusterError} `permission_denied`, or `invalid` */
function userOfToken(caller: Identity, named: string | undefined): string {
  const own = caller.kind === 'user' ? caller.user : null;
  const user = named ?? own;
  if (user === null)
    throw new MusterError('invalid', 'user: the built-in admin token makes tokens of users: name one');
  if (user !== own && !maySeeAllTokens(caller))
    throw new MusterError('permission_denied', `only an admin makes tokens of ${user}`);
  return user;
}

/**
 * What a new token is limited to: as asked for, and at least as far as the token of the caller.
 * @throws {MusterError} `permission_denied`, or `invalid`
 */
function scopeOf(
  caller: Identity,
  request: Pick<CreateUserTokenRequest__Output, 'projects' | 'verbs' | 'budget'>,
): Omit<TokenScope, 'budget'> {
  const asked = request.verbs.map((text) => {
    const verb = verbs.find((each) => each === text);
    if (verb === undefined)
      throw new MusterError('invalid', `verbs: invalid verb "${text}"; verbs are ${verbs.join(', ')}`);
    return verb;
  });
  const verbsAsked = request.budget !== null && asked.length === 0 ? budgetVerbs : asked;
  const wanted = {
    projects: request.projects.length === 0 ? null : request.projects,
    verbs: verbsAsked.length === 0 ? null : verbsAsked,
  };
  if (caller.kind !== 'user') return wanted;
  const beyond = verbsAsked.find((verb: Verb) => !caller.verbs.includes(verb));
  const outside = wanted.projects?.find((project) => caller.onlyProjects?.includes(project) === false);
  if (beyond !== undefined || outside !== undefined)
    throw new MusterError(
      'permission_denied',
      `the token of this call does not allow ${beyond ?? outside} itself`,
    );
  return { projects: wanted.projects ?? caller.onlyProjects, verbs: wanted.verbs ?? caller.verbs };
}

/**
 * Whoever rotates a token holds the secret of the next one.
 * @param held what the token of the call is limited to
 * @throws {MusterError} `permission_denied` where the other one allows more
 */
function requireWithin(held: TokenScope, { id, scope }: Pick<Credential, 'id' | 'scope'>): void {
  if (isWithin(scope, held)) return;
  throw new MusterError(
    'permission_denied',
    `${id} allows more than the token of this call, which gets no other token of that kind: rotate it with itself, or after muster login`,
  );
}

/** @throws {MusterError} `invalid` for a budget that limits nothing, or that its holder could escape */
function budgetAsked(
  budget: CreateUserTokenRequest__Output['budget'],
  { verbs: allowed }: Pick<TokenScope, 'verbs'>,
): TokenBudget | null {
  if (budget === null) return null;
  const beyond = allowed?.find((verb) => !budgetVerbs.includes(verb));
  if (beyond !== undefined)
    throw new MusterError(
      'invalid',
      `verbs: a token with a budget allows ${budgetVerbs.join(', ')} at most, because ${beyond} would let its holder escape it`,
    );
  const limits = tokenBudgetFromWire(budget);
  const wrong = Object.values(limits).find((limit) => limit !== null && !(limit >= 0 && limit <= 1e9));
  if (wrong !== undefined) throw new MusterError('invalid', `budget: ${wrong}; expected 0 to 1,000,000,000`);
  if (Object.values(limits).every((limit) => limit === null))
    throw new MusterError('invalid', 'budget: it limits nothing; give one of its limits');
  return limits;
}

/** @throws {MusterError} `invalid` for a token that somebody could guess */
function requireRandom(token: string): void {
  if (!/^muster_user_[\w-]{43,128}$/.test(token))
    throw new MusterError('invalid', 'the token is too short; clients make 32 random bytes');
}

/** How long a token may stay valid beside the one that replaces it. */
const tokenKeptMaxMs = 30 * 24 * 60 * 60_000;

function checkedLifetime(ms: number): number {
  if (Number.isSafeInteger(ms) && ms > 0 && ms <= userTokenLifetimeMaxMs) return ms;
  throw new MusterError('invalid', `lifetime_ms: ${ms} ms; more than 0 and at most 366 days`);
}
