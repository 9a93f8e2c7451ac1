import { type Client, Metadata, type ServiceError, status } from '@grpc/grpc-js';
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

const agentToken = 'muster_agent_of-node-1';
const joinToken = 'muster_join_for-node-1';
const oldJoinToken = 'muster_join_expired';

let coordinator: TestCoordinator;
let client: Client;

beforeAll(async () => {
  const memory = new Memory('test');
  const subject = 'node-1';
  addCredential(memory, { id: 'agent:node-1', kind: 'agent', subject, secretHash: hashToken(agentToken) });
  const expiresAtMs = someMs + 365 * 24 * 60 * 60_000;
  addCredential(memory, {
    id: 'join:1',
    kind: 'join',
    subject,
    secretHash: hashToken(joinToken),
    expiresAtMs,
  });
  const old = { id: 'join:2', kind: 'join', subject, secretHash: hashToken(oldJoinToken) } as const;
  addCredential(memory, { ...old, expiresAtMs: someMs });
  coordinator = await startTestCoordinator({ memory });
  client = coordinator.client();
  // A connection that has shown no valid token is closed in time, and here each call makes it a minute older.
  const [path = ''] = servedPaths;
  await statusOf(path, withToken(agentToken));
});
afterAll(() => coordinator.close());

const reflectionPaths = ['v1', 'v1alpha'].map(
  (version) => `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`,
);
const servedPaths = [
  ...[musterService, agentHubService, healthService].flatMap((service) =>
    Object.values(service).map((method) => method.path as string),
  ),
  ...reflectionPaths,
];

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

test('the policy lists exactly what is served', () => {
  expect(listedPaths().toSorted()).toEqual(servedPaths.toSorted());
});

test('what is not listed may be called by nobody', () => {
  for (const path of ['/muster.v1.Muster/Other', '/', '', 'constructor', '__proto__', 'toString'])
    expect(mayCall({ kind: 'admin' }, path)).toBe(false);
});

test.each(servedPaths)('%s is refused without a token that is known and valid', async (path) => {
  expect(await statusOf(path, new Metadata())).toBe(status.UNAUTHENTICATED);
  expect(await statusOf(path, withToken('muster_admin_guess'))).toBe(status.UNAUTHENTICATED);
  expect(await statusOf(path, withToken(''))).toBe(status.UNAUTHENTICATED);
  expect(await statusOf(path, withToken(oldJoinToken))).toBe(status.UNAUTHENTICATED);
  const basic = new Metadata();
  basic.set('authorization', `Basic ${coordinator.adminToken}`);
  expect(await statusOf(path, basic)).toBe(status.UNAUTHENTICATED);
});

test.each(servedPaths)('%s lets in the kinds of token that the policy names, and no other', async (path) => {
  // One of these calls rotates it.
  const admin = coordinator.storedAdminTokens.at(-1) ?? coordinator.adminToken;
  const tokens = { admin, agent: agentToken, join: joinToken } as const;
  for (const [kind, token] of Object.entries(tokens)) {
    const identity = { kind, node: 'node-1' } as Parameters<typeof mayCall>[0];
    const refused = (await statusOf(path, withToken(token))) === status.PERMISSION_DENIED;
    // Join answers an empty request with the same status from its handler.
    if (!(path.endsWith('/Join') && kind === 'join'))
      expect([kind, refused]).toEqual([kind, !mayCall(identity, path)]);
  }
});

test('a client cannot say who it is', async () => {
  const forged = JSON.stringify({ kind: 'admin' });
  const metadata = withToken(agentToken, { 'muster-identity': forged });
  expect(await statusOf('/muster.v1.Muster/GetCluster', metadata)).toBe(status.PERMISSION_DENIED);
  const noToken = new Metadata();
  noToken.set('Muster-Identity', forged);
  expect(await statusOf('/muster.v1.Muster/GetCluster', noToken)).toBe(status.UNAUTHENTICATED);
});

test('a join token of one node, with a forged identity of another, joins neither', async () => {
  const request = { nodeName: 'node-2', credential: `muster_agent_${'a'.repeat(43)}`, joinToken };
  const metadata = withToken(joinToken, {
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
