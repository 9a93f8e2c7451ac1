import { type Client, status } from '@grpc/grpc-js';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { credentialLifetimeMs, startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import { nodeNameOf } from '../modelFixture.ts';
import { askToRenew } from '../reconcilers/credentialUse.ts';
import { connected, credentialOf, helloMessage, openSession } from './agentFixture.ts';

let coordinator: TestCoordinator;
let client: Client;
beforeEach(async () => {
  coordinator = await startTestCoordinator();
  client = coordinator.client();
});
afterEach(() => coordinator.close());

const name = nodeNameOf('node-1');
const next = credentialOf('next');
const refusedToken = [{ code: status.UNAUTHENTICATED }];

function ask(): void {
  const { state, agents, clock } = coordinator;
  const clocks = { wallMs: () => clock.wallMs(), monotonicMs: () => clock.monotonicMs() };
  askToRenew({ ...clocks, state, agents, lifetimeMs: credentialLifetimeMs });
}

/** What the store has of the agent's credential. */
function stored() {
  const all = [...coordinator.memory.credentials.values()];
  return all.find(({ kind }) => kind === 'agent') ?? expect.fail('there is none');
}

/** @returns whether a session by this secret is welcomed; it replaces the one before */
async function isLetIn(secret: string): Promise<boolean> {
  const session = openSession(client, secret);
  session.send(helloMessage());
  await vi.waitFor(() => expect(session.received.length + session.errors.length).toBeGreaterThan(0));
  if (session.received.length > 0) return true;
  expect(session.errors).toMatchObject(refusedToken);
  return false;
}

/** A session that was asked for another secret, at two thirds of the life of its own. */
async function asked() {
  const session = await connected(coordinator, client, name);
  const isAsked = () => session.received.filter(({ renewCredential }) => renewCredential).length;
  coordinator.clock.nowMs += (credentialLifetimeMs * 2) / 3 - 1;
  session.send({ heartbeat: { seq: 1, observed: [] } });
  await vi.waitFor(() => expect(session.received.some(({ heartbeatAck }) => heartbeatAck)).toBe(true));
  ask();
  coordinator.clock.nowMs += 1;
  ask();
  ask();
  await vi.waitFor(() => expect(isAsked()).toBe(1));
  return session;
}

test('at two thirds of its life a credential is renewed over the session, which goes on', async () => {
  const { token, send, received, errors } = await asked();
  const { id } = stored();
  send({ credentialOffer: { credential: next } });
  await vi.waitFor(() => expect(received.some(({ credentialTaken }) => credentialTaken)).toBe(true));
  send({ credentialKept: {} });
  await vi.waitFor(() => expect(stored().nextHash).toBeNull());
  const nowMs = coordinator.clock.wallMs();
  expect(stored()).toMatchObject({ id, createdAtMs: nowMs, expiresAtMs: nowMs + credentialLifetimeMs });
  expect(errors, 'nothing that was open has ended').toEqual([]);
  expect(await isLetIn(token)).toBe(false);
  expect(await isLetIn(next)).toBe(true);
  const renewed = [...coordinator.memory.events.values()].filter(({ kind }) => kind === 'token.renewed');
  expect(renewed).toMatchObject([{ by: id, data: { node: name } }]);
});

test('until the agent has shown that it keeps the new one, both are valid', async () => {
  const { token, send, received } = await asked();
  send({ credentialOffer: { credential: next } });
  await vi.waitFor(() => expect(received.some(({ credentialTaken }) => credentialTaken)).toBe(true));
  expect(await isLetIn(token), 'its answer was lost, or the agent crashed before it stored it').toBe(true);
  expect(await isLetIn(next), 'it was stored, and the word of that was lost').toBe(true);
  expect(await isLetIn(token), 'the new one has been used').toBe(false);
});

test('an offer is taken again after a crash; one of another credential, or too short, is not taken', async () => {
  const other = await connected(coordinator, client, 'node-2');
  const { send, received, errors } = await asked();
  const taken = () => received.filter(({ credentialTaken }) => credentialTaken).length;
  send({ credentialOffer: { credential: next } });
  send({ credentialOffer: { credential: next } });
  await vi.waitFor(() => expect(taken()).toBe(2));
  const before = stored();
  send({ credentialOffer: { credential: other.token } });
  send({ heartbeat: { seq: 2, observed: [] } });
  await vi.waitFor(() => expect(received.some(({ heartbeatAck }) => heartbeatAck?.seq === 2)).toBe(true));
  expect(stored()).toEqual(before);
  send({ credentialOffer: { credential: 'muster_agent_short' } });
  await vi.waitFor(() => expect(errors).toMatchObject([{ code: status.INVALID_ARGUMENT }]));
  expect(taken()).toBe(2);
});

test('one that was not renewed in time opens nothing any more', async () => {
  const { token, cancel } = await connected(coordinator, client, name);
  cancel();
  coordinator.clock.nowMs += credentialLifetimeMs;
  expect(await isLetIn(token)).toBe(false);
});

test('without an offer a word of having kept one changes nothing', async () => {
  const { send, received } = await connected(coordinator, client, name);
  const before = stored();
  send({ credentialKept: {} });
  send({ heartbeat: { seq: 1, observed: [] } });
  await vi.waitFor(() => expect(received.some(({ heartbeatAck }) => heartbeatAck)).toBe(true));
  expect(stored()).toEqual(before);
});
