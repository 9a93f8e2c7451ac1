/** What the agents of a gang and the coordinator say to each other, over real connections. */
import type { AgentMessage } from '@muster/common/gen/muster/v1/AgentMessage';
import type { JobId } from '@muster/common/ids';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import {
  heartbeatIntervalMs,
  leaseSettings,
  startTestCoordinator,
  type TestCoordinator,
} from '../coordinatorFixture.ts';
import * as agentFixture from './agentFixture.ts';

type Agent = Awaited<ReturnType<typeof agentFixture.connected>>;

let coordinator: TestCoordinator;
beforeEach(async () => {
  coordinator = await startTestCoordinator();
});
afterEach(() => coordinator.close());

const connected = (name: string, fields: object = {}) =>
  agentFixture.connected(coordinator, coordinator.client(), name, fields);

/** Two nodes, and a job that has been given both. */
async function aGang(spec: object = {}) {
  const agents = [await connected('node-1'), await connected('node-2')];
  const text = { name: 'train', command: ['true'], resources: { nodes: 2 }, ...spec };
  const { jobIds } = await coordinator.api.submit({ specJson: JSON.stringify(text), requestId: 'r' });
  const jobId = jobIds[0] as JobId;
  for (const { received } of agents) await vi.waitFor(() => expect(received.at(-1)?.prepare).toBeTruthy());
  const taskOf = (nodeRank: number, attempt = 1) => ({ jobId, attempt, nodeRank });
  // The scheduler decides which node is which rank.
  const byRank = [0, 1].map((rank) => {
    const agent = agents.find(({ received }) => received.at(-1)?.prepare?.task?.nodeRank === rank);
    if (agent === undefined) throw new Error(`nobody has rank ${rank}`);
    return agent;
  }) as [Agent, Agent];
  return { jobId, taskOf, byRank, job: () => coordinator.api.getJob(jobId) };
}

const prepared = (task: object, nodeRank: number): AgentMessage => ({
  prepared: {
    task,
    master: nodeRank === 0 ? { addr: '127.0.0.1', port: 29_500 } : null,
    endpoints: [
      { address: `10.0.0.${nodeRank + 1}`, network: '10.0.0.0/16', interface: 'eth0', rdma: false },
    ],
    testPort: 29_500 + nodeRank,
  },
});

async function running() {
  const gang = await aGang();
  const { byRank, taskOf } = gang;
  byRank.forEach(({ send }, rank) => send(prepared(taskOf(rank), rank)));
  for (const [rank, { received, send }] of byRank.entries()) {
    await vi.waitFor(() => expect(received.at(-1)?.check).toBeTruthy());
    send({
      checked: {
        task: taskOf(rank),
        findings: { round: 1, paths: [{ nodeRank: 1 - rank, roundTripUs: 80 }] },
      },
    });
  }
  for (const [rank, { received, send }] of byRank.entries()) {
    await vi.waitFor(() => expect(received.at(-1)?.start).toBeTruthy());
    send({ report: { task: taskOf(rank), state: 'TASK_STATE_RUNNING' } });
  }
  await vi.waitFor(async () => expect((await gang.job()).state).toBe('running'));
  return gang;
}

test('a gang goes from prepared nodes over checked paths to its release', async () => {
  const { byRank, taskOf, job } = await aGang({ lease: '10s' });
  const [first, second] = byRank;
  first.send(prepared(taskOf(0), 0));
  second.send(prepared(taskOf(1), 1));
  const addresses = ['10.0.0.1', '10.0.0.2'];
  await vi.waitFor(() =>
    expect(first.received.at(-1)?.check).toMatchObject({
      task: taskOf(0),
      check: {
        round: 1,
        addresses,
        preflight: null,
        peers: [{ nodeRank: 1, address: '10.0.0.2', port: 29_501 }],
      },
    }),
  );
  await vi.waitFor(() =>
    expect(second.received.at(-1)?.check?.check?.peers).toMatchObject([
      { nodeRank: 0, address: '10.0.0.1', port: 29_500 },
    ]),
  );
  first.send({
    checked: { task: taskOf(0), findings: { round: 1, paths: [{ nodeRank: 1, roundTripUs: 80 }] } },
  });
  await vi.waitFor(async () =>
    expect((await job()).attempts[0]?.tasks[0]).toMatchObject({ state: 'checked' }),
  );
  expect((await job()).attempts[0]?.tasks[1]).toMatchObject({ state: 'prepared', address: '10.0.0.2' });
  second.send({
    checked: { task: taskOf(1), findings: { round: 1, paths: [{ nodeRank: 0, roundTripUs: 90 }] } },
  });
  for (const [rank, { received }] of byRank.entries()) {
    const start = {
      task: taskOf(rank),
      masterAddr: '10.0.0.1',
      masterPort: 29_500,
      addresses,
      leaseMs: 10_000,
    };
    await vi.waitFor(() => expect(received.at(-1)?.start).toMatchObject(start));
  }
  expect(eventsOf('attempt.checked')).toMatchObject([
    { round: 1, paths: [{ roundTripUs: 80 }, { roundTripUs: 90 }] },
  ]);
});

test('a node that cannot reach another is named, and shown as excluded', async () => {
  const { byRank, taskOf, job } = await aGang();
  byRank.forEach(({ send }, rank) => send(prepared(taskOf(rank), rank)));
  for (const [rank, { received, send }] of byRank.entries()) {
    await vi.waitFor(() => expect(received.some(({ check }) => check != null)).toBe(true));
    send({
      checked: {
        task: taskOf(rank),
        findings: { round: 1, paths: [{ nodeRank: 1 - rank, error: 'timed out' }] },
      },
    });
  }
  await vi.waitFor(async () => expect((await job()).excludedNodes).toHaveLength(2));
  const { attempts, excludedNodes } = await job();
  const message = /^node-\d does not reach node-\d at 10\.0\.0\.\d: timed out \(2 of 2 paths failed\)$/;
  expect(attempts[0]?.cause).toMatchObject({ kind: 'rendezvous', message: expect.stringMatching(message) });
  expect(excludedNodes.map(({ node }) => node).sort()).toEqual(['node-1', 'node-2']);
});

test('what a node says of the paths of another’s task changes nothing', async () => {
  const { byRank, taskOf, job } = await aGang();
  byRank.forEach(({ send }, rank) => send(prepared(taskOf(rank), rank)));
  const [first, second] = byRank;
  await vi.waitFor(() => expect(second.received.at(-1)?.check).toBeTruthy());
  second.send({ checked: { task: taskOf(0), findings: { round: 1, paths: [{ nodeRank: 1 }] } } });
  second.send({ heartbeat: { seq: 1, sentBoottimeMs: 0, observed: [] } });
  await vi.waitFor(() => expect(second.received.some(({ heartbeatAck }) => heartbeatAck != null)).toBe(true));
  expect((await job()).attempts[0]?.tasks.map(({ state }) => state)).toEqual(['prepared', 'prepared']);
  expect(first.received.some(({ start }) => start != null)).toBe(false);
});

test('heartbeats are answered with leases: of what runs and of what is being stopped', async () => {
  const { byRank, taskOf, jobId } = await running();
  const [{ send, received }] = byRank;
  const task = taskOf(0);
  const beat = async (seq: number) => {
    send({ heartbeat: { seq, sentBoottimeMs: 0, observed: [{ task, state: 'TASK_STATE_RUNNING' }] } });
    const answer = () => received.find(({ heartbeatAck }) => heartbeatAck?.seq === seq)?.heartbeatAck;
    await vi.waitFor(() => expect(answer()).toBeTruthy());
    return answer()?.verdicts;
  };
  const { leaseMs } = leaseSettings;
  expect(await beat(1)).toMatchObject([{ task, verdict: 'VERDICT_RUN', leaseMs }]);
  await coordinator.api.stopJobs([jobId], '');
  expect(await beat(2)).toMatchObject([{ task, verdict: 'VERDICT_STOP', leaseMs }]);
});

test('the first failure is the cause, by the clocks of the nodes, in whatever order the reports come', async () => {
  const { byRank, taskOf, job } = await running();
  const [first, second] = byRank;
  // Two nodes that were booted at different times: 1,000 s and 5,000 s ago.
  const bootedMs = [1_000_000, 5_000_000];
  for (const [rank, { send, received }] of byRank.entries()) {
    send({ heartbeat: { seq: 1, sentBoottimeMs: bootedMs[rank] ?? 0, observed: [] } });
    await vi.waitFor(() => expect(received.some(({ heartbeatAck }) => heartbeatAck != null)).toBe(true));
  }
  const end = (rank: number, message: string, afterMs: number) => ({
    task: taskOf(rank),
    state: 'TASK_STATE_ENDED' as const,
    exit: {
      exitCode: 1,
      failure: {
        source: 'error_file',
        message,
        rank: rank + 4,
        atBoottimeMs: (bootedMs[rank] ?? 0) + afterMs,
      },
    },
  });
  first.send({ report: end(0, 'NCCL watchdog', 900) });
  await vi.waitFor(async () => expect((await job()).state).toBe('stopping'));
  expect(second.received.at(-1)?.stop).toBeTruthy();
  second.send({ report: end(1, 'ValueError: bad batch', 100) });
  await vi.waitFor(async () => expect((await job()).state).toBe('failed'));
  expect((await job()).cause).toMatchObject({
    nodeRank: 1,
    message: expect.stringMatching(/^rank 5 on node-\d exited with code 1: ValueError: bad batch$/),
  });
});

test('a task that is frozen is shown as such, and freeze and thaw are on record once each', async () => {
  const { byRank, taskOf, job } = await running();
  const [{ send }] = byRank;
  const report = (frozen: boolean) => ({ task: taskOf(0), state: 'TASK_STATE_RUNNING' as const, frozen });
  const shown = async () => (await job()).attempts[0]?.tasks.map(({ frozen }) => frozen);
  send({ heartbeat: { seq: 1, sentBoottimeMs: 0, observed: [report(true)] } });
  await vi.waitFor(async () => expect(await shown()).toEqual([true, false]));
  send({ report: report(true) });
  send({ report: report(false) });
  await vi.waitFor(async () => expect(await shown()).toEqual([false, false]));
  expect((await job()).state).toBe('running');
  expect(eventsOf('task.frozen')).toMatchObject([{ attempt: 1, nodeRank: 0 }]);
  expect(eventsOf('task.thawed')).toHaveLength(1);
});

test('what a node is busy with is shown until it is prepared', async () => {
  const { byRank, taskOf, job } = await aGang();
  const [{ send }] = byRank;
  const observed = [{ task: taskOf(0), state: 'TASK_STATE_ASSIGNED' as const, doing: 'pulls image train:2' }];
  send({ heartbeat: { seq: 1, sentBoottimeMs: 0, observed } });
  await vi.waitFor(async () =>
    expect((await job()).attempts[0]?.tasks[0]?.doing).toBe('pulls image train:2'),
  );
});

test('a node that was away has its paths measured, though the job does not ask for it', async () => {
  const away = await connected('node-3');
  away.cancel();
  for (let tick = 0; tick < 5; tick += 1) {
    coordinator.clock.nowMs += heartbeatIntervalMs;
    await Promise.all(coordinator.leases.run());
  }
  expect(eventsOf('node.silent')).toHaveLength(1);
  const back = agentFixture.openSession(coordinator.client(), away.token);
  back.send(agentFixture.helloMessage());
  await vi.waitFor(() => expect(back.received).not.toHaveLength(0));
  await connected('node-4');
  const text = { name: 'train', command: ['true'], resources: { nodes: 2 } };
  const { jobIds } = await coordinator.api.submit({ specJson: JSON.stringify(text), requestId: 'r' });
  const { state } = coordinator.state.jobs.get(jobIds[0] as JobId) ?? {};
  expect(state).toMatchObject({ kind: 'starting', attempt: { preflight: true } });
});

/** Data of the events of a kind, oldest first. */
function eventsOf(kind: string) {
  const stored = [...coordinator.memory.events.values()];
  return stored.filter((event) => event.kind === kind).map(({ data }) => data);
}
