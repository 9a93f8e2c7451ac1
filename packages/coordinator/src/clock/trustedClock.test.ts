import { afterEach, beforeEach, expect, test } from 'vitest';
import { hashToken } from '../auth/tokens.ts';
import { addCredential, startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import { nodeNameOf, someMs } from '../modelFixture.ts';
import { Memory } from '../store/memory/memoryStore.ts';
import { anEvent } from '../store/storeFixture.ts';
import { SettableMachine } from './machineFixture.ts';

const dayMs = 86_400_000;

let memory: Memory;
let machine: SettableMachine;
let coordinator: TestCoordinator;
beforeEach(() => {
  memory = new Memory('test');
  machine = new SettableMachine();
});
afterEach(() => coordinator.close());

async function start(): Promise<void> {
  coordinator = await startTestCoordinator({ memory, machineClock: machine.port, clock: machine });
  await coordinator.reconcile();
}

async function pass(ms: number): Promise<void> {
  machine.nowMs += ms;
  await coordinator.reconcile();
}

/** Another run `offMs` later, in the same boot unless the machine is told otherwise. */
async function restart(offMs: number): Promise<void> {
  await coordinator.close();
  machine.nowMs += offMs;
  await start();
}

function reboot(): void {
  machine.bootId = `${machine.bootId}+`;
  machine.bootedAtMs = machine.nowMs;
}

const trustedMs = () => coordinator.trustedClock.wallMs();
const clockEvents = () =>
  [...memory.events.values()]
    .filter(({ kind }) => kind.startsWith('clock.'))
    .map(({ kind, data }) => ({ kind, ...(data as object) }));

test('a step of a running coordinator is noticed and reported once, and so is its end', async () => {
  await start();
  machine.wallOffsetMs = dayMs;
  await pass(1_000);
  await pass(1_000);
  expect(trustedMs()).toBe(someMs + machine.nowMs);
  expect(clockEvents()).toEqual([{ kind: 'clock.stepped', byMs: dayMs }]);
  expect((await coordinator.api.getCluster()).clockProblem).toMatch(
    /^clock_stepped: .* is 1d ahead of .* muster clock accept$/,
  );
  expect(await coordinator.api.getClock()).toMatchObject({ steppedSinceMs: someMs + 2_000, basis: 'first' });

  machine.wallOffsetMs = 0;
  await pass(8_000);
  expect(clockEvents().slice(1)).toEqual([
    { kind: 'clock.settled', by: 'agreement', setByMs: 0, forMs: 9_000 },
  ]);
  expect((await coordinator.api.getCluster()).clockProblem).toBe('');
});

test.each([100 * dayMs, -400 * dayMs, 60_000])(
  'a start in the same boot with a clock that is off by %i ms goes on by BOOTTIME',
  async (offByMs) => {
    await start();
    machine.wallOffsetMs = offByMs;
    await restart(7_200_000);
    expect(trustedMs()).toBe(someMs + machine.nowMs);
    expect(clockEvents()).toEqual([{ kind: 'clock.stepped', byMs: offByMs }]);
    // Known already, so it is not reported again.
    await restart(5_000);
    expect(clockEvents()).toHaveLength(1);
  },
);

test('three weeks off are believed on the word of a synchronised kernel', async () => {
  machine.isSynchronised = true;
  await start();
  await coordinator.close();
  machine.nowMs += 21 * dayMs;
  reboot();
  await start();
  expect(trustedMs()).toBe(someMs + machine.nowMs);
  expect(clockEvents()).toEqual([{ kind: 'clock.settled', by: 'kernel', setByMs: 21 * dayMs, forMs: 0 }]);
});

test('a gap that no one confirms lasts until an admin accepts the clock', async () => {
  await start();
  await expect(coordinator.api.acceptClock()).rejects.toThrow('has not been stepped');
  await coordinator.close();
  machine.nowMs += 3 * dayMs;
  reboot();
  await start();
  expect(trustedMs()).toBe(someMs + 1_000);
  expect(await coordinator.api.acceptClock()).toMatchObject({
    steppedSinceMs: null,
    basis: 'confirmed',
    trustedWallMs: someMs + machine.nowMs,
  });
  expect(clockEvents().at(-1)).toMatchObject({ kind: 'clock.settled', by: 'admin', setByMs: 3 * dayMs });
});

test('agents that stayed up confirm how long the coordinator was away', async () => {
  await start();
  const note = (name: string, bootId: string) =>
    coordinator.trustedClock.noteAgent(nodeNameOf(name), bootId, 500_000 + machine.nowMs);
  for (const name of ['node-1', 'node-2', 'node-3']) note(name, `boot of ${name}`);
  await coordinator.close();
  machine.nowMs += 3 * dayMs;
  reboot();
  await start();
  expect(coordinator.trustedClock.isCertain()).toBe(false);
  // It was rebooted as well, and knows nothing.
  note('node-3', 'another boot');
  await pass(1_000);
  expect(coordinator.trustedClock.isCertain()).toBe(false);
  note('node-1', 'boot of node-1');
  await pass(1_000);
  expect(trustedMs()).toBe(someMs + machine.nowMs);
  expect(clockEvents().at(-1)).toMatchObject({ kind: 'clock.settled', by: 'agents' });
});

test('one agent whose time jumps confirms no step that the others did not see', async () => {
  await start();
  const note = (name: string, aheadMs = 0) =>
    coordinator.trustedClock.noteAgent(nodeNameOf(name), name, machine.nowMs + aheadMs);
  for (const name of ['node-1', 'node-2', 'node-3']) note(name);
  machine.wallOffsetMs = dayMs;
  for (const [name, aheadMs] of [
    ['node-1', dayMs],
    ['node-2', 0],
    ['node-3', 0],
  ] as const)
    note(name, aheadMs);
  await pass(1_000);
  expect(coordinator.trustedClock.isCertain()).toBe(false);
});

test('time in which the machine slept has passed', async () => {
  await start();
  // The monotonic clock stood still.
  machine.bootedAtMs -= 5 * 3_600_000;
  machine.wallOffsetMs += 5 * 3_600_000;
  await pass(1_000);
  expect(trustedMs()).toBe(machine.wallMs());
  expect(clockEvents()).toEqual([]);
});

test('a store of an earlier version, which knows no clock, is as late as its newest event', async () => {
  memory.events.set(1, { ...anEvent(1, 'cluster', 1), timeMs: someMs });
  machine.wallOffsetMs = 400 * dayMs;
  await start();
  expect(trustedMs()).toBeLessThan(someMs + 60_000);
  expect(coordinator.trustedClock.isCertain()).toBe(false);
});

test('while a step is in doubt, credentials of agents do not expire and tokens of users do by the later clock', async () => {
  addCredential(memory, {
    id: 'agent:node-1:a',
    kind: 'agent',
    subject: 'node-1',
    secretHash: hashToken('agent-secret'),
    expiresAtMs: someMs + 7 * dayMs,
  });
  await start();
  const { token } = await userToken(30 * dayMs);
  machine.wallOffsetMs = 100 * dayMs;
  await pass(1_000);
  const { gate } = coordinator;
  expect(gate.identify(hashToken('agent-secret'), null)).toMatchObject({ kind: 'agent' });
  expect(gate.identify(hashToken(token), null)).toBeNull();
  expect(gate.expiryOf(hashToken(token))?.message).toContain('has expired');
  expect(memory.credentials.size).toBe(3);
  // One that is issued meanwhile is valid for as long as it says.
  const { token: later } = await userToken(dayMs);
  expect(gate.identify(hashToken(later), null)).toMatchObject({ kind: 'user' });

  machine.wallOffsetMs = 0;
  await pass(1_000);
  expect(gate.identify(hashToken(token), null)).toMatchObject({ kind: 'user' });
});

async function userToken(lifetimeMs: number) {
  const { api } = coordinator;
  if (!coordinator.state.people.users.has('ada'))
    await api.addUser({ name: 'ada', role: 'user', projects: [] });
  return api.createUserToken({ user: 'ada', label: 'x', projects: [], verbs: [], lifetimeMs });
}

/** A job that no node can take, with how long it has waited. */
async function submitWaiting() {
  const specJson = JSON.stringify({ command: 'true', resources: { gpus: 1 } });
  const { jobIds } = await coordinator.api.submit({ specJson, requestId: 'waits' });
  const [id] = jobIds;
  return async () => {
    const [queued] = (await coordinator.api.getJob(id ?? '')).ledger.filter(({ kind }) => kind === 'queued');
    return queued?.gpuSeconds ?? 0;
  };
}

test.each([100 * dayMs, -100 * dayMs])(
  'a wait is as long as before when an admin has the clock set by %i ms',
  async (byMs) => {
    await start();
    const waitedSeconds = await submitWaiting();
    await pass(20_000);
    machine.wallOffsetMs = byMs;
    await pass(30_000);
    await coordinator.api.acceptClock();
    expect(trustedMs()).toBe(someMs + machine.nowMs + byMs);
    expect(await waitedSeconds()).toBe(50);
    await pass(10_000);
    expect(await waitedSeconds()).toBe(60);
  },
);

test('a gap between two boots that an admin confirms is a part of the wait', async () => {
  machine.isSynchronised = true;
  await start();
  machine.isSynchronised = false;
  const waitedSeconds = await submitWaiting();
  await pass(20_000);
  await coordinator.close();
  machine.nowMs += 3 * dayMs;
  reboot();
  await start();
  await pass(10_000);
  await coordinator.api.acceptClock();
  expect(await waitedSeconds()).toBe(3 * 86_400 + 30);
});
