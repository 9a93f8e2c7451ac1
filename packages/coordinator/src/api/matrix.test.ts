/**
 * Every route with every kind of caller, beside its call over gRPC: both are let in as the same caller, or refused with the same code.
 * Handlers here only tell who has reached them.
 */
import { Client, credentials as grpcCredentials, type Metadata, type ServiceError } from '@grpc/grpc-js';
import { MusterError } from '@muster/common/errors';
import type { AgentHubHandlers } from '@muster/common/gen/muster/v1/AgentHub';
import { silentLogger } from '@muster/common/log';
import { roles, unlimitedScope } from '@muster/common/people';
import { musterService } from '@muster/common/wire/service';
import { fromServiceError } from '@muster/common/wire/status';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { hashToken } from '../auth/tokens.ts';
import type { Identity } from '../caller.ts';
import {
  addCredential,
  startTestCoordinator,
  type TestCoordinator,
  withToken,
} from '../coordinatorFixture.ts';
import { someMs } from '../modelFixture.ts';
import type { MusterCalls } from '../rpc/calls.ts';
import { Connections, connectionLimits } from '../rpc/connections.ts';
import { type RunningServer, startServer } from '../rpc/server.ts';
import { Memory } from '../store/memory/memoryStore.ts';
import { ask, problemIn } from './apiFixture.ts';
import { type CallName, routesOfCalls } from './routes.ts';
import { type RunningApi, startApi } from './server.ts';
import { usualSseTiming } from './sseStream.ts';

const tokenOf = (name: string) => `muster_user_${name}`;
const agent = 'muster_agent_of-node-1';
const join = 'muster_join_for-node-1';
const login = 'muster_login_for-viewer';
const shown: readonly (string | null)[] = [
  ...roles.map(tokenOf),
  tokenOf('reads'),
  tokenOf('expired'),
  tokenOf('guess'),
  agent,
  join,
  login,
  null,
];

let coordinator: TestCoordinator;
let server: RunningServer;
let api: RunningApi;
let client: Client;
let reached: { readonly name: string; readonly caller: Identity } | null = null;

/** Nothing but the verdict of the access control is of interest. */
function stub(name: string) {
  const record = (caller: Identity) => {
    reached = { name, caller };
    return Promise.reject(new MusterError('failed_precondition', 'reached'));
  };
  const call = musterService[name as CallName] as { readonly responseStream: boolean };
  return call.responseStream
    ? { produce: (_request: unknown, _abort: AbortSignal, caller: Identity) => record(caller) }
    : { handle: (_request: unknown, caller: Identity) => record(caller) };
}

beforeAll(async () => {
  const memory = new Memory('test');
  const add = (id: string, token: string, fields: object) =>
    addCredential(memory, { id, secretHash: hashToken(token), ...fields } as Parameters<
      typeof addCredential
    >[1]);
  for (const role of roles) {
    memory.users.set(role, { name: role, role, projects: ['default'], createdAtMs: someMs });
    add(`user:${role}:1`, tokenOf(role), { kind: 'user', subject: role });
  }
  const scope = { ...unlimitedScope, verbs: ['read'] };
  add('user:admin:2', tokenOf('reads'), { kind: 'user', subject: 'admin', scope });
  add('user:admin:3', tokenOf('expired'), { kind: 'user', subject: 'admin', expiresAtMs: someMs });
  add('agent:node-1', agent, { kind: 'agent', subject: 'node-1' });
  add('join:1', join, { kind: 'join', subject: 'node-1' });
  add('login:1', login, { kind: 'login', subject: 'viewer' });
  coordinator = await startTestCoordinator({ memory });
  const muster = Object.fromEntries(Object.keys(routesOfCalls).map((name) => [name, stub(name)]));
  const calls = muster as unknown as MusterCalls;
  const { gate } = coordinator;
  const connections = new Connections({
    limits: connectionLimits(1_024),
    monotonicMs: () => 0,
    log: silentLogger,
  });
  server = await startServer('127.0.0.1:0', gate, connections, {
    muster: calls,
    agentHub: {} as AgentHubHandlers,
  });
  api = await startApi('127.0.0.1:0', {
    gate,
    connections,
    calls,
    deliver: () => Promise.reject(new MusterError('unauthenticated', 'reached')),
    tls: null,
    hosts: [],
    random: (size) => new Uint8Array(size),
    log: silentLogger,
    timing: usualSseTiming,
    nowMs: () => 0,
    wallMs: () => 0,
  });
  client = new Client(server.address, grpcCredentials.createInsecure());
});
afterAll(async () => {
  client.close();
  await api.close();
  await server.close();
  await coordinator.close();
});

async function overGrpc(name: CallName, metadata: Metadata) {
  reached = null;
  const { path } = musterService[name];
  const identity = (bytes: Buffer) => bytes;
  const code = await new Promise<string>((resolve) => {
    const call = client.makeServerStreamRequest(path, identity, identity, Buffer.alloc(0), metadata);
    call.on('data', () => {});
    call.on('error', (error: ServiceError) => resolve(fromServiceError(error).code));
  });
  return { code: code === 'invalid' ? 'invalid_argument' : code, reached };
}

async function overHttp(route: string, token: string | null) {
  reached = null;
  const answer = await ask({ apiUrl: api.url, adminToken: '' }, route, { token });
  return { code: problemIn(answer).code, reached };
}

const rows = Object.entries(routesOfCalls).flatMap(([name, routes]) =>
  routes.map(
    ({ method, path }) => [name as CallName, `${method} ${path.replaceAll(/\{\w+\}/g, 'x')}`] as const,
  ),
);

test.each(rows)('%s at %s is answered as over gRPC, whatever is shown', async (name, route) => {
  for (const token of shown) {
    // What limits failures has tests of its own.
    coordinator.clock.nowMs += 60_000;
    const metadata = withToken(token ?? '');
    if (token === null) metadata.remove('authorization');
    const byGrpc = await overGrpc(name, metadata);
    expect([token, await overHttp(route, token)]).toEqual([token, byGrpc]);
  }
});
