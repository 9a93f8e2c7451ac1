/**
 * A connection of an agent carries messages in both directions, in order, until it breaks; then each end finds out in its
 * own time, or, when a machine died, not at all. A partition holds messages back in one direction or both. A lossy network
 * also loses, repeats and reorders messages inside of the connection: more than TCP does, and the protocol claims to
 * bear it.
 */
import { Metadata, type ServiceError, status } from '@grpc/grpc-js';
import type { AgentMessage, AgentMessage__Output } from '@muster/common/gen/muster/v1/AgentMessage';
import type { CoordinatorMessage } from '@muster/common/gen/muster/v1/CoordinatorMessage';
import { taskRefFromWire } from '@muster/common/wire/codec';
import { agentHubService } from '@muster/common/wire/service';
import { simulated } from './coordinatorProcess.ts';
import { HeartbeatTimes } from './grants.ts';
import type { Machine } from './machine.ts';
import type { Direction, Network } from './network.ts';
import type { Life } from './timeline.ts';

type Listener = (value: unknown) => void;

/** Connecting into a partition is given up after this long. */
const connectTimeoutMs = 20_000;
/** A message that is overtaken comes at most this much later. */
const reorderMs = 3_000;

/** One end of a connection: the events that its owner listens for, and whether it may still send. */
class End {
  private readonly listeners = new Map<string, Listener[]>();
  /** Called by the network, or by its owner, when this is over. */
  closed = false;
  readonly writableNeedDrain = false;

  /** Nothing is held back here: what is on its way comes when the network brings it. */
  pause(): void {}

  resume(): void {}

  on(event: string, listener: Listener): this {
    this.listeners.set(event, [...(this.listeners.get(event) ?? []), listener]);
    return this;
  }

  emit(event: string, value?: unknown): void {
    for (const listener of this.listeners.get(event) ?? []) listener(value);
  }
}

interface Parcel {
  readonly event: 'open' | 'data' | 'end' | 'error' | 'cancelled';
  readonly value: unknown;
}

export class Connection {
  readonly machine: Machine;
  readonly agentEnd: End & { write(message: AgentMessage): boolean; cancel(): void; end(): void };
  private readonly network: Network;
  private readonly agent: Life;
  /** Of the agent's machine, from boot to power-off. */
  private readonly power: Life;
  private readonly coordinatorEnd = new End();
  private coordinator: Life | null = null;
  private readonly heartbeatTimes = new HeartbeatTimes();
  private readonly lastArrivalMs = { up: 0, down: 0 };
  private readonly held: Record<Direction, Parcel[]> = { up: [], down: [] };

  constructor(network: Network, machine: Machine, agent: Life) {
    this.network = network;
    this.machine = machine;
    this.agent = agent;
    this.power = machine.power;
    this.agentEnd = Object.assign(new End(), {
      write: (message: AgentMessage) => {
        const wire = agentHubService.Session.requestSerialize(message);
        this.heartbeatTimes.note(agentHubService.Session.requestDeserialize(wire), network.timeline.nowMs);
        return this.post('up', 'data', wire);
      },
      cancel: () => this.agentGone(),
      end: () => this.agentGone(),
    });
    // Without power, nothing is sent again that a partition swallowed.
    this.power.onEnd(() => void this.held.up.splice(0));
    // Killed, its kernel still tells the other side; without power, nothing does.
    agent.onEnd(() => (this.power.alive ? this.agentGone() : this.forget()));
    network.timeline.at(connectTimeoutMs, agent, () => {
      if (this.coordinator === null) this.fail(unavailable('no connection established'), 0);
    });
    this.send('up', { event: 'open', value: undefined }, true);
  }

  /** Reset in the middle: what is on its way arrives or does not, and each end learns of it in its own time. */
  cut(): void {
    const { random } = this.network;
    this.fail(unavailable('connection reset'), random.chance(0.7) ? 0 : random.between(100, 8_000));
    this.informCoordinator('cancelled', random.chance(0.7) ? 0 : random.between(100, 8_000));
  }

  coordinatorDied(): void {
    if (this.coordinator === null) {
      this.fail(unavailable('connection refused'), this.network.latencyMs());
      return;
    }
    this.coordinatorEnd.closed = true;
    this.post('down', 'error', unavailable('the coordinator is gone'));
  }

  /** A partition is over: what was held back arrives first, one after the other. */
  flush(): void {
    this.drain('up', this.network.latencyMs());
    this.drain('down', this.network.latencyMs());
  }

  private drain(direction: Direction, delayMs: number): void {
    const receiver = direction === 'up' ? this.receivingCoordinator() : this.agent;
    if (this.held[direction].length === 0 || receiver === null) return;
    this.network.timeline.at(delayMs, receiver, () => {
      if (this.network.isBlocked(this.machine, direction)) return;
      const parcel = this.held[direction].shift();
      if (parcel !== undefined) this.deliver(direction, parcel);
      this.drain(direction, 0);
    });
  }

  private agentGone(): void {
    if (this.agentEnd.closed) return;
    this.agentEnd.closed = true;
    this.post('up', 'cancelled', undefined);
  }

  private forget(): void {
    this.agentEnd.closed = true;
    this.network.connections.delete(this);
  }

  private fail(error: Error, delayMs: number): void {
    this.network.timeline.at(delayMs, this.agent, () =>
      this.deliverToAgent({ event: 'error', value: error }),
    );
  }

  private informCoordinator(event: 'cancelled', delayMs: number): void {
    const { coordinator } = this;
    if (coordinator === null) return;
    this.network.timeline.at(delayMs, coordinator, () =>
      this.deliverToCoordinator({ event, value: undefined }),
    );
  }

  private post(direction: Direction, event: Parcel['event'], value: unknown): boolean {
    const { network } = this;
    const sender = direction === 'up' ? this.agentEnd : this.coordinatorEnd;
    if (event === 'data' && sender.closed) return false;
    const { dropChance, repeatChance, reorderChance } = network.conditions;
    const parcel = { event, value };
    if (event !== 'data' || !network.lossy) {
      this.send(direction, parcel, true);
      return true;
    }
    if (!network.random.chance(dropChance))
      this.send(direction, parcel, !network.random.chance(reorderChance));
    if (network.random.chance(repeatChance)) this.send(direction, parcel, false);
    return true;
  }

  private send(direction: Direction, parcel: Parcel, inOrder: boolean): void {
    const { timeline } = this.network;
    let atMs =
      timeline.nowMs + this.network.latencyMs() + (inOrder ? 0 : this.network.random.between(0, reorderMs));
    if (inOrder) {
      atMs = Math.max(atMs, this.lastArrivalMs[direction]);
      this.lastArrivalMs[direction] = atMs;
    }
    const receiver = direction === 'up' ? this.receivingCoordinator() : this.agent;
    if (receiver === null) {
      this.fail(unavailable('nothing listens there'), atMs - timeline.nowMs);
      return;
    }
    timeline.at(atMs - timeline.nowMs, receiver, () => {
      const mustWait = this.held[direction].length > 0 || this.network.isBlocked(this.machine, direction);
      if (!mustWait) this.deliver(direction, parcel);
      else if (this.power.alive) this.held[direction].push(parcel);
    });
  }

  private deliver(direction: Direction, parcel: Parcel): void {
    if (direction === 'up') this.deliverToCoordinator(parcel);
    else this.deliverToAgent(parcel);
  }

  /** The coordinator this connection was made to; a new one knows nothing of it. */
  private receivingCoordinator(): Life | null {
    return this.coordinator ?? this.network.coordinator?.life ?? null;
  }

  private deliverToAgent({ event, value }: Parcel): void {
    const { agentEnd } = this;
    if (agentEnd.closed) return;
    this.network.trace(() => `${this.machine.name} ◄ ${event} ${describe(event, 'down', value)}`);
    if (event === 'data') {
      const message = agentHubService.Session.responseDeserialize(value as Buffer);
      this.network.grants.take(this.machine, message, this.heartbeatTimes.askedMs(message));
      agentEnd.emit('data', message);
      return;
    }
    this.forget();
    agentEnd.emit(event, value);
  }

  private deliverToCoordinator({ event, value }: Parcel): void {
    const { coordinatorEnd } = this;
    if (coordinatorEnd.closed) return;
    if (event === 'open') {
      this.accept();
      return;
    }
    this.network.trace(() => `${this.machine.name} ► ${event} ${describe(event, 'up', value)}`);
    if (event === 'data') {
      const message = agentHubService.Session.requestDeserialize(value as Buffer);
      this.notePrepared(message);
      this.noteLastCheckpoint(message);
      this.noteGpus(message);
      coordinatorEnd.emit('data', message);
      return;
    }
    coordinatorEnd.closed = true;
    this.network.connections.delete(this);
    coordinatorEnd.emit(event, value);
  }

  private accept(): void {
    const { coordinator } = this.network;
    if (coordinator === null) return;
    this.coordinator = coordinator.life;
    const { coordinatorEnd } = this;
    const call = Object.assign(coordinatorEnd, {
      metadata: identityOf(this.machine),
      write: (message: CoordinatorMessage) =>
        this.post('down', 'data', agentHubService.Session.responseSerialize(message)),
      end: () => this.closeFromCoordinator({ event: 'end', value: undefined }),
      destroy: (error: Error) => {
        this.closeFromCoordinator({ event: 'error', value: Object.assign(new Error(error.message), error) });
        coordinatorEnd.emit('error', error);
      },
    });
    coordinator.openSession(call);
  }

  private closeFromCoordinator({ event, value }: Parcel): void {
    if (this.coordinatorEnd.closed) return;
    this.coordinatorEnd.closed = true;
    this.post('down', event, value);
  }

  private notePrepared(message: AgentMessage__Output): void {
    const task = message.prepared == null ? null : taskRefFromWire(message.prepared.task);
    if (task !== null)
      this.network.history.add({ kind: 'reportedPrepared', machine: this.machine.name, task });
  }

  private noteGpus(message: AgentMessage__Output): void {
    const inventory = message.hello?.inventory ?? message.status?.inventory;
    if (inventory == null) return;
    const gpuUuids = inventory.gpus.map(({ uuid }) => uuid);
    this.network.history.add({ kind: 'gpusHeard', machine: this.machine.name, gpuUuids });
  }

  private noteLastCheckpoint({ checkpoint }: AgentMessage__Output): void {
    const task = checkpoint?.afterStop === true ? taskRefFromWire(checkpoint.task) : null;
    if (task !== null && checkpoint?.checkpoint?.verdict === 'verified')
      this.network.history.add({ kind: 'lastHeard', machine: this.machine.name, task });
  }
}

/** As the interceptor leaves it when the credential was right. */
function identityOf(machine: Machine): Metadata {
  const metadata = new Metadata();
  metadata.set(
    'muster-identity',
    JSON.stringify({ kind: 'agent', id: simulated.id, node: machine.name, peer: null, renewed: false }),
  );
  return metadata;
}

function unavailable(details: string): ServiceError {
  return Object.assign(new Error(details), { code: status.UNAVAILABLE, details, metadata: new Metadata() });
}

function describe(event: string, direction: Direction, value: unknown): string {
  if (event !== 'data') return value instanceof Error ? value.message : '';
  const { requestDeserialize, responseDeserialize } = agentHubService.Session;
  return JSON.stringify((direction === 'up' ? requestDeserialize : responseDeserialize)(value as Buffer));
}
