/** How agents get, show, renew and lose certificates, over real connections with TLS. */
import { X509Certificate } from 'node:crypto';
import { status } from '@grpc/grpc-js';
import type { ClientIdentity } from '@muster/common/wire/trust';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { joinByCertificate, newKey, ownTls, requestFor } from '../../../../test/support/nodeKeys.ts';
import { testAuthority } from '../../../../test/support/tlsServer.ts';
import { credentialLifetimeMs, startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import { nodeNameOf, someMs } from '../modelFixture.ts';
import { askToRenew } from '../reconcilers/credentialUse.ts';
import { credentialOf, helloMessage, join, openSession } from './agentFixture.ts';

let coordinator: TestCoordinator;
beforeEach(async () => {
  coordinator = await startTestCoordinator({ tls: ownTls });
});
afterEach(() => coordinator.close());

const name = nodeNameOf('node-1');

/** A node that has joined. */
function joined(nodeName: string = name, privateKey: string = newKey()): Promise<ClientIdentity> {
  return joinByCertificate(coordinator, nodeName, privateKey);
}

/** A session by that certificate, with its answer: a Welcome, or an error. */
async function session(identity: ClientIdentity | null, token: string | null = null) {
  const opened = openSession(coordinator.client(identity), token);
  opened.send(helloMessage());
  await vi.waitFor(() => expect(opened.received.length + opened.errors.length).toBeGreaterThan(0));
  return opened;
}

async function refusal(identity: ClientIdentity | null, token: string | null = null): Promise<string> {
  const { errors } = await session(identity, token);
  expect(errors).toMatchObject([{ code: status.UNAUTHENTICATED }]);
  return errors[0]?.details ?? '';
}

async function isAdmitted(identity: ClientIdentity): Promise<boolean> {
  const { received, cancel } = await session(identity);
  cancel();
  return received[0]?.welcome?.nodeName === name;
}

const stored = () =>
  [...coordinator.memory.credentials.values()].find(({ kind }) => kind === 'agent') ??
  expect.fail('there is none');

describe('joining', () => {
  test('returns a certificate of 7 days for the key, which names the node and is a client of this CA alone', async () => {
    const { certificate, privateKey } = await joined();
    const parsed = new X509Certificate(certificate);
    const ca = new X509Certificate(coordinator.caCertificate ?? '');
    expect(parsed.subject).toBe('CN=node-1');
    expect(parsed.verify(ca.publicKey) && parsed.checkIssued(ca)).toBe(true);
    expect(parsed.ca).toBe(false);
    expect(parsed.keyUsage).toEqual(['1.3.6.1.5.5.7.3.2']);
    const leftMs = parsed.validToDate.getTime() - coordinator.clock.wallMs();
    expect(leftMs).toBeLessThanOrEqual(credentialLifetimeMs);
    expect(leftMs).toBeGreaterThan(credentialLifetimeMs - 60_000);
    expect(await isAdmitted({ certificate, privateKey })).toBe(true);
  });

  test('is safe to repeat: the same key gets a certificate again, and another key none', async () => {
    const { token } = await coordinator.api.createJoinToken(name);
    const privateKey = newKey();
    const ask = async (key: string) =>
      join(coordinator.client(), {
        nodeName: name,
        credential: await requestFor(key, name),
        joinToken: token,
      });
    await ask(privateKey);
    const again = await ask(privateKey);
    expect(await isAdmitted({ privateKey, certificate: again?.certificate ?? '' })).toBe(true);
    await expect(ask(newKey())).rejects.toThrow('was used already');
  });

  test('names the node of the token, whatever name the request has', async () => {
    const { token } = await coordinator.api.createJoinToken(name);
    const credential = await requestFor(newKey(), 'node-2');
    const answer = await join(coordinator.client(), { nodeName: name, credential, joinToken: token });
    expect(new X509Certificate(answer?.certificate ?? '').subject).toBe('CN=node-1');
  });

  /** Its last byte is one of the signature. */
  const damaged = async () => {
    const [, body = ''] = /-----\n([^-]*)-----END/.exec(await requestFor(newKey(), name)) ?? [];
    const der = Buffer.from(body, 'base64');
    der[der.length - 1] = (der.at(-1) ?? 0) ^ 1;
    return `-----BEGIN CERTIFICATE REQUEST-----\n${der.toString('base64')}\n-----END CERTIFICATE REQUEST-----`;
  };
  test.each([
    ['a secret', () => Promise.resolve(credentialOf('a'))],
    [
      'no request',
      () => Promise.resolve('-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----'),
    ],
    ['a request that its key has not signed', damaged],
    ['a certificate', () => Promise.resolve(coordinator.caCertificate ?? '')],
    ['nothing', () => Promise.resolve('')],
  ])('with %s is refused, and the token stays good', async (_what, credential) => {
    const { token } = await coordinator.api.createJoinToken(name);
    const ask = async (offered: string) =>
      join(coordinator.client(), { nodeName: name, credential: offered, joinToken: token });
    await expect(credential().then(ask)).rejects.toMatchObject({
      code: 'invalid',
      message: expect.stringContaining('no request for a certificate (PKCS #10, PEM)'),
    });
    expect(await ask(await requestFor(newKey(), name))).toMatchObject({
      certificate: expect.any(String),
    });
  });

  test('with the key of another node is refused', async () => {
    const { privateKey } = await joined('node-2');
    await expect(joined(name, privateKey)).rejects.toThrow('belongs to another node');
  });
});

describe('a client that proves nothing is refused:', () => {
  test('without a certificate, and with one that the CA of another cluster has made for the same name', async () => {
    await joined();
    expect(await refusal(null)).toMatch(
      /^no token: .* and no certificate of a node that this cluster has made/,
    );
    const foreign = await testAuthority();
    const privateKey = newKey();
    expect(await refusal({ privateKey, certificate: await foreign.certify(privateKey, name) })).toMatch(
      /^no token/,
    );
  });

  test('with the certificate of a node and another key: TLS has no such connection', async () => {
    const { certificate } = await joined();
    expect(() => coordinator.client({ certificate, privateKey: newKey() })).toThrow(/key values mismatch/);
  });

  test("with the coordinator's own certificate of the CA, or its digest as a token", async () => {
    const { certificate } = await joined();
    const { publicKey } = new X509Certificate(certificate);
    const der = publicKey.export({ type: 'spki', format: 'der' });
    for (const token of [stored().secretHash, der.toString('base64'), certificate.replaceAll('\n', '')])
      expect(await refusal(null, token)).toMatch(/^the token is unknown/);
  });

  test('with the secret of an agent that joined before there was TLS', async () => {
    const { api, memory } = coordinator;
    const plain = await startTestCoordinator({ memory });
    plain.clock.nowMs = coordinator.clock.nowMs;
    const { token } = await plain.api.createJoinToken(name);
    await join(plain.client(), { nodeName: name, credential: credentialOf('old'), joinToken: token });
    await plain.close();
    const restarted = await startTestCoordinator({ tls: ownTls, memory });
    const old = openSession(restarted.client(), credentialOf('old'));
    await vi.waitFor(() => expect(old.errors).toMatchObject([{ code: status.UNAUTHENTICATED }]));
    expect(old.errors[0]?.details).toContain('muster token create node-1 --replace');
    await restarted.close();
    expect(await api.listNodes()).toEqual([]);
  });
});

describe('a certificate ends', () => {
  test('at once when its node is removed: the open session, and every new one', async () => {
    const identity = await joined();
    const { errors } = await session(identity);
    await coordinator.api.removeNode(name);
    await vi.waitFor(() => expect(errors).toMatchObject([{ code: status.UNAUTHENTICATED }]));
    expect(await refusal(identity)).toMatch(/^the certificate is unknown to this coordinator/);
  });

  test('at once when it is revoked, and when a machine that was installed anew takes the name', async () => {
    const identity = await joined();
    expect(await isAdmitted(identity)).toBe(true);
    await coordinator.api.revokeCredential(name);
    expect(await refusal(identity)).toMatch(/revoked/);
    const second = await joined();
    const { token } = await coordinator.api.createJoinToken(name, true);
    expect(await isAdmitted(second)).toBe(true);
    const credential = await requestFor(newKey(), name);
    await join(coordinator.client(), { nodeName: name, credential, joinToken: token });
    expect(await refusal(second)).toMatch(/revoked/);
  });

  test('a certificate that OpenSSL refuses by a wrong system clock counts for as long as its credential does', async () => {
    const { clock } = coordinator;
    let behindMs = 30 * 24 * 60 * 60_000;
    clock.wallMs = () => someMs + clock.nowMs - behindMs;
    // The handshake is verified by the clock of this machine, for which its time was over three weeks ago.
    const identity = await joined();
    expect(new X509Certificate(identity.certificate).validToDate.getTime()).toBeLessThan(Date.now());
    expect(await isAdmitted(identity)).toBe(true);
    behindMs -= credentialLifetimeMs;
    expect(await refusal(identity)).toMatch(/the credential agent:node-1:\w+ has expired/);
  });

  test('when its time is over: sessions that are open go on, and no other begins', async () => {
    const identity = await joined();
    const { errors, send, received } = await session(identity);
    coordinator.clock.nowMs += credentialLifetimeMs;
    expect(await refusal(identity)).toMatch(/expired/);
    send({ heartbeat: { seq: 1, observed: [] } });
    await vi.waitFor(() => expect(received.some(({ heartbeatAck }) => heartbeatAck)).toBe(true));
    expect(errors).toEqual([]);
  });
});

describe('renewal', () => {
  /** A session that was asked for another certificate, at two thirds of the life of its own. */
  async function asked() {
    const identity = await joined();
    const opened = await session(identity);
    coordinator.clock.nowMs += (credentialLifetimeMs * 2) / 3;
    const { state, agents, clock } = coordinator;
    const clocks = { wallMs: () => clock.wallMs(), monotonicMs: () => clock.monotonicMs() };
    askToRenew({ ...clocks, state, agents, lifetimeMs: credentialLifetimeMs });
    await vi.waitFor(() => expect(opened.received.some(({ renewCredential }) => renewCredential)).toBe(true));
    return { identity, ...opened };
  }

  test('gives another key a certificate of 7 days; the earlier one ends when the agent keeps the new one', async () => {
    const { identity, send, received, errors } = await asked();
    const { id } = stored();
    const privateKey = newKey();
    const offer = await requestFor(privateKey, 'whatever');
    const taken = () => received.flatMap(({ credentialTaken }) => credentialTaken ?? []);
    send({ credentialOffer: { credential: offer } });
    send({ credentialOffer: { credential: offer } });
    await vi.waitFor(() => expect(taken()).toHaveLength(2));
    const certificate = taken()[0]?.certificate ?? '';
    const parsed = new X509Certificate(certificate);
    expect(parsed.subject).toBe('CN=node-1');
    const endMs = Math.floor((coordinator.clock.wallMs() + credentialLifetimeMs) / 1_000) * 1_000;
    expect(parsed.validToDate.getTime()).toBe(endMs);
    send({ credentialKept: {} });
    await vi.waitFor(() => expect(stored().nextHash).toBeNull());
    expect(stored()).toMatchObject({ id, expiresAtMs: coordinator.clock.wallMs() + credentialLifetimeMs });
    expect(errors, 'what is open has not ended').toEqual([]);
    expect(await refusal(identity)).toMatch(/^the certificate is unknown/);
    expect(await isAdmitted({ privateKey, certificate })).toBe(true);
  });

  test('until then both are good, and the use of the new one ends the other', async () => {
    const { identity, send, received } = await asked();
    const privateKey = newKey();
    send({ credentialOffer: { credential: await requestFor(privateKey, name) } });
    await vi.waitFor(() => expect(received.some(({ credentialTaken }) => credentialTaken)).toBe(true));
    const certificate =
      received.find(({ credentialTaken }) => credentialTaken)?.credentialTaken?.certificate ?? '';
    expect(await isAdmitted(identity)).toBe(true);
    expect(await isAdmitted({ privateKey, certificate })).toBe(true);
    expect(await refusal(identity)).toMatch(/^the certificate is unknown/);
  });

  test("an offer of another node's key, or of none, changes nothing", async () => {
    const other = await joined('node-2');
    const { send, received, errors } = await asked();
    const before = stored();
    send({ credentialOffer: { credential: await requestFor(other.privateKey, name) } });
    send({ heartbeat: { seq: 1, observed: [] } });
    await vi.waitFor(() => expect(received.some(({ heartbeatAck }) => heartbeatAck)).toBe(true));
    expect(received.some(({ credentialTaken }) => credentialTaken)).toBe(false);
    send({ credentialOffer: { credential: credentialOf('secret') } });
    await vi.waitFor(() => expect(errors).toMatchObject([{ code: status.INVALID_ARGUMENT }]));
    expect(stored()).toEqual(before);
  });
});
