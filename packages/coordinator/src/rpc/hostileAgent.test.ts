/** Messages of one agent, however many and whatever they contain, affect no other node. Over real connections. */
import type { ClientDuplexStream } from '@grpc/grpc-js';
import type { AgentMessage } from '@muster/common/gen/muster/v1/AgentMessage';
import type { CoordinatorMessage__Output } from '@muster/common/gen/muster/v1/CoordinatorMessage';
import type { JobId, TaskRef } from '@muster/common/ids';
import { agentHubService } from '@muster/common/wire/service';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { seededChance } from '../../../../test/support/chance.ts';
import { trialsOf } from '../../../../test/support/trials.ts';
import { startTestCoordinator, type TestCoordinator, withToken } from '../coordinatorFixture.ts';
import { nodeNameOf } from '../modelFixture.ts';
import { publishHeldBackStatus } from '../reconcilers/heldBackStatus.ts';
import * as agentFixture from './agentFixture.ts';
import { type Hostility, hostileKinds, hostileMessage } from './hostileMessageFixture.ts';

let coordinator: TestCoordinator;
beforeEach(async () => {
  coordinator = await startTestCoordinator();
});
afterEach(() => coordinator.close());

const connected = (name: string, hello: object = {}) =>
  agentFixture.connected(coordinator, coordinator.client(), name, hello);
type Agent = Awaited<ReturnType<typeof connected>>;

let requests = 0;
/** A job that runs on this node, which is the only one free. */
async function runsOn(agent: Agent): Promise<TaskRef> {
  requests += 1;
  const specJson = JSON.stringify({ name: 'train', command: ['true'], resources: { gpus: 1 } });
  const { jobIds } = await coordinator.api.submit({ specJson, requestId: `r${requests}` });
  const jobId = jobIds[0] as JobId;
  const task = { jobId, attempt: 1, nodeRank: 0 };
  await vi.waitFor(() => expect(agent.received.at(-1)?.prepare?.task).toEqual(task));
  agent.send({ prepared: { task, master: { addr: '127.0.0.1', port: 1 } } });
  agent.send({ report: { task, state: 'TASK_STATE_RUNNING' } });
  await vi.waitFor(() => expect(coordinator.state.jobs.get(jobId)?.state.kind).toBe('running'));
  return task;
}

const often = { interval: 2 };

let lastSeq = 0;
/** It asks, and is answered that its task may run. */
async function keepsLease({ send, received }: Agent, task: TaskRef): Promise<void> {
  lastSeq += 1;
  const seq = lastSeq;
  send({ heartbeat: { seq, observed: [{ task, state: 'TASK_STATE_RUNNING' }] } });
  await vi.waitFor(
    () => expect(received.findLast(({ heartbeatAck }) => heartbeatAck)?.heartbeatAck?.seq).toBe(seq),
    often,
  );
  expect(received.findLast(({ heartbeatAck }) => heartbeatAck)?.heartbeatAck?.verdicts[0]?.verdict).toBe(
    'VERDICT_RUN',
  );
}

const eventsOf = (kind: string) =>
  [...coordinator.memory.events.values()].filter((event) => event.kind === kind);

/** Of everything that is kept for good. */
function storedBytes(): number {
  const { events, nodes, jobs, attempts, meta } = coordinator.memory;
  const parts = [events, nodes, jobs, meta].map((map) => [...map.values()]);
  const tries = [...attempts.values()].map((each) => [...each.values()]);
  return JSON.stringify([parts, tries]).length;
}

const stray = (number: number) => ({
  task: { jobId: `job_${String(number).padStart(12, '0')}`, attempt: 1, nodeRank: 0 },
});

test('an agent that does not read its answers is not read either, and nobody waits for it', async () => {
  const victim = await connected('node-1');
  const task = await runsOn(victim);
  const token = await agentFixture.joined(coordinator, coordinator.client(), 'node-2');
  const { path, requestSerialize, responseDeserialize } = agentHubService.Session;
  const call: ClientDuplexStream<AgentMessage, CoordinatorMessage__Output> = coordinator
    .client()
    .makeBidiStreamRequest(path, requestSerialize, responseDeserialize, withToken(token));
  call.on('error', () => {});
  const answered = vi.spyOn(coordinator.agents, 'contacted');
  call.write(agentFixture.helloMessage());
  const observed = Array.from({ length: 200 }, (_, index) => stray(index));
  let sent = 0;
  let isHeldBack = false;
  while (!isHeldBack && sent < 5_000) {
    sent += 1;
    if (call.write({ heartbeat: { seq: sent, observed } })) continue;
    const drained = { yet: false };
    call.once('drain', () => {
      drained.yet = true;
    });
    // Others are answered again and again, and there is still no room for another message of this one.
    for (let round = 0; round < 10 && !drained.yet; round += 1) await keepsLease(victim, task);
    isHeldBack = !drained.yet;
  }
  expect(isHeldBack).toBe(true);
  expect(answered.mock.calls.length, 'of which few were taken').toBeLessThan(1_000);
  await keepsLease(victim, task);
  call.cancel();
});

test('one that says more than any node has to say has its session ended; it may come back once that is earned', async () => {
  const victim = await connected('node-1');
  const task = await runsOn(victim);
  const flood = await connected('node-2');
  const observed = Array.from({ length: 1_000 }, (_, index) => stray(index));
  for (let seq = 0; seq < 1_000 && flood.errors.length === 0; seq += 1) {
    flood.send({ heartbeat: { seq, observed } });
    if (seq % 10 === 0) await keepsLease(victim, task);
  }
  await vi.waitFor(() =>
    expect(flood.errors[0]?.details).toMatch(/node-2 sends more than \d+ fields per second/),
  );
  const again = agentFixture.openSession(coordinator.client(), flood.token);
  again.send(agentFixture.helloMessage());
  await vi.waitFor(() => expect(again.errors[0]?.details).toMatch(/sends more than/));
  coordinator.clock.nowMs += 10_000;
  const later = agentFixture.openSession(coordinator.client(), flood.token);
  later.send(agentFixture.helloMessage());
  await vi.waitFor(() => expect(later.received[0]?.welcome).toBeTruthy());
  await keepsLease(victim, task);
});

test('hardware that changes without end: the newest counts, and few events are made of it', async () => {
  const agent = await connected('node-2');
  const bytesBefore = storedBytes();
  const status = (model: string) => ({
    status: {
      inventory: { ...agentFixture.inventory, gpus: [{ uuid: 'GPU-1', model: model.padEnd(4_000, 'z') }] },
    },
  });
  for (let change = 0; change < 500; change += 1) agent.send(status(`m${change}`));
  const modelOf = () => coordinator.state.nodes.get(nodeNameOf('node-2'))?.inventory.gpus[0]?.model;
  await vi.waitFor(() => expect(modelOf()).toMatch(/^m499z/));
  expect(modelOf(), 'and is cut').toHaveLength(128);
  const soFar = eventsOf('node.changed').length;
  expect(soFar).toBeLessThan(16);
  await Promise.all(publishHeldBackStatus(coordinator.pacer, coordinator.loop));
  expect(eventsOf('node.changed')).toHaveLength(soFar);
  coordinator.clock.nowMs += 60_000;
  await Promise.all(publishHeldBackStatus(coordinator.pacer, coordinator.loop));
  expect(eventsOf('node.changed')).toHaveLength(soFar + 1);
  expect(eventsOf('node.changed').at(-1)?.data).toMatchObject({
    gpus: [{ model: expect.stringMatching(/^m499z/) }],
  });
  await Promise.all(publishHeldBackStatus(coordinator.pacer, coordinator.loop));
  expect(eventsOf('node.changed'), 'then all is received').toHaveLength(soFar + 1);
  expect(storedBytes() - bytesBefore).toBeLessThan(100_000);
});

test('words of 3.9 MB about a failure end the session, and nothing of them is stored', async () => {
  const agent = await connected('node-1');
  const task = await runsOn(agent);
  const bytesBefore = storedBytes();
  const failure = { message: 'x'.repeat(3_900_000), kind: 'cuda_oom', source: 'output' };
  agent.send({ report: { task, state: 'TASK_STATE_ENDED', exit: { exitCode: 1, failure } } });
  await vi.waitFor(() =>
    expect(agent.errors[0]?.details).toMatch(/AgentMessage of \d+ bytes: 1048576 at most/),
  );
  expect(storedBytes() - bytesBefore).toBeLessThan(10_000);
});

/** How often each kind of message is sent in a story. */
const rounds = trialsOf(6, 1);

/** Messages at the largest values of every field, and one beyond, in stories that are a function of their seed. */
test.each(Array.from({ length: trialsOf(30) }, (_, index) => index + 1))(
  'no message that can be made up hurts another node or the coordinator: story %i',
  async (seed) => {
    const victim = await connected('node-1');
    const task = await runsOn(victim);
    const first = await connected('node-2', { instanceId: 'hostile' });
    const own = await runsOn(first);
    const chance = seededChance(seed).fraction;
    const tasks = [
      own,
      own,
      own,
      task,
      { ...task, attempt: 4_000_000_000 },
      { ...own, attempt: 2, nodeRank: 7 },
    ];
    const victimBefore = coordinator.state.jobs.get(task.jobId);
    const nodeBefore = coordinator.state.nodes.get(nodeNameOf('node-1'));
    const bytesBefore = storedBytes();
    let hostile: Pick<Agent, 'send' | 'errors' | 'received'> = first;
    for (const kind of Array.from({ length: rounds }, () => hostileKinds(chance)).flat()) {
      const how: Hostility = {
        chance,
        tasks,
        beyond: chance() < 0.2 ? 1.1 : 1,
        share: chance() < 0.2 ? 1 : 0.02,
      };
      hostile.send(hostileMessage(kind, how));
      // Its allowance grows with this time, so it may send again. What its message caused is done once the victim has its answer.
      coordinator.clock.nowMs += 2_000;
      await keepsLease(victim, task);
      if (hostile.errors.length === 0 && chance() > 0.2) continue;
      hostile = agentFixture.openSession(coordinator.client(), first.token);
      hostile.send(agentFixture.helloMessage({ instanceId: 'hostile' }));
      const { received, errors } = hostile;
      await vi.waitFor(() => expect(received.length + errors.length).toBeGreaterThan(0), often);
    }
    expect(coordinator.fatal).toEqual([]);
    expect(Object.fromEntries(coordinator.contained.failures)).toEqual({});
    expect(coordinator.state.jobs.get(task.jobId)).toBe(victimBefore);
    expect(coordinator.state.nodes.get(nodeNameOf('node-1'))).toBe(nodeBefore);
    expect(coordinator.leases.paused()).toBeNull();
    const { jobs } = await coordinator.api.listJobs();
    expect(jobs).toHaveLength(2);
    await coordinator.api.listNodes();
    // A node row, a job row with 64 checkpoints, and a few bounded events each: far less than was sent.
    expect(storedBytes() - bytesBefore).toBeLessThan(2_000_000);
  },
);
