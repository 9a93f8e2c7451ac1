/** The matrix of calls × certificates, and of the pages of the HTTP side × everybody who may ask for one. */
import { request } from 'node:http';
import { type Client, Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { agentHubService } from '@muster/common/wire/service';
import type { ClientIdentity } from '@muster/common/wire/trust';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { joinByCertificate, newKey, ownTls } from '../../../../test/support/nodeKeys.ts';
import { testAuthority } from '../../../../test/support/tlsServer.ts';
import { startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import { helloMessage, openSession } from '../rpc/agentFixture.ts';
import { isForAnyone, listedPaths } from './policy.ts';

/** Certificates by what has become of their node. */
const kinds = {
  'a node': 'agent',
  'another node': 'agent',
  'a node that was removed': 'nobody',
  'a node whose certificate has expired': 'nobody',
  'a node of another cluster': 'nobody',
  'no certificate': 'nobody',
} as const;
type Kind = keyof typeof kinds;

let coordinator: TestCoordinator;
let clients: Readonly<Record<Kind, Client>>;
const tokens: string[] = [];

beforeAll(async () => {
  coordinator = await startTestCoordinator({ tls: ownTls });
  const { api, state, clock } = coordinator;
  const joined = (name: string) => joinByCertificate(coordinator, name, newKey());
  const [own, other, removed, expired] = [
    await joined('node-1'),
    await joined('node-2'),
    await joined('node-3'),
    await joined('node-4'),
  ];
  await api.revokeCredential('node-3');
  const credential = [...state.credentials.values()].find(
    ({ subject, kind }) => kind === 'agent' && subject === 'node-4',
  );
  if (credential === undefined) expect.fail('node-4 has not joined');
  state.setCredential(credential.id, { ...credential, expiresAtMs: clock.wallMs() });
  const key = newKey();
  const foreign: ClientIdentity = {
    privateKey: key,
    certificate: await (await testAuthority()).certify(key, 'node-1'),
  };
  clients = {
    'a node': coordinator.client(own),
    'another node': coordinator.client(other),
    'a node that was removed': coordinator.client(removed),
    'a node whose certificate has expired': coordinator.client(expired),
    'a node of another cluster': coordinator.client(foreign),
    'no certificate': coordinator.client(),
  };
  const session = openSession(clients['a node'], null);
  session.send(helloMessage());
  await vi.waitFor(() => expect(session.received[0]?.welcome).toBeTruthy());
  for (const role of ['disabled', 'viewer', 'user', 'operator', 'admin'] as const) {
    await api.addUser({ name: `a-${role}`, role, projects: [] });
    tokens.push(
      (await api.createUserToken({ user: `a-${role}`, label: 'x', projects: [], verbs: [] })).token,
    );
    tokens.push((await api.createLoginCode(`a-${role}`)).code);
  }
  tokens.push(coordinator.adminToken, (await api.createJoinToken('node-9')).token, 'muster_admin_guess', '');
});
afterAll(() => coordinator.close());

/** How a call of any shape ends, with an empty message. */
function statusOf(client: Client, path: string): Promise<status> {
  const bytes = (each: Buffer) => each;
  return new Promise((resolve) => {
    const call = client.makeBidiStreamRequest(path, bytes, bytes, new Metadata());
    call.on('data', () => {
      resolve(status.OK);
      call.cancel();
    });
    call.on('error', (error: ServiceError) => resolve(error.code));
    call.on('status', ({ code }) => resolve(code));
    call.write(Buffer.alloc(0));
    call.end();
  });
}

const guarded = listedPaths().filter((path) => !isForAnyone(path));

test('the calls of agents are among those that are tried', () => {
  for (const { path } of Object.values(agentHubService)) expect(guarded).toContain(path);
});

test.each(guarded)('%s lets in the certificates of nodes as the service says, and no other', async (path) => {
  const isOfAgents = path.startsWith('/muster.v1.AgentHub/') && !path.endsWith('/Join');
  const isOfEverybody = path.startsWith('/grpc.');
  for (const [kind, who] of Object.entries(kinds) as [Kind, (typeof kinds)[Kind]][]) {
    const code = await statusOf(clients[kind], path);
    const expected = who === 'nobody' ? status.UNAUTHENTICATED : status.PERMISSION_DENIED;
    if (who === 'agent' && (isOfAgents || isOfEverybody))
      expect([kind, [status.UNAUTHENTICATED, status.PERMISSION_DENIED].includes(code)]).toEqual([
        kind,
        false,
      ]);
    else expect([kind, code]).toEqual([kind, expected]);
  }
});

const pages = {
  '/metrics': 200,
  '/sd': 200,
  '/healthz': 200,
  '/nodes/node-1/metrics': 503,
  '/nodes/none/metrics': 404,
  '/': 404,
  '/admin.token': 404,
  '/muster.v1.Muster/GetCluster': 404,
} as const;

interface Page {
  readonly code: number | undefined;
  readonly body: string;
}

function ask(
  path: string,
  { method = 'GET', headers = {} }: { method?: string; headers?: Record<string, string> },
) {
  return new Promise<Page>((resolve, reject) => {
    const call = request(`${coordinator.httpUrl}${path}`, { method, headers, agent: false }, (answer) => {
      let body = '';
      answer.setEncoding('utf8').on('data', (text: string) => (body += text));
      answer.on('end', () => resolve({ code: answer.statusCode, body }));
    });
    call.once('error', reject).end();
  });
}

describe.each(Object.entries(pages))('the page %s', (path, code) => {
  test('answers everybody on this machine the same, whatever they show, and tells no secret', async () => {
    const shown = tokens.map((token) => ({ authorization: `Bearer ${token}` }));
    const others = [
      { authorization: 'Basic YWRtaW46YWRtaW4=' },
      { cookie: 'token=1' },
      { 'muster-identity': '{"kind":"admin"}' },
    ];
    for (const headers of [{}, ...shown, ...others]) {
      const page = await ask(path, { headers });
      expect([headers, page.code]).toEqual([headers, code]);
      for (const token of tokens.filter((each) => each !== '')) expect(page.body).not.toContain(token);
    }
  });

  test('is read only, and refused under a name that is not of this machine, also with the admin token', async () => {
    const authorization = `Bearer ${coordinator.adminToken}`;
    for (const headers of [{}, { authorization }]) {
      for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'])
        expect((await ask(path, { method, headers })).code).toBe(405);
      for (const host of ['evil.example', '192.0.2.1:7071', 'localhost.evil.example'])
        expect((await ask(path, { headers: { ...headers, host } })).code).toBe(403);
    }
  });
});
