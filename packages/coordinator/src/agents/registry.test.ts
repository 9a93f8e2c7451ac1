import type { CoordinatorMessage } from '@muster/common/gen/muster/v1/CoordinatorMessage';
import { expect, test } from 'vitest';
import { heartbeatIntervalMs, TestClock } from '../coordinatorFixture.ts';
import { aJob, anAgent, anAttempt, anExit, aTask, jobIdOf, nodeNameOf } from '../modelFixture.ts';
import { AgentRegistry } from './registry.ts';
import { AgentSession } from './session.ts';

const node = nodeNameOf('node-1');
const silenceMs = 3 * heartbeatIntervalMs + 1;

function aRegistry() {
  const clock = new TestClock();
  return { clock, registry: new AgentRegistry(clock, heartbeatIntervalMs) };
}

function aSession(name = 'node-1', instanceId = 'a') {
  const sent: string[] = [];
  const stream = {
    write: (message: CoordinatorMessage) => void sent.push(Object.keys(message).join()),
    end: () => void sent.push('end'),
  };
  const identity = { caller: anAgent(name), instanceId, bootId: 'boot' };
  return { session: new AgentSession(identity, stream, { grant: () => 6_000, proofOf: () => '' }), sent };
}

test('the newest connection of an agent takes over and the older one is ended', () => {
  const { registry } = aRegistry();
  const [older, newer] = [aSession(), aSession()];
  registry.add(older.session);
  registry.admit({ name: node, instanceId: 'a', bootId: 'boot', origin: null });
  registry.add(newer.session);
  expect(older.sent).toEqual(['end']);
  expect(registry.isCurrent(older.session)).toBe(false);
  expect(registry.remove(older.session), 'its end is not the end of the newer one').toBe(false);
  expect(registry.isOnline(node)).toBe(true);
  expect(registry.remove(newer.session)).toBe(true);
  expect(registry.isOnline(node)).toBe(false);
});

test('from the Hello on, the newer connection has the word; another machine that is let in takes it later', () => {
  const { registry, clock } = aRegistry();
  const { session } = aSession();
  registry.add(session);
  expect(registry.isCurrent(session)).toBe(true);
  registry.admit({ name: node, instanceId: 'a', bootId: 'boot', origin: null });
  expect(registry.isCurrent(session)).toBe(false);
  expect(registry.isOnline(node), 'while its Hello is being stored').toBe(true);
  const { session: other } = aSession('node-2');
  registry.add(other);
  clock.nowMs += silenceMs;
  registry.admit({ name: nodeNameOf('node-2'), instanceId: 'b', bootId: 'boot-b', origin: null });
  expect(registry.isCurrent(other)).toBe(true);
});

test('only a node that answers is informed that a condition is dealt with', () => {
  const { registry, clock } = aRegistry();
  const { session, sent } = aSession();
  registry.add(session);
  const place = { kind: 'xid_79', gpuUuid: null };
  expect(registry.clearCondition(node, place)).toBe(true);
  clock.nowMs += silenceMs;
  expect(registry.clearCondition(node, place)).toBe(false);
  expect(registry.clearCondition(nodeNameOf('node-9'), place)).toBe(false);
  expect(sent).toEqual(['clearCondition']);
});

test('another machine under the same name is refused while the first one answers, and let in when it does not', () => {
  const { registry, clock } = aRegistry();
  registry.add(aSession().session);
  expect(() => registry.admit({ name: node, instanceId: 'b', bootId: 'boot-b', origin: null })).toThrow(
    /node-1 is connected already.*token of its own/,
  );
  clock.nowMs += silenceMs;
  registry.admit({ name: node, instanceId: 'b', bootId: 'boot-b', origin: null });
});

test('silence is named once, ends the connection, and is named again after a return', () => {
  const { registry, clock } = aRegistry();
  const first = aSession();
  registry.add(first.session);
  clock.nowMs += silenceMs - 1;
  expect(registry.takeNewlySilent()).toEqual([]);
  clock.nowMs += 1;
  expect(registry.takeNewlySilent()).toEqual([node]);
  expect(first.sent).toEqual(['end']);
  clock.nowMs += silenceMs;
  expect(registry.takeNewlySilent()).toEqual([]);
  registry.add(aSession().session);
  clock.nowMs += silenceMs;
  expect(registry.takeNewlySilent()).toEqual([node]);
});

test('a heartbeat keeps a node online', () => {
  const { registry, clock } = aRegistry();
  const { session } = aSession();
  registry.add(session);
  clock.nowMs += silenceMs - 1;
  registry.contacted(session);
  clock.nowMs += silenceMs - 1;
  expect(registry.takeNewlySilent()).toEqual([]);
  expect([...registry.online()]).toEqual([node]);
  expect(registry.silentForMs(node)).toBe(silenceMs - 1);
});

test('a node of an earlier coordinator gets the usual time to dial in, offline and of unknown silence', () => {
  const { registry, clock } = aRegistry();
  registry.expect(node);
  expect(registry.isOnline(node)).toBe(false);
  expect(registry.silentForMs(node)).toBeNull();
  clock.nowMs += silenceMs - 1;
  expect(registry.takeNewlySilent()).toEqual([]);
  expect(registry.isSilent(node)).toBe(false);
  clock.nowMs += 1;
  expect(registry.takeNewlySilent()).toEqual([node]);
  expect(registry.isSilent(node)).toBe(true);
  registry.add(aSession().session);
  expect(registry.isSilent(node)).toBe(false);
});

test('the silence of a node is not noticed while its return is being stored', () => {
  const { registry, clock } = aRegistry();
  registry.expect(node);
  clock.nowMs += silenceMs;
  registry.admit({ name: node, instanceId: 'a', bootId: 'boot', origin: null });
  expect(registry.takeNewlySilent()).toEqual([]);
  // It never came in after all.
  clock.nowMs += silenceMs;
  expect(registry.takeNewlySilent()).toEqual([node]);
});

test('a commit is sent to the nodes it concerns only, the end of an attempt before the next one', () => {
  const { registry } = aRegistry();
  const [first, second, third] = [aSession('node-1'), aSession('node-2'), aSession('node-3')];
  for (const { session } of [first, second, third]) registry.add(session);
  const tasks = [aTask(0, { node: nodeNameOf('node-1') }), aTask(1, { node: nodeNameOf('node-2') })];
  const attempt = anAttempt(1, { tasks });
  const starting = aJob(1, { lastAttempt: 1, state: { kind: 'starting', attempt } });
  registry.committed({
    jobs: [starting],
    attempts: [{ jobId: jobIdOf(1), attempt }],
    events: [],
    endedCredentials: [],
    removedNodes: [],
    changedUsers: [],
    changedAlerts: [],
  });
  expect([first.sent, second.sent, third.sent]).toEqual([['prepare'], ['prepare'], []]);

  const over = anAttempt(1, {
    state: 'ended',
    tasks: tasks.map((task) => ({ ...task, state: 'ended', exit: anExit() }) as const),
  });
  const next = anAttempt(2, { tasks: [aTask(0, { node: nodeNameOf('node-2') })] });
  registry.committed({
    jobs: [aJob(1, { lastAttempt: 2, state: { kind: 'starting', attempt: next } })],
    attempts: [over, next].map((each) => ({ jobId: jobIdOf(1), attempt: each })),
    events: [],
    endedCredentials: [],
    removedNodes: [],
    changedUsers: [],
    changedAlerts: [],
  });
  expect(first.sent).toEqual(['prepare', 'forget']);
  expect(second.sent).toEqual(['prepare', 'forget', 'prepare']);
  expect(third.sent).toEqual([]);
});

test('each silence has a number of its own, and what was proven in one says nothing about the next', () => {
  const { registry, clock } = aRegistry();
  registry.add(aSession().session);
  expect(registry.silenceOf(node)).toBeNull();
  clock.nowMs += silenceMs;
  registry.takeNewlySilent();
  const first = registry.silenceOf(node);
  expect(first).toMatchObject({ sinceMs: clock.nowMs, isDead: false });
  registry.admit({ name: node, instanceId: 'a', bootId: 'boot', origin: null });
  expect(registry.silenceOf(node)).toBeNull();
  clock.nowMs += silenceMs;
  registry.takeNewlySilent();
  registry.noteDead(node, first?.number ?? 0);
  const second = registry.silenceOf(node);
  expect(second?.isDead).toBe(false);
  registry.noteDead(node, second?.number ?? 0);
  expect(registry.silenceOf(node)?.isDead).toBe(true);
});

test('what comes late on the connection of a silent node is answered by nobody', () => {
  const { registry, clock } = aRegistry();
  const { session } = aSession();
  registry.add(session);
  clock.nowMs += silenceMs;
  registry.takeNewlySilent();
  expect(registry.isCurrent(session)).toBe(false);
  registry.contacted(session);
  expect(registry.isSilent(node)).toBe(true);
  expect(registry.lastContactMs(node)).toBe(clock.nowMs - silenceMs);
});

test('the time in which this process did not run is nobody’s silence, and takes nobody into the future', () => {
  const { registry, clock } = aRegistry();
  const other = nodeNameOf('node-2');
  registry.add(aSession().session);
  registry.expect(other);
  clock.nowMs += 60_000;
  registry.add(aSession('node-3').session);
  registry.forgive(59_000);
  expect(registry.takeNewlySilent()).toEqual([]);
  expect(registry.silentForMs(node)).toBe(1_000);
  expect(registry.lastContactMs(other)).toBe(clock.nowMs - 1_000);
  expect(registry.silentForMs(nodeNameOf('node-3'))).toBe(0);
  expect([...registry.contactedNodes()]).toEqual([node, 'node-3']);
});
