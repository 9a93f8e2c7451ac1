import { EventEmitter } from 'node:events';
import { connect, type Socket } from 'node:net';
import { parseAddress } from '@muster/common/address';
import { silentLogger } from '@muster/common/log';
import { expect, onTestFinished, test, vi } from 'vitest';
import { startTestCoordinator } from '../coordinatorFixture.ts';
import { type ConnectionLimits, Connections, connectionLimits } from './connections.ts';

const limits: ConnectionLimits = {
  firstCallMs: 10_000,
  unauthenticatedPerAddressMax: 3,
  unauthenticatedMax: 5,
  agentMax: 3,
  connectionsMax: 8,
};

class FakeConnection extends EventEmitter {
  static ports = 1_000;
  readonly remoteAddress: string;
  readonly remotePort: number = FakeConnection.ports++;
  isOpen = true;

  constructor(remoteAddress: string) {
    super();
    this.remoteAddress = remoteAddress;
  }

  get peer(): string {
    return `${this.remoteAddress}:${this.remotePort}`;
  }

  destroy(): void {
    if (!this.isOpen) return;
    this.isOpen = false;
    this.emit('close');
  }
}

function aGate() {
  const clock = { nowMs: 0 };
  const lines: Readonly<Record<string, unknown>>[] = [];
  const log = {
    ...silentLogger,
    warn: (fields: Readonly<Record<string, unknown>>) => void lines.push(fields),
  };
  const gate = new Connections({ limits, monotonicMs: () => clock.nowMs, log });
  const open = (address: string) => {
    const connection = new FakeConnection(address);
    gate.opened(connection);
    return connection;
  };
  return { gate, clock, lines, open };
}

test('one agent has few connections: its oldest is closed for its newest, and nobody else notices', () => {
  const { gate, open } = aGate();
  const other = open('192.0.2.1');
  gate.authenticated(other.peer, 'agent:other');
  const admin = open('192.0.2.1');
  gate.authenticated(admin.peer);
  const own = [1, 2, 3].map(() => open('192.0.2.1'));
  for (const each of own) {
    gate.authenticated(each.peer, 'agent:one');
    // Every call of the agent authenticates again.
    gate.authenticated(each.peer, 'agent:one');
  }
  own[1]?.destroy();
  const another = [open('192.0.2.1'), open('192.0.2.1')];
  for (const each of another) gate.authenticated(each.peer, 'agent:one');
  expect([...own, ...another, other, admin].map(({ isOpen }) => isOpen)).toEqual([
    false,
    false,
    true,
    true,
    true,
    true,
    true,
  ]);
  expect(gate.closed.too_many_of_one_agent).toBe(1);
  expect([gate.openCount, gate.unauthenticatedCount]).toEqual([5, 0]);
});

test('a connection that shows no token in time is closed; one that did stays', () => {
  const { gate, clock, open } = aGate();
  const pending = open('192.0.2.1');
  const agent = open('192.0.2.1');
  gate.authenticated(agent.peer);
  clock.nowMs = limits.firstCallMs - 1;
  gate.sweep();
  expect(pending.isOpen).toBe(true);
  clock.nowMs += 1;
  gate.sweep();
  expect([pending.isOpen, agent.isOpen]).toEqual([false, true]);
  expect([gate.openCount, gate.unauthenticatedCount]).toEqual([1, 0]);
});

test('the newest connection without a token takes the room of the oldest one of its address', () => {
  const { gate, open } = aGate();
  const connections = [open('192.0.2.1'), open('192.0.2.1'), open('192.0.2.1'), open('192.0.2.1')];
  expect(connections.map(({ isOpen }) => isOpen)).toEqual([false, true, true, true]);
  expect(gate.closed.too_many_unauthenticated).toBe(1);
});

test('connections without a token from many addresses leave room for each other', () => {
  const { gate, open } = aGate();
  const connections = Array.from({ length: 50 }, (_, index) => open(`192.0.2.${index}`));
  expect(connections.filter(({ isOpen }) => isOpen)).toHaveLength(limits.unauthenticatedMax);
  expect(connections.at(-1)?.isOpen).toBe(true);
  expect(gate.openCount).toBe(limits.unauthenticatedMax);
});

test('known connections are never closed, and when they fill everything the next one is refused', () => {
  const { gate, open } = aGate();
  const known = Array.from({ length: limits.connectionsMax }, (_, index) => {
    const connection = open(`192.0.2.${index}`);
    gate.authenticated(connection.peer);
    return connection;
  });
  expect(open('192.0.2.99').isOpen).toBe(false);
  expect(known.every(({ isOpen }) => isOpen)).toBe(true);
  known[0]?.destroy();
  expect(open('192.0.2.99').isOpen).toBe(true);
});

test('a port that is used again belongs to the new connection', () => {
  const { gate } = aGate();
  const first = new FakeConnection('192.0.2.1');
  const second = Object.assign(new FakeConnection('192.0.2.1'), { remotePort: first.remotePort });
  gate.opened(first);
  gate.opened(second);
  first.destroy();
  expect(gate.unauthenticatedCount).toBe(1);
});

test('what is closed is logged with its number, at most one line in ten seconds for each reason', () => {
  const { gate, clock, lines, open } = aGate();
  for (let second = 0; second < 60; second += 1) {
    for (let each = 0; each < 100; each += 1) open('192.0.2.7');
    clock.nowMs += 1_000;
    gate.sweep();
  }
  expect(lines.length).toBeLessThanOrEqual(12);
  const logged = lines.reduce((sum, { connections }) => sum + Number(connections), 0);
  expect(logged).toBeGreaterThan(5_000);
  expect(lines[0]).toMatchObject({ reason: 'too_many_unauthenticated', address: '192.0.2.7' });
});

test('limits follow what the process may have open', () => {
  for (const descriptors of [1, 64, 300, 65_536, Number.MAX_SAFE_INTEGER]) {
    const { unauthenticatedPerAddressMax, unauthenticatedMax, connectionsMax } =
      connectionLimits(descriptors);
    expect(unauthenticatedPerAddressMax).toBeLessThanOrEqual(unauthenticatedMax);
    expect(unauthenticatedMax).toBeLessThan(connectionsMax);
  }
});

test('a crowd of silent connections keeps nobody out', async () => {
  const coordinator = await startTestCoordinator();
  const address = parseAddress(coordinator.address);
  if (address === null) throw new Error(`${coordinator.address} is no address`);
  const crowd: Socket[] = [];
  onTestFinished(() => {
    for (const socket of crowd) socket.destroy();
  });
  let [opened, closed] = [0, 0];
  for (let each = 0; each < 1_000; each += 1) {
    const socket = connect(address);
    socket.on('error', () => {});
    socket.on('connect', () => {
      opened += 1;
    });
    socket.on('close', () => {
      closed += 1;
    });
    crowd.push(socket.resume());
  }
  await vi.waitFor(() => expect(opened).toBe(1_000));
  await vi.waitFor(() => expect(closed).toBeGreaterThan(700));
  expect(await coordinator.api.listNodes()).toEqual([]);
});
