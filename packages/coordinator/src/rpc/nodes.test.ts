import type { Client } from '@grpc/grpc-js';
import type { Condition } from '@muster/common/conditions';
import type { MusterError } from '@muster/common/errors';
import type { ClearConditionRequest__Output } from '@muster/common/gen/muster/v1/ClearConditionRequest';
import type { TaskReport } from '@muster/common/gen/muster/v1/TaskReport';
import { conditionToWire } from '@muster/common/wire/codec';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { OrphanTasks } from '../agents/orphans.ts';
import { countingBytes, startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import { CommitNotifier } from '../events/notices.ts';
import { aCondition, nodeNameOf } from '../modelFixture.ts';
import { PathHistory } from '../paths/pathHistory.ts';
import { MemoryStore } from '../store/memory/memoryStore.ts';
import { noUpkeep } from '../upkeep/upkeepFixture.ts';
import { connected, helloMessage, inventory, openSession } from './agentFixture.ts';
import { nodeCalls } from './nodes.ts';

let coordinator: TestCoordinator;
let client: Client;
beforeEach(async () => {
  coordinator = await startTestCoordinator();
  client = coordinator.client();
});
afterEach(() => coordinator.close());

const name = nodeNameOf('node-1');
const sick = aCondition('xid_48', {
  gpuUuid: 'GPU-a-0',
  severity: 'critical',
  action: 'drain_gpu',
  clears: 'by_hand',
});
const wire = (conditions: readonly Condition[]) => conditions.map(conditionToWire);

/** Kinds of all events about the node. */
function eventsOfNode(): readonly string[] {
  const events = [...coordinator.memory.events.values()];
  return events.filter(({ subject }) => subject === name).map(({ kind }) => kind);
}

async function connectedWith(...conditions: readonly Condition[]) {
  return connected(coordinator, client, name, { conditions: wire(conditions) });
}

async function pendingReason(spec: object) {
  const specJson = JSON.stringify({ name: 'train', command: ['true'], ...spec });
  const { jobIds } = await coordinator.api.submit({
    specJson,
    requestId: `r${coordinator.state.lastSubmitSeq}`,
  });
  return (await coordinator.api.getJob(jobIds[0] ?? '')).pending;
}

describe('a node', () => {
  test('shows its conditions, critical ones first, and what they keep from new work', async () => {
    const skew = aCondition('clock_skew');
    await connectedWith(skew, sick);
    expect(await coordinator.api.getNode(name)).toMatchObject({
      conditions: [sick, skew],
      drained: false,
      drainedGpuUuids: ['GPU-a-0'],
    });
    expect(await pendingReason({ resources: { gpus: 1 } })).toEqual({
      kind: 'drained',
      message: 'no node can take it; 1 of 1 GPU of node-1 is drained (xid_48)',
      remedy: '`muster node node-1` shows what is wrong there and what clears it',
    });
    expect(await pendingReason({})).toBeNull();
  });

  test('is as its last status says, and what waited for it starts', async () => {
    const { send, received } = await connectedWith(aCondition('disk_full', { action: 'drain_node' }));
    expect(await pendingReason({ resources: { gpus: 1 } })).toMatchObject({ kind: 'drained' });
    expect((await coordinator.api.getNode(name)).drained).toBe(true);
    send({ status: { inventory, conditions: [] } });
    await vi.waitFor(() => expect(received.at(-1)?.prepare?.gpuUuids).toEqual(['GPU-a-0']));
    expect(eventsOfNode()).toEqual(['node.joined', 'node.online', 'condition.raised', 'condition.cleared']);
  });

  test('that says the same again, by status or by Hello, is no event', async () => {
    const { token, send, cancel } = await connectedWith(sick);
    send({ status: { inventory, conditions: wire([{ ...sick, count: 9 }]) } });
    await vi.waitFor(() => expect(coordinator.state.nodes.get(name)?.conditions[0]?.count).toBe(9));
    expect(coordinator.memory.nodes.get(name)?.conditions[0]?.count).toBe(1);
    cancel();
    const again = openSession(client, token);
    again.send(helloMessage({ conditions: wire([{ ...sick, count: 10 }]) }));
    await vi.waitFor(() => expect(again.received).toHaveLength(1));
    expect(eventsOfNode()).toEqual(['node.joined', 'node.online', 'condition.raised', 'node.online']);
    expect(coordinator.memory.nodes.get(name)?.conditions[0]?.count).toBe(10);
  });

  test('keeps what runs on a GPU that vanishes, and gives it to nobody else', async () => {
    const { send, received } = await connectedWith();
    expect(await pendingReason({ resources: { gpus: 1 } })).toBeNull();
    await vi.waitFor(() => expect(received.at(-1)?.prepare).toBeTruthy());
    send({ status: { inventory: { ...inventory, gpus: [] }, conditions: [] } });
    await vi.waitFor(() => expect(eventsOfNode().at(-1)).toBe('node.changed'));
    expect(await coordinator.api.getNode(name)).toMatchObject({
      inventory: { gpus: [] },
      gpuUses: [{ uuid: 'GPU-a-0', attempt: 1 }],
    });
    send({ status: { inventory, conditions: [] } });
    await vi.waitFor(() => expect(coordinator.state.nodes.get(name)?.inventory.gpus).toHaveLength(1));
    expect(await pendingReason({ resources: { gpus: 1 } })).toMatchObject({ kind: 'no_gpus_free' });
  });

  test('whose status does not include its hardware has what it had', async () => {
    const { send } = await connectedWith(sick);
    send({ status: { conditions: [] } });
    await vi.waitFor(() => expect(eventsOfNode().at(-1)).toBe('condition.cleared'));
    expect((await coordinator.api.getNode(name)).inventory.gpus).toHaveLength(1);
  });

  test('is not what an older connection says late, once its agent has sent Hello on another', async () => {
    const older = await connectedWith(sick);
    const run = coordinator.loop.run.bind(coordinator.loop);
    const held: (() => void)[] = [];
    const spy = vi.spyOn(coordinator.loop, 'run').mockImplementation((by, command) => {
      return new Promise<void>((resolve) => void held.push(resolve)).then(() => run(by, command));
    });
    const newer = openSession(client, older.token);
    newer.send(helloMessage({ conditions: [] }));
    await vi.waitFor(() => expect(held).toHaveLength(1));
    const isReceived = vi.spyOn(coordinator.agents, 'isCurrent');
    older.send({ status: { inventory, conditions: wire([sick]) } });
    await vi.waitFor(() => expect(isReceived).toHaveBeenCalled());
    spy.mockRestore();
    for (const letGo of held) letGo();
    await vi.waitFor(() => expect(newer.received).toHaveLength(1));
    expect((await coordinator.api.getNode(name)).conditions).toEqual([]);
  });
});

describe('clearing a condition', () => {
  const place = { node: name, kind: sick.kind, gpuUuid: sick.gpuUuid };

  test('is sent to the agent, and answered with the node once that is without it', async () => {
    const { send, received } = await connectedWith(sick, aCondition('xid_48'));
    let isAnswered = false;
    const cleared = coordinator.api.clearCondition(place).finally(() => {
      isAnswered = true;
    });
    await vi.waitFor(() => {
      expect(received.at(-1)?.clearCondition).toMatchObject({ kind: 'xid_48', gpuUuid: 'GPU-a-0' });
    });
    // Something else of the node changes first.
    send({ status: { inventory, conditions: wire([sick]) } });
    await vi.waitFor(() => expect(eventsOfNode().at(-1)).toBe('condition.cleared'));
    expect(isAnswered).toBe(false);
    send({ status: { inventory, conditions: [] } });
    expect(await cleared).toMatchObject({ name, conditions: [], drainedGpuUuids: [] });
  });

  test.each([
    ['an unknown node', { ...place, node: 'node-9' }, /there is no node node-9; `muster nodes` lists them/],
    ['no node', { ...place, node: '../etc' }, /there is no node/],
    [
      'the same on another place',
      { ...place, gpuUuid: null },
      /node-1 has no condition xid_48; `muster node node-1` lists those it has/,
    ],
    ['another on that GPU', { ...place, kind: 'xid_79' }, /node-1 has no condition xid_79 of GPU-a-0/],
  ])('of %s is refused', async (_, request, message) => {
    await connectedWith(sick);
    const refused = coordinator.api.clearCondition(request);
    await expect(refused).rejects.toMatchObject({
      code: 'not_found',
      message: expect.stringMatching(message),
    });
  });

  test('of a silent node is refused: only its agent can', async () => {
    const { cancel } = await connectedWith(sick);
    cancel();
    await vi.waitFor(() => expect(coordinator.agents.isOnline(name)).toBe(false));
    await expect(coordinator.api.clearCondition(place)).rejects.toMatchObject({
      code: 'failed_precondition',
      message:
        'node-1 does not respond, and only its agent can clear xid_48 of GPU-a-0; try again once it is online',
    });
  });

  test.each([
    ['holds still', false, /^xid_48 of GPU-a-0 on node-1 still holds: xid_48 was seen$/],
    ['is of a node that has fallen silent meanwhile', true, /^node-1 does not respond/],
  ])('that %s: after a while the answer says so', async (_, falls, message) => {
    const { cancel } = await connectedWith(sick);
    const { state, loop, agents, leases, memory } = coordinator;
    const paths = await PathHistory.open(new MemoryStore(memory), state);
    const parts = {
      state,
      loop,
      agents,
      orphans: new OrphanTasks(state),
      leases,
      paths,
      random: countingBytes(),
      committed: new CommitNotifier(),
      clock: coordinator.trustedClock,
      upkeep: noUpkeep,
      clearWaitMs: 500,
    };
    const refused = refusalOf(nodeCalls(parts).ClearCondition, { ...place, gpuUuid: sick.gpuUuid ?? '' });
    if (falls) cancel();
    const { code, message: words } = await refused;
    expect(code).toBe('failed_precondition');
    expect(words).toMatch(message);
  });
});

/** Calls a handler without a network. */
async function refusalOf(
  { handle }: ReturnType<typeof nodeCalls>['ClearCondition'],
  request: ClearConditionRequest__Output,
): Promise<MusterError> {
  const caller = { kind: 'admin', id: 'admin', peer: null } as const;
  return handle(request, caller).then(
    () => Promise.reject(new Error('the call was not refused')),
    (error: unknown) => error as MusterError,
  );
}

describe('a node that is to be left', () => {
  test('says so, gets no work, and gets some again when a person takes it back', async () => {
    await connected(coordinator, client, name);
    const { api, clock } = coordinator;
    const drained = await api.drainNode(name, 'new fans', 60_000);
    const drain = { reason: 'new fans', sinceMs: clock.wallMs(), deadlineMs: clock.wallMs() + 60_000 };
    expect(drained).toMatchObject({ drain, drained: true });
    expect(await pendingReason({})).toMatchObject({ kind: expect.stringMatching(/drain/) });
    expect(await api.drainNode(name, '', null)).toMatchObject({ drain: { reason: '', deadlineMs: null } });
    expect(await api.undrainNode(name)).toMatchObject({ drain: null, drained: false });
    expect(await pendingReason({})).toBeNull();
    expect(eventsOfNode().filter((kind) => kind.includes('drain'))).toEqual([
      'node.drained',
      'node.drained',
      'node.undrained',
    ]);
  });

  test('is not left for a reason or a deadline beyond all bounds, and has to be there', async () => {
    await connected(coordinator, client, name);
    const { api } = coordinator;
    await expect(api.drainNode(name, 'x'.repeat(501), null)).rejects.toMatchObject({ code: 'invalid' });
    for (const deadlineMs of [-1, 7 * 86_400_000 + 1])
      await expect(api.drainNode(name, '', deadlineMs)).rejects.toMatchObject({ code: 'invalid' });
    expect(await api.drainNode(name, '', 7 * 86_400_000)).toMatchObject({ drained: true });
    await expect(api.drainNode('node-9', '', null)).rejects.toMatchObject({ code: 'not_found' });
    await expect(api.undrainNode('../..')).rejects.toMatchObject({ code: 'not_found' });
  });
});

describe('a task that the store does not know', () => {
  const task = { jobId: 'job_zzzzzzzzzzzz', attempt: 3, nodeRank: 0 };
  const running: TaskReport = { task, state: 'TASK_STATE_RUNNING', gpuUuids: ['GPU-a-0'], jobName: 'old' };

  test('holds its GPUs, is listed, and is killed at the word of a person alone', async () => {
    const { send, received } = await connected(coordinator, client, name, { observed: [running] });
    const orphan = { task, name: 'old', gpuUuids: ['GPU-a-0'], frozen: false };
    expect(await coordinator.api.getNode(name)).toMatchObject({
      orphans: [orphan],
      gpuUses: [{ uuid: 'GPU-a-0', jobId: task.jobId, attempt: 3 }],
    });
    // It was never proven, so the node is drained; its orphan says more to those who look.
    send({ heartbeat: { seq: 1, sentBoottimeMs: 0, observed: [{ ...running, frozen: true }] } });
    await vi.waitFor(() =>
      expect(received.at(-1)?.heartbeatAck?.verdicts).toMatchObject([{ verdict: 'VERDICT_UNKNOWN' }]),
    );
    expect((await coordinator.api.getNode(name)).orphans).toEqual([{ ...orphan, frozen: true }]);

    expect((await coordinator.api.endOrphans(name)).orphans).toHaveLength(1);
    await vi.waitFor(() => expect(received.at(-1)?.forget).toEqual({ task }));
    expect(eventsOfNode()).toContain('node.orphans_ended');
    send({ heartbeat: { seq: 2, sentBoottimeMs: 0, observed: [running] } });
    await vi.waitFor(() =>
      expect(received.at(-1)?.heartbeatAck?.verdicts).toMatchObject([{ verdict: 'VERDICT_FORGET' }]),
    );
    send({ heartbeat: { seq: 3, sentBoottimeMs: 0, observed: [] } });
    await vi.waitFor(async () =>
      expect(await coordinator.api.getNode(name)).toMatchObject({ orphans: [], gpuUses: [] }),
    );
  });

  test('keeps a job from its GPUs, which says so', async () => {
    // Accepted by a person, it keeps no new work from its node.
    const { token } = await connected(coordinator, client, name, { observed: [running] });
    await coordinator.api.advanceStore();
    coordinator.clock.nowMs += 1_000_000;
    await Promise.all(coordinator.leases.run());
    const session = openSession(client, token);
    session.send(helloMessage({ observed: [running] }));
    await vi.waitFor(() => expect(session.received[0]?.welcome).toBeTruthy());
    await vi.waitFor(async () =>
      expect(await pendingReason({ resources: { gpus: 1 } })).toEqual({
        kind: 'no_gpus_free',
        message: expect.stringContaining('1 GPU of node-1 held by tasks unknown to the store'),
        remedy: '`muster node end-orphans node-1` kills the tasks there that the store does not know',
      }),
    );
  });

  test('cannot be killed on a node that does not answer', async () => {
    const { cancel } = await connected(coordinator, client, name, { observed: [running] });
    cancel();
    await vi.waitFor(() => expect(coordinator.agents.isOnline(name)).toBe(false));
    await expect(coordinator.api.endOrphans(name)).rejects.toMatchObject({ code: 'failed_precondition' });
    expect((await coordinator.api.getNode(name)).orphans).toHaveLength(1);
  });
});

describe('draining a node', () => {
  test('names every job that it stops, one without GPUs too, and when', async () => {
    const { received } = await connectedWith();
    const specJson = JSON.stringify({ name: 'train', command: ['true'], stop_grace: '20s' });
    const [jobId] = (await coordinator.api.submit({ specJson, requestId: 'r' })).jobIds;
    await vi.waitFor(() => expect(received.at(-1)?.prepare).toBeTruthy());
    const nowMs = coordinator.clock.wallMs();
    const held = (fields: object) => [
      { task: { jobId, attempt: 1, nodeRank: 0 }, gpus: 0, stopping: false, ...fields },
    ];
    expect((await coordinator.api.drainNode(name, '', null)).tasks).toMatchObject(held({ stopAtMs: null }));
    const hour = await coordinator.api.drainNode(name, '', 3_600_000);
    expect(hour.tasks).toMatchObject(held({ stopAtMs: nowMs + 3_575_000 }));
    const now = await coordinator.api.drainNode(name, '', 0);
    expect(now.tasks).toMatchObject(held({ stopAtMs: nowMs - 25_000 }));
  });
});
