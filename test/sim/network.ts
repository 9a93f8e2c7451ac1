/** The network between agents and the coordinator: which of them can reach which now, how fast, and how well. */
import { Connection } from './connection.ts';
import type { CoordinatorProcess } from './coordinatorProcess.ts';
import { Grants } from './grants.ts';
import type { History } from './history.ts';
import type { Machine } from './machine.ts';
import type { Random } from './random.ts';
import type { Life, Timeline } from './timeline.ts';

export interface NetworkConditions {
  readonly latencyMs: number;
  /** Per message, while the network is lossy. */
  readonly dropChance: number;
  readonly repeatChance: number;
  readonly reorderChance: number;
}

/** To the coordinator, or from it. */
export type Direction = 'up' | 'down';

export class Network {
  coordinator: CoordinatorProcess | null = null;
  /** Messages get lost, repeated and reordered inside of connections. */
  lossy = false;
  readonly connections = new Set<Connection>();
  private readonly blocked = { up: new Set<Machine>(), down: new Set<Machine>() };
  /** What the coordinator has answered, as far as it has arrived. */
  readonly grants: Grants;
  readonly timeline: Timeline;
  readonly random: Random;
  readonly history: History;
  readonly conditions: NetworkConditions;
  readonly trace: (line: () => string) => void;

  constructor(parts: Pick<Network, 'timeline' | 'random' | 'history' | 'conditions' | 'trace'>) {
    this.timeline = parts.timeline;
    this.grants = new Grants(parts.timeline);
    this.random = parts.random;
    this.history = parts.history;
    this.conditions = parts.conditions;
    this.trace = parts.trace;
  }

  block(machine: Machine, directions: readonly Direction[]): void {
    for (const direction of directions) this.blocked[direction].add(machine);
  }

  unblock(machine: Machine): void {
    for (const blocked of Object.values(this.blocked)) blocked.delete(machine);
    for (const connection of this.connections) if (connection.machine === machine) connection.flush();
  }

  isBlocked(machine: Machine, direction: Direction): boolean {
    return this.blocked[direction].has(machine);
  }

  /** @returns the agent's end, as a gRPC client stream would look to it */
  connect(machine: Machine, agent: Life): Connection['agentEnd'] {
    const connection = new Connection(this, machine, agent);
    this.connections.add(connection);
    return connection.agentEnd;
  }

  latencyMs(): number {
    const { latencyMs } = this.conditions;
    return this.random.chance(0.02)
      ? this.random.between(latencyMs, latencyMs * 40)
      : this.random.between(0, latencyMs);
  }
}
