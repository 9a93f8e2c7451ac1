import { type Client, type ServiceError, status } from '@grpc/grpc-js';
import type { MusterError } from '@muster/common/errors';
import type { JobId } from '@muster/common/ids';
import { connectMuster } from '@muster/common/wire/client';
import { agentHubService } from '@muster/common/wire/service';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { agentStreamsMax } from '../auth/establish.ts';
import { hashToken } from '../auth/tokens.ts';
import { startTestCoordinator, type TestCoordinator, withToken } from '../coordinatorFixture.ts';
import { anAgent, nodeNameOf } from '../modelFixture.ts';
import { connected, credentialOf, helloMessage, join, openSession } from './agentFixture.ts';
import { startJob, submitJob } from './jobFixture.ts';

let coordinator: TestCoordinator;
let client: Client;
beforeEach(async () => {
  coordinator = await startTestCoordinator();
  client = coordinator.client();
});
afterEach(() => coordinator.close());

const name = nodeNameOf('node-1');
const refusedToken = [{ code: status.UNAUTHENTICATED }];

/** Another stream of an agent. @returns how it ends */
function endOfStream(method: 'UploadLogs' | 'UploadTelemetry', token: string): Promise<status> {
  const bytes = (each: Buffer) => each;
  const call = client.makeBidiStreamRequest(agentHubService[method].path, bytes, bytes, withToken(token));
  call.on('data', () => {});
  return new Promise((resolve) => call.on('error', ({ code }: ServiceError) => resolve(code)));
}

async function endOf(stream: AsyncIterable<unknown>): Promise<MusterError> {
  try {
    for await (const each of stream) expect(each).toBeTruthy();
  } catch (error) {
    return error as MusterError;
  }
  return expect.fail('it ended well');
}

async function openCalls(id: RegExp): Promise<number> {
  const all = await coordinator.api.listCredentials();
  return all.find((each) => id.test(each.id))?.openCalls ?? 0;
}

/** A job whose task runs on this agent's node. */
async function runningJob({
  received,
  send,
}: Pick<ReturnType<typeof openSession>, 'received' | 'send'>): Promise<JobId> {
  const id = await submitJob(coordinator, 'r1');
  const assigned = () =>
    received.find(({ prepare }) => prepare)?.prepare ?? expect.fail('nothing was assigned');
  const { task } = await vi.waitFor(assigned);
  send({ prepared: { task, master: { addr: '127.0.0.1', port: 1 }, testPort: 0, endpoints: [] } });
  await vi.waitFor(() => expect(received.some(({ start }) => start)).toBe(true));
  send({ report: { task, state: 'TASK_STATE_RUNNING' } });
  await vi.waitFor(() => expect(coordinator.state.jobs.get(id)?.state.kind).toBe('running'));
  return id;
}

async function passSilently(seconds: number): Promise<void> {
  for (let second = 0; second < seconds; second += 1) {
    coordinator.clock.nowMs += 1_000;
    await Promise.all(coordinator.leases.run());
  }
}

describe('a credential that is revoked', () => {
  test('ends every stream that is open under it, and opens none', async () => {
    const { token, errors } = await connected(coordinator, client, name);
    const ends = [endOfStream('UploadLogs', token), endOfStream('UploadTelemetry', token)];
    await vi.waitFor(async () => expect(await openCalls(/^agent:/)).toBe(3));
    const ids = await coordinator.api.revokeCredential(name);
    expect(new Set(ids.map((id) => id.split(':')[0]))).toEqual(new Set(['agent', 'join']));
    expect(await Promise.all(ends)).toEqual([status.UNAUTHENTICATED, status.UNAUTHENTICATED]);
    await vi.waitFor(() => expect(errors).toMatchObject(refusedToken));
    expect(errors[0]?.details).toMatch(/^the credential agent:node-1:\w+ has been revoked or replaced$/);
    await vi.waitFor(() => expect(coordinator.agents.isOnline(name)).toBe(false));
    const again = openSession(client, token);
    await vi.waitFor(() => expect(again.errors).toMatchObject(refusedToken));
  });

  test('has so many streams open at a time, and no more', async () => {
    const { token, errors } = await connected(coordinator, client, name);
    const ends = Array.from({ length: agentStreamsMax - 1 }, () => endOfStream('UploadTelemetry', token));
    await vi.waitFor(async () => expect(await openCalls(/^agent:/)).toBe(agentStreamsMax));
    expect(await endOfStream('UploadLogs', token)).toBe(status.RESOURCE_EXHAUSTED);
    // Every other client has room.
    const other = await connected(coordinator, client, nodeNameOf('node-2'));
    expect([...errors, ...other.errors]).toEqual([]);
    await coordinator.api.revokeCredential(name);
    expect(new Set(await Promise.all(ends))).toEqual(new Set([status.UNAUTHENTICATED]));
  });

  test('takes along what was queued in its name', async () => {
    const { loop, state, api } = coordinator;
    await connected(coordinator, client, name);
    const id = [...state.credentials.keys()].find((each) => each.startsWith('agent:')) ?? '';
    const agent = { ...anAgent(name), id };
    expect(await loop.run(agent, () => 'done')).toBe('done');
    await api.revokeCredential(id);
    await expect(loop.run(agent, () => 'done')).rejects.toMatchObject({ code: 'unauthenticated' });
  });

  test('ends nothing that runs on its node unless that is meant', async () => {
    const { api } = coordinator;
    const id = await runningJob(await connected(coordinator, client, name));
    await expect(api.revokeCredential(name)).rejects.toMatchObject({
      code: 'failed_precondition',
      message: expect.stringMatching(new RegExp(`^node-1 runs ${id}, which end there .* --force`)),
    });
    expect(await openCalls(/^agent:/)).toBe(1);
    expect(await api.revokeCredential(name, true)).toHaveLength(2);
  });

  test('is named by the beginning of its id, and never guessed', async () => {
    const { api } = coordinator;
    const first = await api.createJoinToken('node-1');
    await api.createJoinToken('node-2');
    await expect(api.revokeCredential('join:')).rejects.toMatchObject({ code: 'invalid' });
    await expect(api.revokeCredential('nothing')).rejects.toMatchObject({ code: 'not_found' });
    await expect(api.revokeCredential('')).rejects.toMatchObject({ code: 'not_found' });
    await expect(api.revokeCredential('admin')).rejects.toMatchObject({ code: 'failed_precondition' });
    const id = `join:${hashToken(first.token).slice(0, 8)}`;
    expect(await api.revokeCredential(id)).toHaveLength(1);
    expect(await api.listCredentials()).toMatchObject([{ kind: 'admin' }, { node: 'node-2' }]);
  });

  test('shows in no list by its secret', async () => {
    const { api, adminToken } = coordinator;
    const { token } = await connected(coordinator, client, name);
    const text = JSON.stringify(await api.listCredentials());
    for (const secret of [token, adminToken]) {
      expect(text).not.toContain(secret);
      expect(text).not.toContain(hashToken(secret));
    }
  });
});

test('the admin token is rotated: watches of the earlier one end, and it is valid no more', async () => {
  const { api, state, storedAdminTokens } = coordinator;
  const id = await submitJob(coordinator, 'r1');
  await startJob(coordinator, id);
  const ends = [
    endOf(api.watchEvents({ sinceSeq: -1, follow: true })),
    endOf(api.readLogs({ jobId: id, follow: true })),
  ];
  await vi.waitFor(async () => expect(await openCalls(/^admin/)).toBe(2));
  const token = await api.rotateAdminToken();
  const unauthenticated = expect.objectContaining({ code: 'unauthenticated' });
  expect(await Promise.all(ends)).toEqual([unauthenticated, unauthenticated]);
  await expect(api.getCluster()).rejects.toMatchObject({ code: 'unauthenticated' });
  expect(storedAdminTokens).toEqual([token]);
  expect([...state.credentials.values()].map(({ kind }) => kind)).toEqual(['admin']);
  const other = connectMuster({ address: coordinator.address, token });
  expect(await other.getCluster()).toMatchObject({ jobsActive: 1 });
  other.close();
});

describe('a node that is removed', () => {
  test('is in no list, its agent is refused, and its name is free', async () => {
    const { api, agents, state, httpUrl } = coordinator;
    const { token, errors } = await connected(coordinator, client, name);
    await api.removeNode(name);
    await vi.waitFor(() => expect(errors).toMatchObject(refusedToken));
    expect(await api.listNodes()).toEqual([]);
    expect(await (await fetch(`${httpUrl}/sd`)).text()).not.toContain(name);
    const page = await (await fetch(`${httpUrl}/metrics`)).text();
    expect(page).toMatch(/^muster_nodes\{state="silent"\} 0$/m);
    const again = openSession(client, token);
    again.send(helloMessage());
    await vi.waitFor(() => expect(again.errors).toMatchObject(refusedToken));
    await passSilently(30);
    expect(state.nodes.size).toBe(0);
    expect(agents.lastContactMs(name), 'nobody waits for it').toBeNull();
    const kinds = [...coordinator.memory.events.values()].map(({ kind }) => kind);
    expect(kinds).toContain('node.removed');
    expect(kinds).not.toContain('node.silent');
    await expect(api.removeNode(name)).rejects.toMatchObject({ code: 'not_found' });
    const { received } = await connected(coordinator, client, name);
    expect(received[0]?.welcome).toBeTruthy();
  });

  test('has no tasks that may run: they are fenced, or have ended', async () => {
    const { api } = coordinator;
    const session = await connected(coordinator, client, name);
    const id = await runningJob(session);
    const refused = { code: 'failed_precondition', message: expect.stringMatching(/drain.*confirm-dead/) };
    await expect(api.removeNode(name)).rejects.toMatchObject(refused);
    session.cancel();
    await passSilently(5);
    await expect(api.removeNode(name), 'silent is not dead').rejects.toMatchObject(refused);
    await passSilently(20);
    await api.removeNode(name);
    expect(await api.getJob(id)).toMatchObject({ state: 'queued' });
  });

  test('goes on with the numbers of its events when it is back, also after a restart', async () => {
    const { api, memory } = coordinator;
    await connected(coordinator, client, name);
    await api.removeNode(name);
    const restarted = await startTestCoordinator({ memory });
    await connected(restarted, restarted.client(), name);
    expect(restarted.fatal).toEqual([]);
    const events = [...memory.events.values()].filter(({ subject }) => subject === name);
    expect(events.map(({ subjectSeq }) => subjectSeq)).toEqual([1, 2, 3, 4, 5]);
    await restarted.close();
  });
});

describe('a machine that was installed anew', () => {
  const anew = helloMessage({ instanceId: 'anew', bootId: 'b2' });

  async function rejoin(): Promise<string> {
    const { token } = await coordinator.api.createJoinToken(name, true);
    const credential = credentialOf('anew');
    await join(client, { nodeName: name, credential, joinToken: token });
    return credential;
  }

  test('joins by its name; the earlier credential ends then, and not before', async () => {
    const { api, agents } = coordinator;
    const { token: earlier, errors } = await connected(coordinator, client, name);
    await expect(api.createJoinToken(name)).rejects.toThrow(/--replace/);
    await api.createJoinToken(name, true);
    expect(agents.isOnline(name)).toBe(true);
    expect(errors).toEqual([]);
    const credential = await rejoin();
    await vi.waitFor(() => expect(errors).toMatchObject(refusedToken));
    const session = openSession(client, credential);
    session.send(anew);
    await vi.waitFor(() => expect(session.received[0]?.welcome).toBeTruthy());
    const late = openSession(client, earlier);
    await vi.waitFor(() => expect(late.errors).toMatchObject(refusedToken));
  });

  test('is let in once the tasks of the earlier one are fenced: its boot proves nothing about them', async () => {
    const { api, state } = coordinator;
    const id = await runningJob(await connected(coordinator, client, name));
    const credential = await rejoin();
    const early = openSession(client, credential);
    early.send(anew);
    await vi.waitFor(() => expect(early.errors).toMatchObject([{ code: status.PERMISSION_DENIED }]));
    expect(early.errors[0]?.details).toMatch(/confirm-dead/);
    expect(state.jobs.get(id)?.state.kind).toBe('running');
    await passSilently(30);
    expect(state.jobs.get(id)?.state.kind).not.toBe('running');
    const later = openSession(client, credential);
    later.send(anew);
    await vi.waitFor(() => expect(later.received[0]?.welcome).toBeTruthy());
    expect((await api.getNode(name)).state).toBe('online');
  });
});
