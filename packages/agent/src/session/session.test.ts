import { status } from '@grpc/grpc-js';
import { musterVersion } from '@muster/common/version';
import { protocolVersion, protocolVersionMin } from '@muster/common/wire/protocol';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { exited } from '../drivers/fakeDriver.ts';
import { aKey } from '../tasks/managerFixture.ts';
import type { SessionParts } from './session.ts';
import { assigned, connected, dial, FakeStream, running, start, wireTask } from './sessionFixture.ts';

test('Hello comes first and says everything', async () => {
  const { first } = await connected();
  await first.gets('hello');
  expect(first.received).toMatchObject([
    {
      hello: {
        protocolVersion,
        agentVersion: musterVersion,
        instanceId: 'instance-1',
        bootId: 'boot-1',
        sentBoottimeMs: expect.any(Number),
        inventory: { cpus: 8, gpus: [{ uuid: 'GPU-1', model: 'H100', simulated: false }] },
        conditions: [{ kind: 'xid_79', gpuUuid: 'GPU-1', action: 'drain_gpu', task: null }],
        observed: [],
      },
    },
  ]);
});

describe('a machine that is going to be switched off', () => {
  test('says how much time there is, in its status and in every Hello', async () => {
    let nowMs = 0;
    const { first, session, hub, leaving } = await connected({ monotonicMs: () => nowMs });
    expect(await first.gets('hello')).not.toHaveProperty('leavingInMs');
    first.welcome();
    await session.sendStatus();
    expect(await first.gets('status')).not.toHaveProperty('leavingInMs');
    void leaving.leave();
    await vi.waitFor(() => expect(first.received.at(-1)?.status?.leavingInMs).toBe(90_000));
    nowMs = 90_000;
    first.end();
    const second = await hub.session(2);
    expect(await second.gets('hello')).toMatchObject({ leavingInMs: 0 });
  });
});

test('each welcome is reported, because what was reported before may have been lost; a refused one is not', async () => {
  let welcomes = 0;
  const { first, hub } = await connected({ onWelcome: () => (welcomes += 1) });
  await first.gets('hello');
  expect(welcomes).toBe(0);
  first.welcome();
  await vi.waitFor(() => expect(welcomes).toBe(1));
  first.end();
  const second = await hub.session(2);
  await second.gets('hello');
  second.welcome({ term: 1 });
  const third = await hub.session(3);
  await third.gets('hello');
  expect(welcomes).toBe(1);
  third.welcome();
  await vi.waitFor(() => expect(welcomes).toBe(2));
});

test('a task goes its way through the messages', async () => {
  const all = await connected();
  await running(all);
  const { node, first, agent } = all;
  first.send({ stop: { task: wireTask, graceMs: 1_500, signal: 'SIGTERM' } });
  await vi.waitFor(() => expect(agent.knows()).toEqual(['ended SIGTERM']));
  expect(node.process.calls).toContain(`stop ${aKey} SIGTERM 1500`);
  const ended = { state: 'TASK_STATE_ENDED', exit: { signal: 'SIGTERM' } };
  await vi.waitFor(() => expect(first.received.at(-1)?.report).toMatchObject(ended));
  first.send({ forget: { task: wireTask } });
  await vi.waitFor(() => expect(agent.knows()).toEqual([]));
});

test('Welcome carries orders of every kind', async () => {
  const { first, agent, node } = await connected();
  await first.gets('hello');
  first.welcome({ desired: [{ ...assigned, stop: { task: wireTask, graceMs: 1, signal: 'SIGTERM' } }] });
  await vi.waitFor(() => expect(agent.knows()).toEqual(['ended lost']));
  expect(node.process.launches).toEqual([]);
});

test('messages about tasks of an unknown form are ignored, and the session goes on', async () => {
  const { first } = await connected();
  await first.gets('hello');
  const strange = { ...assigned, task: { jobId: 'task-of-tomorrow', attempt: 1, nodeRank: 0 } };
  first.welcome({ desired: [strange, { ...assigned, task: null }] });
  first.send({ prepare: strange });
  first.send({ prepare: { ...assigned, task: null } });
  first.send({ start: { ...start, task: null } });
  first.send({ stop: { task: null } });
  first.send({ forget: {} });
  first.send({ heartbeatAck: { seq: 1, verdicts: [{ task: null, verdict: 'VERDICT_FORGET' }] } });
  first.send({ prepare: assigned });
  await first.gets('prepared');
});

describe('a connection that breaks', () => {
  test('is dialled again, and everything is reported again', async () => {
    const all = await connected();
    await running(all);
    all.first.end();
    const second = await all.hub.session(2);
    expect(await second.gets('hello')).toMatchObject({
      observed: [{ task: wireTask, state: 'TASK_STATE_RUNNING', startedAtMs: 1_000_000 }],
    });
    second.welcome({ desired: [{ ...assigned, start }] });
    await second.gets('report');
    all.node.process.end(aKey, exited(3));
    await vi.waitFor(() => expect(second.received.at(-1)?.report?.exit?.exitCode).toBe(3));
    expect(all.node.process.launches).toHaveLength(1);
  });

  test('by a coordinator that is away for a while: what ended meanwhile is delivered', async () => {
    const all = await connected();
    await running(all);
    all.hub.crash();
    all.node.process.end(aKey, exited(9));
    await vi.waitFor(() => expect(all.agent.knows()).toEqual(['ended 9']));
    await all.hub.serve();
    const second = await all.hub.session(2);
    expect(await second.gets('hello')).toMatchObject({
      observed: [{ state: 'TASK_STATE_ENDED', exit: { exitCode: 9 } }],
    });
  });

  test.each([status.UNAVAILABLE, status.INTERNAL, status.RESOURCE_EXHAUSTED, status.DEADLINE_EXCEEDED])(
    'with status %i is dialled again',
    async (code) => {
      const { hub, first, refusals } = await connected();
      await first.gets('hello');
      first.refuse(code);
      await hub.session(2);
      expect(refusals).toEqual([]);
    },
  );

  test('is not dialled again after close', async () => {
    const { hub, first, session } = await connected();
    await first.gets('hello');
    first.end();
    session.close();
    hub.sessions.length = 0;
    const other = hub.client().Session();
    other.on('error', () => {});
    // The next to connect is somebody else: had the agent dialled, it would have been sooner.
    await hub.session(1);
    expect(hub.sessions).toHaveLength(1);
    other.cancel();
  });
});

test('another agent with its name is for a person to end', async () => {
  const { first, refusals, hub } = await connected();
  await first.gets('hello');
  first.refuse(status.ALREADY_EXISTS);
  await vi.waitFor(() =>
    expect(refusals).toMatchObject([{ code: 'already_exists', message: 'you may not' }]),
  );
  expect(hub.sessions).toHaveLength(1);
});

describe('a refusal', () => {
  test.each([status.UNAUTHENTICATED, status.PERMISSION_DENIED, status.FAILED_PRECONDITION])(
    'with status %i is waited out with all tasks kept, and told once',
    async (code) => {
      const all = await connected();
      await running(all);
      const { first, refusals, hub, errors } = all;
      first.refuse(code);
      const second = await hub.session(2);
      expect((await second.gets('hello')).observed).toHaveLength(1);
      second.refuse(code);
      const third = await hub.session(3);
      expect((await third.gets('hello')).observed).toHaveLength(1);
      expect(errors).toEqual([
        expect.stringContaining('refuses this agent; its tasks run until their leases expire'),
      ]);
      third.welcome();
      await third.gets('heartbeat');
      expect(refusals).toEqual([]);
    },
  );

  test('by a coordinator of the version before is answered in its own protocol', async () => {
    const { first, hub, errors } = await connected();
    expect((await first.gets('hello')).protocolVersion).toBe(protocolVersion);
    first.refuse(status.FAILED_PRECONDITION);
    const second = await hub.session(2);
    expect((await second.gets('hello')).protocolVersion).toBe(protocolVersionMin);
    second.welcome();
    await second.gets('heartbeat');
    expect(errors).toEqual([]);
    // It may be upgraded by the next time.
    second.end();
    expect((await (await hub.session(3)).gets('hello')).protocolVersion).toBe(protocolVersion);
  });
});

describe('heartbeats', () => {
  test('are numbered, carry the clock and all tasks, and go on while they are answered', async () => {
    const all = await connected();
    await running(all);
    const { first, hub } = all;
    // Three of them without an answer end the connection: not even a busy machine takes so long to answer one.
    first.welcome({ heartbeatIntervalMs: 250, desired: [{ ...assigned, start }] });
    // Numbers continue: the first was sent with the first Welcome.
    for (let seq = 2; seq <= 6; seq++) {
      // Some may follow before it is looked at.
      await vi.waitFor(() => expect(first.received.map(({ heartbeat }) => heartbeat?.seq)).toContain(seq));
      first.send({ heartbeatAck: { seq } });
    }
    expect(await first.gets('heartbeat')).toMatchObject({
      sentBoottimeMs: 500,
      observed: [{ task: wireTask, state: 'TASK_STATE_RUNNING' }],
    });
    expect(hub.sessions).toHaveLength(1);
  });

  test('that three times in a row are not answered end the connection', async () => {
    const { first, hub } = await connected();
    await first.gets('hello');
    first.welcome({ heartbeatIntervalMs: 10 });
    const second = await hub.session(2);
    await second.gets('hello');
    expect(first.received.filter(({ heartbeat }) => heartbeat != null)).toHaveLength(3);
  });

  test('bring the word to forget a task', async () => {
    const all = await connected();
    await running(all);
    const verdicts = [{ task: wireTask, verdict: 'VERDICT_FORGET' }] as const;
    all.first.send({ heartbeatAck: { seq: 1, verdicts: [...verdicts] } });
    await vi.waitFor(() => expect(all.agent.knows()).toEqual([]));
    expect(all.node.process.isRunning(aKey)).toBe(false);
  });
});

test('what an old connection still says is ignored', async () => {
  const streams: FakeStream[] = [];
  const { agent } = await dial(() => {
    streams.push(new FakeStream());
    return streams.at(-1) as unknown as ReturnType<SessionParts['openStream']>;
  });
  await vi.waitFor(() => expect(streams).toHaveLength(1));
  streams[0]?.emit('end');
  await vi.waitFor(() => expect(streams).toHaveLength(2));
  streams[0]?.emit('data', { prepare: assigned });
  streams[0]?.emit('error', new Error('too late'));
  streams[1]?.emit('data', { heartbeatAck: { seq: 1, verdicts: [] } });
  expect(agent.knows()).toEqual([]);
  expect(streams[1]?.written).toHaveLength(1);
  expect(streams).toHaveLength(2);
});

test('a coordinator that takes the call and never answers is given up', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  let calls = 0;
  const { session } = await dial(() => {
    calls += 1;
    return new FakeStream() as unknown as ReturnType<SessionParts['openStream']>;
  });
  await vi.advanceTimersByTimeAsync(14_000);
  expect(calls).toBe(1);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(calls).toBe(2);
  session.close();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(calls).toBe(2);
});

test('a change of the node is reported whole, and a condition can be ended by a person', async () => {
  const { first, session, cleared } = await connected();
  await first.gets('hello');
  first.welcome();
  await session.sendStatus();
  expect(await first.gets('status')).toMatchObject({
    inventory: { cpus: 8 },
    conditions: [{ kind: 'xid_79' }],
  });
  first.send({ clearCondition: { kind: 'disk_full' } });
  first.send({ clearCondition: { kind: 'xid_79', gpuUuid: 'GPU-1' } });
  await vi.waitFor(() =>
    expect(cleared).toEqual([
      { kind: 'disk_full', gpuUuid: null },
      { kind: 'xid_79', gpuUuid: 'GPU-1' },
    ]),
  );
});

test('the distance of the clocks is reported, of answers to the newest heartbeat only', async () => {
  const { first, skews } = await connected();
  await first.gets('hello');
  first.welcome();
  const { seq } = await first.gets('heartbeat');
  first.send({ heartbeatAck: { seq: seq - 1, wallMs: 5 } });
  first.send({ heartbeatAck: { seq } });
  first.send({ heartbeatAck: { seq, wallMs: 997_000 } });
  await vi.waitFor(() => expect(skews).toEqual([3_000]));
});
