/** Machines with one identity: who is welcomed, who is refused, and what is told of it. */
import type { Client } from '@grpc/grpc-js';
import type { JobId } from '@muster/common/ids';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import { nodeNameOf } from '../modelFixture.ts';
import * as agentFixture from './agentFixture.ts';
import { helloMessage, join } from './agentFixture.ts';

let coordinator: TestCoordinator;
let client: Client;
let credential: string;
const node = nodeNameOf('node-1');
beforeEach(async () => {
  coordinator = await startTestCoordinator();
  client = coordinator.client();
  credential = await agentFixture.joined(coordinator, client, 'node-1');
});
afterEach(() => coordinator.close());

const here = { hostName: 'host-a', firmwareUuid: 'uuid-a', cardAddresses: ['02:00:00:00:00:0a'] };
const elsewhere = { hostName: 'host-b', firmwareUuid: 'uuid-b', cardAddresses: ['02:00:00:00:00:0b'] };

interface HelloFields {
  readonly token?: string | null;
  readonly machine?: typeof here;
  readonly bootId?: string;
  readonly instanceId?: string;
}

/** A connection that has said Hello. */
function dial({ token = null, machine = here, bootId = 'boot-a', instanceId = 'i' }: HelloFields = {}) {
  const session = agentFixture.openSession(client, credential);
  const continuity = { ...machine, ...(token === null ? {} : { token }) };
  session.send(helloMessage({ bootId, instanceId, continuity }));
  const find = <K extends 'nextToken' | 'welcome' | 'beat'>(kind: K) =>
    session.received.find((message) => message[kind] != null)?.[kind] ?? null;
  return {
    ...session,
    find,
    offered: async () => {
      await vi.waitFor(() => expect(find('nextToken'), String(session.errors[0])).not.toBeNull());
      return find('nextToken')?.token ?? '';
    },
    keep: async (kept: string, failed = false) => {
      session.send({ tokenKept: { token: kept, failed } });
      await vi.waitFor(() => expect(find('welcome'), String(session.errors[0])).not.toBeNull());
    },
    refusal: async () => {
      await vi.waitFor(() => expect(session.errors).toHaveLength(1));
      return session.errors[0]?.details ?? '';
    },
  };
}

/** Goes through both phases. @returns the session and its token */
async function welcomed(fields: HelloFields = {}) {
  const session = dial(fields);
  const token = await session.offered();
  await session.keep(token);
  return { session, token };
}

const conditions = () => coordinator.state.nodes.get(node)?.conditions.map(({ kind }) => kind) ?? [];
const duplicates = () =>
  [...coordinator.memory.events.values()].filter(({ kind }) => kind === 'node.duplicate_identity');

async function running(session: Awaited<ReturnType<typeof welcomed>>['session']): Promise<JobId> {
  const specJson = JSON.stringify({ name: 'train', command: ['true'] });
  const { jobIds } = await coordinator.api.submit({ specJson, requestId: 'r' });
  const task = { jobId: jobIds[0] as JobId, attempt: 1, nodeRank: 0 };
  await vi.waitFor(() => expect(session.received.at(-1)?.prepare).toBeTruthy());
  session.send({ prepared: { task, master: { addr: '127.0.0.1', port: 1 } } });
  session.send({ report: { task, state: 'TASK_STATE_RUNNING' } });
  await vi.waitFor(() => expect(coordinator.state.jobs.get(task.jobId)?.state.kind).toBe('running'));
  return task.jobId;
}

async function gone({ cancel }: { readonly cancel: () => void }): Promise<void> {
  cancel();
  await vi.waitFor(() => expect(coordinator.agents.isOnline(node)).toBe(false));
}

test('a Hello has no effect before the offered token is kept, and what comes meanwhile is taken after it', async () => {
  const session = dial();
  const token = await session.offered();
  session.send({ status: { inventory: { ...agentFixture.inventory, cpus: 7 }, conditions: [] } });
  expect([session.find('welcome'), coordinator.agents.isOnline(node)]).toEqual([null, false]);
  await session.keep(token);
  expect(coordinator.agents.isOnline(node)).toBe(true);
  await vi.waitFor(() => expect(coordinator.state.nodes.get(node)?.inventory.cpus).toBe(7));
  expect(coordinator.state.nodes.get(node)?.tokens).toMatchObject({ current: token, pending: null });
});

test('an agent that reconnects over a half-open connection goes on with its token', async () => {
  let { token } = await welcomed();
  for (let time = 0; time < 4; time += 1) token = (await welcomed({ token })).token;
  const cut = dial({ token });
  await cut.offered();
  cut.cancel();
  await welcomed({ token });
  expect([conditions(), duplicates()]).toEqual([[], []]);
});

test('an agent with a full disk works on with the token that it has', async () => {
  const { token, session } = await welcomed();
  await gone(session);
  for (let time = 0; time < 2; time += 1) {
    const full = dial({ token });
    await full.keep(await full.offered(), true);
    await gone(full);
  }
  await welcomed({ token });
});

test('a copy with a spent token is refused and shown, and the holder works on', async () => {
  const { token: first, session } = await welcomed();
  await gone(session);
  const { session: holder } = await welcomed({ token: first });
  const jobId = await running(holder);
  const copy = dial({ token: first, machine: elsewhere, bootId: 'boot-b' });
  expect(await copy.refusal()).toMatch(/duplicate_identity.*muster node rejoin node-1/);
  await vi.waitFor(() => expect(conditions()).toEqual(['duplicate_identity']));
  expect(duplicates()).toMatchObject([
    {
      subject: 'node-1',
      data: {
        holder: { hostName: 'host-a', bootId: 'boot-a' },
        refused: { hostName: 'host-b', bootId: 'boot-b' },
      },
    },
  ]);
  const [{ data } = { data: {} }] = duplicates();
  expect(data).toMatchObject({ holder: { address: '127.0.0.1' }, refused: { address: '127.0.0.1' } });
  await dial({ token: first, machine: elsewhere, bootId: 'boot-b' }).refusal();
  holder.send({ status: { inventory: agentFixture.inventory, conditions: [] } });
  holder.send({ heartbeat: { seq: 1, observed: [] } });
  await vi.waitFor(() =>
    expect(holder.received.some(({ heartbeatAck }) => heartbeatAck?.seq === 1)).toBe(true),
  );
  expect([coordinator.state.jobs.get(jobId)?.state.kind, duplicates().length]).toEqual(['running', 1]);
  expect(conditions()).toEqual(['duplicate_identity']);

  coordinator.clock.nowMs += 6 * 60_000;
  await coordinator.reconcile();
  await vi.waitFor(() => expect(conditions()).toEqual([]));
});

test('of two copies that say Hello at once one is welcomed', async () => {
  const { token, session } = await welcomed();
  await gone(session);
  const both = [dial({ token }), dial({ token, machine: elsewhere })];
  const offers = await Promise.all(both.map((each) => each.offered()));
  expect(new Set(offers).size).toBe(2);
  for (const [index, each] of both.entries())
    each.send({ tokenKept: { token: offers[index] ?? '', failed: false } });
  await vi.waitFor(() => expect(both.filter(({ errors }) => errors.length > 0)).toHaveLength(1));
  await vi.waitFor(() => expect(both.filter(({ find }) => find('welcome') !== null)).toHaveLength(1));
  const loser = both.findIndex(({ errors }) => errors.length > 0);
  expect(await dial({ token: offers[loser] ?? '', machine: elsewhere }).refusal()).toMatch(
    /duplicate_identity/,
  );
});

test('a Hello that arrives late is no copy; one that is repeated is', async () => {
  const { token: first, session } = await welcomed();
  await gone(session);
  await welcomed({ token: first });
  await dial({ token: first }).refusal();
  expect([conditions(), duplicates()]).toEqual([[], []]);
  await dial({ token: first }).refusal();
  await vi.waitFor(() => expect(conditions()).toEqual(['duplicate_identity']));
});

describe('another boot with the current token', () => {
  test('of the same machine ends its tasks at once', async () => {
    const { token, session } = await welcomed();
    const jobId = await running(session);
    await gone(session);
    await welcomed({ token, bootId: 'boot-b' });
    const { attempts } = await coordinator.api.getJob(jobId);
    expect(attempts[0]).toMatchObject({ state: 'ended', cause: { kind: 'node_lost' } });
  });

  test.each([
    { what: 'of another machine', machine: elsewhere },
    {
      what: 'of a machine that tells nothing of itself',
      machine: { ...here, firmwareUuid: '', cardAddresses: [] },
    },
  ])('$what is refused until the tasks are fenced', async ({ machine }) => {
    const { firmwareUuid: _, ...withoutUuid } = machine;
    const shown = machine.firmwareUuid === '' ? (withoutUuid as typeof here) : machine;
    const { token, session } = await welcomed();
    const jobId = await running(session);
    await gone(session);
    const other = dial({ token, machine: shown, bootId: 'boot-b' });
    expect(await other.refusal()).toMatch(/has tasks that have not ended/);
    expect(coordinator.state.jobs.get(jobId)?.state.kind).toBe('running');
    await vi.waitFor(async () => {
      coordinator.clock.nowMs += 2_000;
      await coordinator.reconcile();
      expect(coordinator.state.jobs.get(jobId)?.state.kind).not.toBe('running');
    });
    await welcomed({ token, machine: shown, bootId: 'boot-b' });
  });

  test('while the earlier one answers is refused, and shown once that is heard again', async () => {
    const { token, session } = await welcomed();
    expect(await dial({ token, bootId: 'boot-b' }).refusal()).toMatch(/still answers from an earlier boot/);
    expect(duplicates()).toEqual([]);
    coordinator.clock.nowMs += 1_000;
    await coordinator.reconcile();
    await vi.waitFor(() => expect(session.find('beat')).not.toBeNull());
    session.send({ heartbeat: { seq: 1, observed: [] } });
    await vi.waitFor(() => expect(conditions()).toEqual(['duplicate_identity']));
    await dial({ token, bootId: 'boot-c', machine: elsewhere }).refusal();
    await vi.waitFor(() => expect(duplicates()).toHaveLength(2));
    coordinator.clock.nowMs += 2_000;
    await welcomed({ token });
  });
});

test('another data directory with the credential is refused and shown while the node is connected', async () => {
  const { token } = await welcomed();
  expect(await dial({ token, instanceId: 'copy' }).refusal()).toMatch(/is connected already/);
  await vi.waitFor(() => expect(conditions()).toEqual(['duplicate_identity']));
});

test('an agent of the release before works on as before, until its node has a token and boots', async () => {
  const session = agentFixture.openSession(client, credential);
  session.send(helloMessage({ bootId: 'boot-a' }));
  await vi.waitFor(() => expect(session.received[0]?.welcome).toBeTruthy());
  await gone(session);
  const upgraded = await welcomed();
  await gone(upgraded.session);
  const takenBack = agentFixture.openSession(client, credential);
  takenBack.send(helloMessage({ bootId: 'boot-a' }));
  await vi.waitFor(() => expect(takenBack.received[0]?.welcome).toBeTruthy());
  await gone(takenBack);
  const copy = agentFixture.openSession(client, credential);
  copy.send(helloMessage({ bootId: 'boot-b' }));
  await vi.waitFor(() => expect(copy.errors[0]?.details).toMatch(/duplicate_identity/));
});

test('a token that is newer than the store pauses it until it is advanced, and is no copy', async () => {
  const { token: first, session } = await welcomed();
  await gone(session);
  const backup = coordinator.state.nodes.get(node);
  const { token, session: later } = await welcomed({ token: first });
  await gone(later);
  await coordinator.loop.run({ kind: 'coordinator', part: 'test' }, (draft) => {
    if (backup !== undefined) draft.putNode(backup);
  });
  await welcomed({ token });
  expect(coordinator.leases.paused()).toMatch(
    /continuity token 2, and the newest of the store is 1.*muster store advance/,
  );
  expect([conditions(), duplicates()]).toEqual([[], []]);
});

test('an admin lets a machine in that was restored to an earlier state, once the holder is gone', async () => {
  const { token: first, session } = await welcomed();
  await gone(session);
  const { session: holder } = await welcomed({ token: first });
  await dial({ token: first, machine: elsewhere, bootId: 'boot-b' }).refusal();
  await expect(coordinator.api.rejoinNode('node-1')).rejects.toThrow(
    /node-1 answers and keeps its tasks: it is host-a/,
  );
  await gone(holder);
  await coordinator.api.rejoinNode('node-1');
  await vi.waitFor(() => expect(conditions()).toEqual([]));
  await welcomed({ token: first, machine: elsewhere, bootId: 'boot-b' });
});

test('a machine that joins anew is the first of a new chain', async () => {
  const { session } = await welcomed();
  await gone(session);
  await dial({ machine: elsewhere, bootId: 'boot-b' }).refusal();
  const { token } = await coordinator.api.createJoinToken('node-1', true);
  await join(client, { nodeName: 'node-1', credential: agentFixture.credentialOf('anew'), joinToken: token });
  credential = agentFixture.credentialOf('anew');
  await welcomed({ machine: elsewhere, bootId: 'boot-b' });
});
