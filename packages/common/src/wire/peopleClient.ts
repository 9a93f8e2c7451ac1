/** The part of the typed client that is about users, their tokens, and projects. */
import { MusterError } from '../errors.ts';
import type { CallerView, Project, TokenBudget, User, Verb } from '../people.ts';
import { callerFromWire, projectFromWire, tokenBudgetToWire, userFromWire } from './codec.ts';
import type { ResponseOf, UnaryCall } from './unaryCalls.ts';

export interface UserTokenRequest {
  /** Default: the caller. */
  readonly user?: string;
  readonly label: string;
  /** Empty: every project of the user. */
  readonly projects: readonly string[];
  /** Empty: whatever the user may do. */
  readonly verbs: readonly Verb[];
  /** Default: 90 days. */
  readonly lifetimeMs?: number;
  /** Default: none. */
  readonly budget?: TokenBudget | null;
}

export interface IssuedToken {
  readonly id: string;
  readonly token: string;
  /** Wall clock. */
  readonly expiresAtMs: number;
}

interface LoggedIn {
  readonly user: User;
  readonly clusterId: string;
  /** When the token expires, wall clock. */
  readonly expiresAtMs: number;
}

/** By OpenID Connect. */
export interface LoginMethod {
  readonly issuer: string;
  readonly clientId: string;
  readonly scope: string;
}

export interface PeopleApi {
  /** @param user without `projects`, they are a member of `default` */
  addUser(user: Pick<User, 'name' | 'role' | 'projects'>): Promise<User>;
  /** @param change what is absent, and an empty list of projects, changes nothing */
  changeUser(name: string, change: Partial<Pick<User, 'role' | 'projects'>>): Promise<User>;
  removeUser(name: string): Promise<void>;
  /** By name. */
  listUsers(): Promise<readonly User[]>;
  createLoginCode(user: string): Promise<{ code: string; expiresAtMs: number }>;
  /** With a login code as the token of this client. @param token from 32 random bytes */
  login(token: string): Promise<LoggedIn>;
  /** How users log in there; no token is needed. @returns null: by codes only */
  getLoginMethod(): Promise<LoginMethod | null>;
  /** With an ID token of the issuer; no token is needed. @param token from 32 random bytes */
  loginWithIdToken(idToken: string, token: string): Promise<LoggedIn>;
  /** Who this client is to the coordinator. */
  getCaller(): Promise<CallerView>;
  createUserToken(request: UserTokenRequest): Promise<IssuedToken>;
  /** @param id default: the token of this client @param keepMs how long the earlier one stays valid; default: not at all */
  rotateUserToken(id?: string, keepMs?: number): Promise<IssuedToken>;
  setProject(project: Project): Promise<Project>;
  listProjects(): Promise<readonly Project[]>;
}

export function peopleClient(call: UnaryCall): PeopleApi {
  return {
    addUser: async (user) => userFromWire(await call('AddUser', { ...user, projects: [...user.projects] })),
    changeUser: async (name, { role, projects = [] }) =>
      userFromWire(
        await call('ChangeUser', { name, projects: [...projects], ...(role === undefined ? {} : { role }) }),
      ),
    removeUser: async (name) => {
      await call('RemoveUser', { name });
    },
    listUsers: async () => (await call('ListUsers', {})).users.map(userFromWire),
    createLoginCode: (user) => call('CreateLoginCode', { user }),
    login: async (token) => loggedIn(await call('Login', { token })),
    getLoginMethod: async () => {
      const { issuer, clientId, scope } = await call('GetLoginMethod', {});
      return issuer === undefined ? null : { issuer, clientId, scope };
    },
    loginWithIdToken: async (idToken, token) => loggedIn(await call('LoginWithIdToken', { idToken, token })),
    getCaller: async () => callerFromWire(await call('GetCaller', {})),
    createUserToken: ({ user, label, projects, verbs, lifetimeMs, budget = null }) =>
      call('CreateUserToken', {
        label,
        projects: [...projects],
        verbs: [...verbs],
        ...(user === undefined ? {} : { user }),
        ...(lifetimeMs === undefined ? {} : { lifetimeMs }),
        ...(budget === null ? {} : { budget: tokenBudgetToWire(budget) }),
      }),
    rotateUserToken: (id, keepMs = 0) =>
      call('RotateUserToken', { keepMs, ...(id === undefined ? {} : { id }) }),
    setProject: async (project) => projectFromWire(await call('SetProject', project)),
    listProjects: async () => (await call('ListProjects', {})).projects.map(projectFromWire),
  };
}

function loggedIn({ user, clusterId, expiresAtMs }: ResponseOf<'Login'>): LoggedIn {
  if (user === null) throw new MusterError('internal', 'the coordinator has not answered who has logged in');
  return { user: userFromWire(user), clusterId, expiresAtMs };
}
