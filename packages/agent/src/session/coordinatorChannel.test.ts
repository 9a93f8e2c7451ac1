/** Which coordinators an agent trusts, and that it sends nothing to any other. */
import { createHash, X509Certificate } from 'node:crypto';
import { Server, ServerCredentials, type sendUnaryData } from '@grpc/grpc-js';
import { agentHubService } from '@muster/common/wire/service';
import { expect, onTestFinished, test } from 'vitest';
import {
  startGrpcServer,
  startListener,
  type TestAuthority,
  testAuthority,
} from '../../../../test/support/tlsServer.ts';
import { caOfCoordinator, connectHub, HubLane, requestJoin, whyUnconnected } from './coordinatorChannel.ts';
import { makeCredential, type NodeProof, type StoredCredential } from './credential.ts';

const authority = await testAuthority();
const otherAuthority = await testAuthority();
const nodeName = 'gpu-box';
const secret = `muster_join_${'s'.repeat(43)}`;

function tokenPinning({ certificate }: Pick<TestAuthority, 'certificate'>): string {
  const digest = createHash('sha256').update(new X509Certificate(certificate).raw).digest('base64url');
  return `${secret}.${digest}`;
}

function stored(caCertificate: string | null, joined = true): StoredCredential {
  return { nodeName, credential: 'c', joined, caCertificate };
}

/** Nothing more than a name and an address; a test adds what it is about. */
const unknownHost = { address: '192.0.2.1:7070', nodeName, joinToken: null, caCertificate: null };
const certificateOf = (pem: string | null) => new X509Certificate(pem ?? '').fingerprint256;

// ---- Without asking anybody

test('a CA that the operator names is trusted, whatever was known', async () => {
  const joinToken = tokenPinning(otherAuthority);
  expect(await caOfCoordinator({ ...unknownHost, caCertificate: 'named', joinToken }, stored('old'))).toBe(
    'named',
  );
});

test('since the join the CA stays the same, whatever the token says that it joined with', async () => {
  const joinToken = tokenPinning(otherAuthority);
  const known = authority.certificate;
  expect(await caOfCoordinator(unknownHost, stored(known))).toBe(known);
  const joinedWith = createHash('sha256').update(joinToken).digest('hex');
  expect(await caOfCoordinator({ ...unknownHost, joinToken }, { ...stored(known), joinedWith })).toBe(known);
});

test('an agent that knows a CA demands it on loopback too', async () => {
  expect(await caOfCoordinator({ ...unknownHost, address: '127.0.0.1:7070' }, stored('known'))).toBe('known');
});

test('a coordinator on this machine needs none', async () => {
  for (const address of ['127.0.0.1:7070', 'localhost:7070', '[::1]:7070']) {
    expect(await caOfCoordinator({ ...unknownHost, address, joinToken: secret }, null)).toBeNull();
  }
});

test('one on another machine does, and the error says how to get it', async () => {
  await expect(caOfCoordinator(unknownHost, null)).rejects.toThrow('muster token create gpu-box');
  await expect(caOfCoordinator({ ...unknownHost, joinToken: secret }, null)).rejects.toThrow(
    /this token was issued by a coordinator that listens on loopback only, not by one at 192\.0\.2\.1:7070: start the coordinator with --listen/,
  );
  await expect(caOfCoordinator(unknownHost, stored(null))).rejects.toThrow(
    /copy tls\/ca\.pem .* --ca or MUSTER_CA/,
  );
});

// ---- By the digest in the join token

test('the CA with the digest that the token pins is trusted, by name and by address', async () => {
  const { port } = await startListener(await authority.issue());
  for (const host of ['127.0.0.1', 'localhost']) {
    const trust = { ...unknownHost, address: `${host}:${port}`, joinToken: tokenPinning(authority) };
    expect(certificateOf(await caOfCoordinator(trust, null))).toBe(certificateOf(authority.certificate));
  }
});

test('an agent that has joined follows a new token to a CA that was made anew, and an old one nowhere', async () => {
  const lostCa = otherAuthority.certificate;
  const { port } = await startListener(await authority.issue());
  const trust = { ...unknownHost, address: `127.0.0.1:${port}` };
  const anew = await caOfCoordinator({ ...trust, joinToken: tokenPinning(authority) }, stored(lostCa));
  expect(certificateOf(anew)).toBe(certificateOf(authority.certificate));
  const known = authority.certificate;
  expect(await caOfCoordinator({ ...trust, joinToken: tokenPinning(otherAuthority) }, stored(known))).toBe(
    known,
  );
});

test.each([
  ['of another CA', await otherAuthority.issue()],
  ['that keeps its CA to itself', await authority.issue({ leafOnly: true })],
])('a server %s is refused, and hears nothing but the handshake', async (_what, context) => {
  const { port, received } = await startListener(context);
  const trust = { ...unknownHost, address: `127.0.0.1:${port}`, joinToken: tokenPinning(authority) };
  await expect(caOfCoordinator(trust, null)).rejects.toMatchObject({
    code: 'unauthenticated',
    message: expect.stringContaining(
      `the server at 127.0.0.1:${port} is not the coordinator that issued this token`,
    ),
  });
  expect(await received).toBe('');
});

test('the digest of a server certificate is no CA', async () => {
  const context = await authority.issue();
  const { port } = await startListener(context);
  const leaf = { certificate: String(context.cert) };
  const trust = { ...unknownHost, address: `127.0.0.1:${port}`, joinToken: tokenPinning(leaf) };
  await expect(caOfCoordinator(trust, null)).rejects.toMatchObject({ code: 'unauthenticated' });
});

test('somebody in between who passes the real chain on gets no token', async () => {
  // The chain is public: an impostor can show the true CA behind a certificate of their own making.
  const impostor = await otherAuthority.issue();
  const { port, received } = await startListener({
    ...impostor,
    cert: `${String(impostor.cert)}${authority.certificate}`,
  });
  const coordinator = { address: `127.0.0.1:${port}`, caCertificate: authority.certificate };
  const hub = connectHub(coordinator);
  onTestFinished(() => hub.close());
  const request = { nodeName, joinToken: tokenPinning(authority), credential: 'muster_agent_secret' };
  await expect(requestJoin(hub, coordinator, request, Date.now)).rejects.toThrow(
    'is not the coordinator whose CA is trusted here',
  );
  hub.close();
  expect(await received).toBe('');
});

test('a coordinator that is slow to answer is asked to join again', async () => {
  const server = new Server();
  onTestFinished(() => server.forceShutdown());
  let calls = 0;
  server.addService(agentHubService, {
    Join: (_call: unknown, answer: sendUnaryData<{ clusterId: string }>) => {
      calls += 1;
      if (calls > 1) answer(null, { clusterId: 'c' });
    },
  });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  const coordinator = { address: `127.0.0.1:${port}`, caCertificate: null };
  const hub = connectHub(coordinator);
  onTestFinished(() => hub.close());
  const request = { nodeName, joinToken: 'muster_join_token', credential: 'muster_agent_secret' };
  // The first call reaches the coordinator at once, and its deadline is over soon after.
  const wallMs = () => Date.now() - (calls === 0 ? 9_000 : 0);
  expect(await requestJoin(hub, coordinator, request, wallMs)).toBeNull();
});

test('before it has joined, an agent follows a newer token to another coordinator', async () => {
  const wrong = otherAuthority.certificate;
  const { port } = await startListener(await authority.issue());
  const trust = { ...unknownHost, address: `127.0.0.1:${port}`, joinToken: tokenPinning(authority) };
  const ca = await caOfCoordinator(trust, stored(wrong, false));
  expect(certificateOf(ca)).toBe(certificateOf(authority.certificate));
  // The same again needs nobody: what is stored has the digest.
  const unreachable = { ...trust, address: '127.0.0.1:1' };
  expect(await caOfCoordinator(unreachable, stored(ca, false))).toBe(ca);
});

test.each([
  ['without TLS', () => startGrpcServer(null), 'does not speak TLS'],
  [
    'with TLS 1.2',
    async () => startGrpcServer(await authority.issue({ version: 'TLSv1.2' })),
    'has no TLS 1.3',
  ],
  ['that is not there', async () => 1, 'no coordinator answers at 127.0.0.1:1'],
])('a server %s is told apart', async (_what, start, message) => {
  const address = `127.0.0.1:${await start()}`;
  await expect(
    caOfCoordinator({ ...unknownHost, address, joinToken: tokenPinning(authority) }, null),
  ).rejects.toThrow(message);
});

// ---- Connections

test('a connection is kept until there is another certificate, which needs another one', async () => {
  const proofOf = async (): Promise<NodeProof> => {
    const credential = makeCredential(true);
    return { credential, certificate: await authority.certify(credential, nodeName) };
  };
  let shown = await proofOf();
  const coordinator = { address: '127.0.0.1:1', caCertificate: authority.certificate };
  const lane = new HubLane(coordinator, { current: () => shown });
  onTestFinished(() => lane.close());
  const first = lane.client();
  expect(lane.client()).toBe(first);
  shown = await proofOf();
  const second = lane.client();
  expect(second).not.toBe(first);
  expect(lane.client()).toBe(second);
});

test('the reason of a connection that fails names what to do, where that is known', () => {
  const coordinator = { address: 'gpu-head:7070', caCertificate: authority.certificate };
  const wrapped = new Error(
    '14 UNAVAILABLE: No connection established. Last error: certificate is not yet valid',
  );
  expect(whyUnconnected(coordinator, wrapped)).toBe(
    'the certificate of the coordinator at gpu-head:7070 is not valid yet: compare the clocks of both machines',
  );
  expect(whyUnconnected(coordinator, new Error('3 heartbeats went unanswered'))).toBe(
    '3 heartbeats went unanswered',
  );
});
