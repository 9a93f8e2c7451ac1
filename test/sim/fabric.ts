/**
 * How machines reach each other beside the coordinator, as the tasks of a gang do: over two networks, of which either may
 * not carry between certain machines. Agents try these ways before anything is released.
 */
import type { NodeRendezvous } from '@muster/agent/rendezvous/rendezvous';
import type { Endpoint, PathCheck, PathFindings, PathResult, Peer } from '@muster/common/gangs';
import type { TaskRef } from '@muster/common/ids';
import type { Machine } from './machine.ts';
import type { Life } from './timeline.ts';

/** Best first. */
const networks = ['10.1', '10.0'] as const;
export type NetworkName = (typeof networks)[number];

const usualMbps = 10_000;
const slowMbps = 100;
/** A peer that does not answer is given up. */
const silenceMs = 5_000;

/** The way from one machine to another, which need not lead back. */
interface Direction {
  readonly from: string;
  readonly to: string;
  readonly network: NetworkName;
}

export class Fabric {
  private readonly machines: () => readonly Machine[];
  private readonly broken = new Map<string, 'refuses' | 'swallows'>();
  private readonly slow = new Set<string>();

  constructor(machines: () => readonly Machine[]) {
    this.machines = machines;
  }

  break(direction: Direction, how: 'refuses' | 'swallows'): void {
    this.broken.set(directionKey(direction), how);
  }

  mend(direction: Direction): void {
    this.broken.delete(directionKey(direction));
  }

  setSlow(a: string, b: string, isSlow: boolean): void {
    for (const pair of [`${a} ${b}`, `${b} ${a}`]) {
      if (isSlow) this.slow.add(pair);
      else this.slow.delete(pair);
    }
  }

  heal(): void {
    this.broken.clear();
    this.slow.clear();
  }

  /** What an agent uses in the place of its interfaces, ports and connections. */
  rendezvousOf(machine: Machine, agent: Life): NodeRendezvous {
    const endpoints = () => networks.map((network) => endpointOf(machine, network));
    return {
      endpoints,
      endpointProblem: () => null,
      hold: async (task) => machine.holdPort(agent, task),
      check: (task, _launch, check, abort) => this.check(machine, agent, task, check, abort),
    };
  }

  private async check(
    machine: Machine,
    agent: Life,
    task: TaskRef,
    { round, peers, preflight }: PathCheck,
    abort: AbortSignal,
  ): Promise<PathFindings> {
    const { random } = machine;
    const wait = (ms: number) => waitFor(machine, agent, ms, abort);
    const paths = await Promise.all(peers.map((peer) => this.tryPath(machine, task, peer, wait)));
    if (preflight === null || paths.some(({ error }) => error !== null))
      return { round, paths, preflight: null };
    await wait(random.between(50, 1_500));
    const pairs = peers.map(({ nodeRank, node }) => {
      const mbps = this.slow.has(`${machine.name} ${node}`) ? slowMbps : usualMbps;
      machine.history.add({ kind: 'pathMeasured', task, toRank: nodeRank, mbps });
      return { nodeRank, bytesPerS: (mbps * 1e6) / 8 };
    });
    return { round, paths, preflight: { error: null, backend: 'tcp', pairs, allReduceBytesPerS: null } };
  }

  private async tryPath(
    machine: Machine,
    task: TaskRef,
    { nodeRank, address, port }: Peer,
    wait: (ms: number) => Promise<void>,
  ): Promise<PathResult> {
    const took = machine.random.between(1, 20);
    await wait(took);
    const error = this.connect(machine, task, nodeRank, address, port);
    if (error === 'no answer') await wait(silenceMs);
    machine.history.add({ kind: 'pathTried', task, toRank: nodeRank, port, error });
    return { nodeRank, error, roundTripUs: error === null ? took * 1_000 : 0 };
  }

  private connect(from: Machine, task: TaskRef, rank: number, address: string, port: number): string | null {
    const network = networks.find((each) => address.startsWith(`${each}.`));
    const to = this.machines().find((each) => networks.some((name) => addressOf(each, name) === address));
    if (network === undefined || to === undefined) return 'no route to host';
    const how = this.broken.get(directionKey({ from: from.name, to: to.name, network }));
    if (!to.power.alive || how === 'swallows') return 'no answer';
    if (how === 'refuses') return 'connection refused';
    const listener = to.listener(port);
    if (listener === null) return 'connection refused';
    const isPeer =
      listener.jobId === task.jobId && listener.attempt === task.attempt && listener.nodeRank === rank;
    return isPeer ? null : 'an unknown peer answers';
  }
}

function waitFor(machine: Machine, agent: Life, ms: number, abort: AbortSignal): Promise<void> {
  abort.throwIfAborted();
  return new Promise((resolve, reject) => {
    const appointment = machine.timeline.at(ms, agent, resolve);
    abort.addEventListener('abort', () => {
      appointment.cancelled = true;
      reject(abort.reason);
    });
  });
}

export function addressOf(machine: Machine, network: NetworkName): string {
  return `${network}.0.${machine.name.slice(-1)}`;
}

function endpointOf(machine: Machine, network: NetworkName): Endpoint {
  const isFast = network === networks[0];
  return {
    address: addressOf(machine, network),
    network: `${network}.0.0/16`,
    interface: isFast ? 'ib0' : 'eth0',
    speedMbps: isFast ? 100_000 : 10_000,
    rdma: isFast,
  };
}

function directionKey({ from, to, network }: Direction): string {
  return `${from} ${to} ${network}`;
}
