/** What agents claim about the past, true, stale or made up, over real connections. */
import type { Assignment__Output } from '@muster/common/gen/muster/v1/Assignment';
import type { Hello } from '@muster/common/gen/muster/v1/Hello';
import type { JobId } from '@muster/common/ids';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import { nodeNameOf } from '../modelFixture.ts';
import { Memory } from '../store/memory/memoryStore.ts';
import * as agentFixture from './agentFixture.ts';

let coordinator: TestCoordinator;
beforeEach(async () => {
  coordinator = await startTestCoordinator();
});
afterEach(() => coordinator.close());

const connected = (name: string, hello: Hello = {}) =>
  agentFixture.connected(coordinator, coordinator.client(), name, hello);
const submit = async (resources: object, requestId = 'r') => {
  const specJson = JSON.stringify({ name: 'train', command: ['true'], resources });
  const { jobIds } = await coordinator.api.submit({ specJson, requestId });
  return jobIds[0] as JobId;
};
const conditionsOf = (name: string) => coordinator.state.nodes.get(nodeNameOf(name))?.conditions ?? [];

type Agent = Awaited<ReturnType<typeof connected>>;

async function assigned({ received }: Agent): Promise<Assignment__Output> {
  await vi.waitFor(() => expect(received.at(-1)?.prepare).toBeTruthy());
  const assignment = received.at(-1)?.prepare;
  if (assignment == null) throw new Error('nothing was assigned');
  return assignment;
}

test('what an agent received is proven by it: a store restored from an older copy starts nothing until it is advanced', async () => {
  const agent = await connected('node-1');
  const backup = structuredClone(coordinator.memory);
  const jobId = await submit({ gpus: 1 });
  const { task, proof } = await assigned(agent);
  const welcome = agent.received[0]?.welcome;
  await coordinator.close();

  coordinator = await startTestCoordinator({ memory: Object.assign(new Memory('test'), backup) });
  const hello: Hello = {
    highestTerm: welcome?.term ?? 0,
    termProof: welcome?.termProof ?? '',
    clusterId: 'test',
    observed: [{ task, state: 'TASK_STATE_RUNNING' }],
    proofs: [{ task, proof }],
  };
  const back = agentFixture.openSession(coordinator.client(), agent.token);
  back.send(agentFixture.helloMessage(hello));
  await vi.waitFor(() => expect(back.received[0]?.welcome).toBeTruthy());
  expect(coordinator.leases.paused()).toContain(`node-1 has ${jobId}, which is unknown to the store`);
  expect(conditionsOf('node-1')).toEqual([]);
  const waiting = await submit({}, 'waits');
  await vi.waitFor(async () => expect((await coordinator.api.getJob(waiting)).pending?.kind).toBe('paused'));
  await coordinator.api.advanceStore();
  coordinator.clock.nowMs += 60_000;
  expect(coordinator.leases.paused()).toBeNull();
});

const stray = { jobId: 'job_zzzzzzzzzzzz', attempt: 1, nodeRank: 0 };

test.each<[string, Hello, RegExp]>([
  ['a term of a million', { highestTerm: 1_000_000 }, /term 1000000/],
  [
    'a job that nobody knows',
    { observed: [{ task: stray, state: 'TASK_STATE_RUNNING' }] },
    /job_zzzzzzzzzzzz/,
  ],
])('an agent that makes up %s gets no new work, and the cluster goes on', async (_, hello, claim) => {
  await connected('node-1');
  const liar = await connected('node-2', hello);
  expect(coordinator.leases.paused()).toBeNull();
  expect(conditionsOf('node-2')).toMatchObject([
    { kind: 'unproven_claims', action: 'drain_node', message: expect.stringMatching(claim) },
  ]);
  await submit({ gpus: 1 });
  const second = await submit({ gpus: 1 }, 'second');
  await vi.waitFor(async () => {
    const { state, pending } = await coordinator.api.getJob(second);
    expect([state, pending?.message]).toEqual(['queued', expect.stringMatching(/node-2|drained/)]);
  });

  // A status lists the node's own conditions; only its next Hello removes the doubt that the coordinator has added.
  liar.send({ status: { conditions: [], inventory: agentFixture.inventory } });
  liar.send({ heartbeat: { seq: 1 } });
  await vi.waitFor(() => expect(liar.received.at(-1)?.heartbeatAck).toBeTruthy());
  expect(conditionsOf('node-2')).toHaveLength(1);
  const honest = agentFixture.openSession(coordinator.client(), liar.token);
  honest.send(agentFixture.helloMessage());
  await vi.waitFor(() => expect(honest.received[0]?.welcome).toBeTruthy());
  expect(conditionsOf('node-2')).toEqual([]);
});

test('a silent node is fenced while another one is in doubt', async () => {
  const silent = await connected('node-1');
  await submit({ gpus: 1 });
  const { task } = await assigned(silent);
  silent.send({ prepared: { task, master: { addr: '127.0.0.1', port: 1 } } });
  await vi.waitFor(() => expect(silent.received.at(-1)?.start).toBeTruthy());
  await connected('node-2', { highestTerm: 1_000_000 });
  silent.cancel();
  for (let tick = 0; tick < 12; tick += 1) {
    coordinator.clock.nowMs += 1_000;
    coordinator.agents.admit({ name: nodeNameOf('node-2'), instanceId: 'i', bootId: 'b', origin: null });
    await Promise.all(coordinator.leases.run());
  }
  const fenced = [...coordinator.memory.events.values()].filter(({ kind }) => kind === 'node.fenced');
  expect(fenced).toMatchObject([{ subject: 'node-1' }]);
});

test("an attempt of another node's job that never was does not end the one that runs, when the store is advanced", async () => {
  const owner = await connected('node-1');
  const jobId = await submit({ gpus: 1 });
  const { task } = await assigned(owner);
  owner.send({ prepared: { task, master: { addr: '127.0.0.1', port: 1 } } });
  owner.send({ report: { task, state: 'TASK_STATE_RUNNING' } });
  await vi.waitFor(() => expect(coordinator.state.jobs.get(jobId)?.state.kind).toBe('running'));
  const lie = { task: { jobId, attempt: 4_000_000_000, nodeRank: 0 }, state: 'TASK_STATE_RUNNING' } as const;
  const liar = await connected('node-2', { observed: [lie] });
  expect(conditionsOf('node-2')[0]?.message).toContain('attempt 4000000000');
  await coordinator.api.advanceStore();
  expect(coordinator.state.jobs.get(jobId)).toMatchObject({ lastAttempt: 1, state: { kind: 'running' } });
  // Its connection was ended, so that its next Hello reports again what it knows.
  await vi.waitFor(() => expect(coordinator.agents.isOnline(nodeNameOf('node-2'))).toBe(false));
  liar.cancel();
});
