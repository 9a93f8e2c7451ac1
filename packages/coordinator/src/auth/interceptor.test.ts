/**
 * The matrix of who may call what: every method that is served, with every kind of token. What is expected is derived from a table
 * of its own below, so that a row of the policy that changes shows here.
 */
import { type Client, Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { type Role, roles, unlimitedScope } from '@muster/common/people';
import { musterVersion, versionKey } from '@muster/common/version';
import { agentHubService, musterService } from '@muster/common/wire/service';
import { service as healthService } from 'grpc-health-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  addCredential,
  startTestCoordinator,
  type TestCoordinator,
  withToken,
} from '../coordinatorFixture.ts';
import { someMs } from '../modelFixture.ts';
import { Memory } from '../store/memory/memoryStore.ts';
import { listedPaths, mayCall } from './policy.ts';
import { hashToken } from './tokens.ts';

/** Tokens that may call something, by what they are. */
const tokens = {
  agent: 'muster_agent_of-node-1',
  join: 'muster_join_for-node-1',
  login: 'muster_login_for-vera',
  disabled: 'muster_user_dora',
  viewer: 'muster_user_vera',
  user: 'muster_user_uma',
  operator: 'muster_user_olga',
  'admin by role': 'muster_user_ada',
  'admin, to read only': 'muster_user_ada-reads',
} as const;

const nobodys = {
  'an expired join token': 'muster_join_expired',
  'an expired token of a user': 'muster_user_expired',
  'an expired login code': 'muster_login_expired',
  'a revoked token of a user': 'muster_user_revoked',
  'a token of a user who was removed': 'muster_user_of-nobody',
  'a guess': 'muster_admin_guess',
  'no text': '',
} as const;

const byRole: Readonly<Record<Role, string>> = {
  disabled: 'dora',
  viewer: 'vera',
  user: 'uma',
  operator: 'olga',
  admin: 'ada',
};

let coordinator: TestCoordinator;
let client: Client;

beforeAll(async () => {
  const memory = new Memory('test');
  const node = { subject: 'node-1' } as const;
  const expiresAtMs = someMs + 365 * 24 * 60 * 60_000;
  const add = (
    id: string,
    token: string,
    fields: Omit<Parameters<typeof addCredential>[1], 'id' | 'secretHash'>,
  ) => addCredential(memory, { id, secretHash: hashToken(token), expiresAtMs, ...fields });
  for (const role of roles)
    memory.users.set(byRole[role], { name: byRole[role], role, projects: ['default'], createdAtMs: someMs });
  add('agent:node-1', tokens.agent, { kind: 'agent', ...node });
  add('join:1', tokens.join, { kind: 'join', ...node });
  add('login:1', tokens.login, { kind: 'login', subject: 'vera' });
  add('user:dora:1', tokens.disabled, { kind: 'user', subject: 'dora' });
  add('user:vera:1', tokens.viewer, { kind: 'user', subject: 'vera' });
  add('user:uma:1', tokens.user, { kind: 'user', subject: 'uma' });
  add('user:olga:1', tokens.operator, { kind: 'user', subject: 'olga' });
  add('user:ada:1', tokens['admin by role'], { kind: 'user', subject: 'ada' });
  const scope = { ...unlimitedScope, verbs: ['read'] } as const;
  add('user:ada:2', tokens['admin, to read only'], { kind: 'user', subject: 'ada', scope });
  const over = { expiresAtMs: someMs };
  add('join:2', nobodys['an expired join token'], { kind: 'join', ...node, ...over });
  add('user:ada:3', nobodys['an expired token of a user'], { kind: 'user', subject: 'ada', ...over });
  add('login:3', nobodys['an expired login code'], { kind: 'login', subject: 'ada', ...over });
  add('user:ada:4', nobodys['a revoked token of a user'], { kind: 'user', subject: 'ada' });
  add('user:nobody:1', nobodys['a token of a user who was removed'], { kind: 'user', subject: 'nobody' });
  coordinator = await startTestCoordinator({ memory });
  await coordinator.api.revokeCredential('user:ada:4');
  client = coordinator.client();
  // A connection that has shown no valid token is closed in time, and here each call makes it a minute older.
  const [path = ''] = servedPaths;
  await statusOf(path, withToken(tokens.agent));
});
afterAll(() => coordinator.close());

const reflectionPaths = ['v1', 'v1alpha'].map(
  (version) => `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`,
);
const commonPaths = [...Object.values(healthService).map(({ path }) => path), ...reflectionPaths];
const servedPaths = [
  ...[musterService, agentHubService].flatMap((service) => Object.values(service).map(({ path }) => path)),
  ...commonPaths,
];

/** The calls of the public API by the least that may make them. */
const callsOf = {
  viewer:
    'GetJob ResolveJob ListJobs ExplainJob ReadLogs WatchEvents GetTrainingStatus QueryMetrics WatchMetrics SummarizeTraining ListTelemetry ' +
    'ListNodes GetNode GetCluster GetUpkeep GetClock GetCaller ListProjects ListAlerts ListSweeps GetSweep ListTrials Advise ' +
    'ListPipelines GetPipeline GetLineage ListTriggers GetTrigger',
  'viewer, of their own tokens': 'ListCredentials RevokeCredential CreateUserToken RotateUserToken',
  user:
    'Submit SetSecret ListSecrets RemoveSecret StopJobs RequeueJob ExtendJob RemoveLogs ' +
    'CreateAlert DeleteAlert SilenceAlert AcknowledgeAlert CreateSweep StopSweep ExtendSweep RunPipeline StopPipeline RerunPipeline ' +
    'CreateTrigger DeleteTrigger PauseTrigger ResumeTrigger RunTrigger',
  operator: 'ClearCondition ConfirmDead DrainNode UndrainNode EndOrphans SetMaintenance',
  admin:
    'AddUser ChangeUser RemoveUser ListUsers CreateLoginCode SetProject CreateJoinToken RejoinNode RemoveNode RotateAdminToken RotateSecretKey ' +
    'AdvanceStore BackupStore AcceptClock',
} as const;

const pathsOf = (...kinds: readonly (keyof typeof callsOf)[]) =>
  kinds.flatMap((kind) => callsOf[kind].split(' ').map((name) => `/muster.v1.Muster/${name}`));

const viewers = [...commonPaths, ...pathsOf('viewer', 'viewer, of their own tokens')];
const users = [...viewers, ...pathsOf('user')];
const operators = [...users, ...pathsOf('operator')];
const admins = [...operators, ...pathsOf('admin')];
const joins = ['/muster.v1.AgentHub/Join'];
/** Whatever they show, and also nothing. */
const anyones = ['GetLoginMethod', 'LoginWithIdToken'].map((name) => `/muster.v1.Muster/${name}`);

const allowedPaths: Readonly<Record<keyof typeof tokens | 'admin', readonly string[]>> = {
  admin: admins,
  'admin by role': admins,
  'admin, to read only': [...commonPaths, ...pathsOf('viewer')],
  operator: operators,
  user: users,
  viewer: viewers,
  disabled: [],
  agent: [
    ...commonPaths,
    ...Object.values(agentHubService).flatMap(({ path }) => (joins.includes(path) ? [] : [path])),
  ],
  join: joins,
  login: ['/muster.v1.Muster/Login'],
};

/** How a call of any shape ends, with nothing sent but a message. */
function statusOf(path: string, metadata: Metadata, message: Buffer = Buffer.alloc(0)): Promise<status> {
  // Each call is a long time after the one before: what limits failures has tests of its own.
  coordinator.clock.nowMs += 60_000;
  const identity = (bytes: Buffer) => bytes;
  return new Promise((resolve) => {
    const call = client.makeBidiStreamRequest(path, identity, identity, metadata, {
      deadline: Date.now() + 5_000,
    });
    call.on('data', () => {
      resolve(status.OK);
      call.cancel();
    });
    call.on('error', (error: ServiceError) => resolve(error.code));
    call.on('status', ({ code }) => resolve(code));
    call.write(message);
    call.end();
  });
}

/** What is sent: nothing, but to a call that would replace the token with which it is made. */
function messageFor(path: string): Buffer {
  const { RotateUserToken } = musterService;
  return path === RotateUserToken.path ? RotateUserToken.requestSerialize({ id: 'none' }) : Buffer.alloc(0);
}

test('the policy lists exactly what is served', () => {
  expect(listedPaths().toSorted()).toEqual(servedPaths.toSorted());
});

test('every call of the API is in the table of this test', () => {
  const listed = new Set([...Object.values(allowedPaths).flat(), ...anyones]);
  expect([...listed].toSorted()).toEqual([...new Set(servedPaths)].toSorted());
});

test('a client that is two minor versions ahead is refused, one that names no version is not', async () => {
  const { path } = musterService.GetCluster;
  const [major, minor] = musterVersion.split('.').map(Number);
  const answerTo = (version: string | null) => {
    const metadata = withToken(tokens.viewer);
    if (version !== null) metadata.set(versionKey, version);
    return statusOf(path, metadata);
  };
  expect(await answerTo(null)).toBe(status.OK);
  expect(await answerTo(`${major}.${Number(minor) + 1}.0`)).toBe(status.OK);
  expect(await answerTo(`${major}.${Number(minor) + 2}.0`)).toBe(status.FAILED_PRECONDITION);
});

test('what is not listed may be called by nobody', () => {
  const admin = { kind: 'admin', id: 'admin', peer: null } as const;
  for (const path of ['/muster.v1.Muster/Other', '/', '', 'constructor', '__proto__', 'toString'])
    expect(mayCall(admin, path)).toBe(false);
});

test.each(anyones)('%s is answered whatever is shown', async (path) => {
  const shown = [...Object.values(tokens), ...Object.values(nobodys)].map((token) => withToken(token));
  for (const metadata of [new Metadata(), ...shown]) {
    const code = await statusOf(path, metadata);
    expect([status.UNAUTHENTICATED, status.PERMISSION_DENIED]).not.toContain(code);
  }
});

const guardedPaths = servedPaths.filter((path) => !anyones.includes(path));

test.each(guardedPaths)('%s is refused without a token that is known and valid', async (path) => {
  expect(await statusOf(path, new Metadata())).toBe(status.UNAUTHENTICATED);
  for (const [what, token] of Object.entries(nobodys))
    expect([what, await statusOf(path, withToken(token))]).toEqual([what, status.UNAUTHENTICATED]);
  const basic = new Metadata();
  basic.set('authorization', `Basic ${coordinator.adminToken}`);
  expect(await statusOf(path, basic)).toBe(status.UNAUTHENTICATED);
});

test.each(guardedPaths)('%s lets in those whom the table names, and nobody else', async (path) => {
  for (const kind of Object.keys(allowedPaths) as (keyof typeof allowedPaths)[]) {
    // One of these calls rotates it.
    const admin = coordinator.storedAdminTokens.at(-1) ?? coordinator.adminToken;
    const code = await statusOf(path, withToken(kind === 'admin' ? admin : tokens[kind]), messageFor(path));
    const isAllowed = allowedPaths[kind].includes(path);
    // Some handlers answer an empty request with the status of a refusal.
    if (isAllowed && path.endsWith('/Join')) continue;
    expect([kind, code === status.UNAUTHENTICATED]).toEqual([kind, false]);
    expect([kind, code === status.PERMISSION_DENIED]).toEqual([kind, !isAllowed]);
  }
});

test('a client cannot say who it is', async () => {
  const forged = JSON.stringify({ kind: 'admin' });
  const metadata = withToken(tokens.agent, { 'muster-identity': forged });
  expect(await statusOf('/muster.v1.Muster/GetCluster', metadata)).toBe(status.PERMISSION_DENIED);
  const noToken = new Metadata();
  noToken.set('Muster-Identity', forged);
  expect(await statusOf('/muster.v1.Muster/GetCluster', noToken)).toBe(status.UNAUTHENTICATED);
});

test('a join token of one node, with a forged identity of another, joins neither', async () => {
  const request = {
    nodeName: 'node-2',
    credential: `muster_agent_${'a'.repeat(43)}`,
    joinToken: tokens.join,
  };
  const metadata = withToken(tokens.join, {
    'muster-identity': JSON.stringify({ kind: 'join', node: 'node-2' }),
  });
  const message = agentHubService.Join.requestSerialize(request);
  expect(await statusOf('/muster.v1.AgentHub/Join', metadata, message)).toBe(status.PERMISSION_DENIED);
});

test('a method that does not exist is not found, whoever asks', async () => {
  expect(await statusOf('/muster.v1.Muster/Other', withToken(coordinator.adminToken))).toBe(
    status.UNIMPLEMENTED,
  );
});
