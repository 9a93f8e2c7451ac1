/** The real rendezvous of a node: its interfaces, its ports, and connections to the peers of a gang. */
import { messageOf } from '@muster/common/errors';
import type { Endpoint, PathCheck, PathFindings, PathResult, Peer } from '@muster/common/gangs';
import { type TaskRef, taskKey } from '@muster/common/ids';
import type { TaskLaunch } from '../drivers/driver.ts';
import {
  type NodeNetwork,
  networkInterfaceFor,
  nodeEndpoints,
  noEndpointMessage,
} from '../host/addresses.ts';
import type { HeldPort } from '../launch/masterPort.ts';
import { networkEnvironment } from '../launch/networkEnvironment.ts';
import { askPeer, type PathEnds } from './pathClient.ts';
import { PathServer } from './pathServer.ts';
import { inTurn } from './portNumbers.ts';
import { type PreflightPeers, type RunProgram, runPreflight } from './preflight.ts';

export interface RendezvousOptions {
  readonly nodeName: string;
  /** `host:port` */
  readonly coordinator: string;
  /** Of the node: `network` names the network or interface for gangs. */
  readonly labels: Readonly<Record<string, string>>;
  /** As it was last read. */
  readonly network: () => NodeNetwork;
  /** Not empty; see `taskPorts`. */
  readonly ports: readonly number[];
  /** Runs a program in a job's environment until it ends; see `programRunner`. */
  readonly runProgram: RunProgram;
  readonly monotonicMs: () => number;
  readonly chance: () => number;
  /** For a connection and its answer. */
  readonly pathDeadlineMs?: number;
}

export interface NodeRendezvous extends Rendezvous {
  /** Why `endpoints(wanted)` is empty, in words for the person who wants it. null: it is not. */
  endpointProblem(wanted: string | null): string | null;
}

/** More ports in a row that are all taken, and something is wrong with the node. */
const portTriesMax = 1_000;

export function createRendezvous(options: RendezvousOptions): NodeRendezvous {
  const { nodeName, coordinator, labels, monotonicMs, pathDeadlineMs = 5_000 } = options;
  const numbers = inTurn(options.ports, options.chance);
  const meetingPorts = new Map<string, () => Promise<number>>();

  /** The job's setting overrides the node's: it knows what it needs. */
  const wantedOn = (wanted: string | null) => wanted ?? labels['network'] ?? null;
  const endpoints = (wanted: string | null): readonly Endpoint[] =>
    nodeEndpoints(options.network(), coordinator, wantedOn(wanted));

  const listen = async (server: () => PathServer): Promise<{ server: PathServer; port: number }> => {
    for (let tries = 0; tries < portTriesMax; tries += 1) {
      const candidate = server();
      const port = numbers.next().value;
      if (await candidate.listen(port)) return { server: candidate, port };
    }
    throw new Error(`${nodeName} has no free port for a rendezvous: the last ${portTriesMax} were all taken`);
  };

  /** A port that nobody has, and that is not given to anybody else: the preflight's program is to listen on it itself. */
  const freePort = async (task: TaskRef): Promise<number> => {
    const unused = () => Promise.reject<number>(new Error('this port is not for peers'));
    const { server, port } = await listen(() => new PathServer({ task, preflightPort: unused }));
    await server.close();
    return port;
  };

  const hold = async (task: TaskRef): Promise<HeldPort> => {
    const key = taskKey(task);
    let found: Promise<number> | null = null;
    const preflightPort = () => (found ??= freePort(task));
    const { server, port } = await listen(() => new PathServer({ task, preflightPort }));
    if (task.nodeRank === 0) meetingPorts.set(key, preflightPort);
    let released: Promise<void> | null = null;
    const release = () => {
      // Another hold of the same task, after a restart of its preparation, has an entry of its own.
      if (meetingPorts.get(key) === preflightPort) meetingPorts.delete(key);
      return (released ??= server.close());
    };
    return { port, release };
  };

  const check = async (
    task: TaskRef,
    launch: TaskLaunch,
    asked: PathCheck,
    abort: AbortSignal,
  ): Promise<PathFindings> => {
    const { addresses, peers, preflight, round } = asked;
    const address = addresses[task.nodeRank] ?? null;
    const network = options.network();
    const from = {
      node: nodeName,
      address,
      interface: address === null ? null : networkInterfaceFor(address, network.nics),
    };
    const ask: PreflightPeers['ask'] = (peer, question, deadlineMs) => {
      const ends: PathEnds = { from, to: peer };
      const peerTask = { ...task, nodeRank: peer.nodeRank };
      return askPeer(ends, { task: peerTask, rank: task.nodeRank, question, deadlineMs, abort, monotonicMs });
    };
    const tryPath = async (peer: Peer): Promise<PathResult> => {
      try {
        const { roundTripMs } = await ask(peer, { kind: 'here' }, pathDeadlineMs);
        return {
          nodeRank: peer.nodeRank,
          error: null,
          roundTripUs: Math.max(1, Math.round(roundTripMs * 1_000)),
        };
      } catch (error) {
        return { nodeRank: peer.nodeRank, error: messageOf(error), roundTripUs: 0 };
      }
    };
    const paths = await Promise.all(peers.map(tryPath));
    if (preflight === null || paths.some(({ error }) => error !== null)) {
      return { round, paths, preflight: null };
    }
    const result = await runPreflight({
      task,
      nodeName,
      // What the user set is in the launch already, and wins here, too.
      launch: { ...launch, env: { ...networkEnvironment(network, address, null), ...launch.env } },
      check: { ...asked, preflight },
      peers: { ask, meetingPort: meetingPorts.get(taskKey(task)) ?? null },
      runProgram: options.runProgram,
      abort,
    });
    return { round, paths, preflight: result };
  };

  const endpointProblem = (wanted: string | null): string | null => {
    if (endpoints(wanted).length > 0) return null;
    const all = nodeEndpoints(options.network(), coordinator);
    return noEndpointMessage(nodeName, wantedOn(wanted), all);
  };

  return { endpoints, hold, check, endpointProblem };
}

/** The seam between a node's tasks and its networks: where it is reached, the ports it holds, the paths it tries. */
interface Rendezvous {
  /**
   * Where other nodes may reach this one, best first.
   * @param wanted `network` of the spec
   */
  endpoints(wanted: string | null): readonly Endpoint[];

  /** A free port of this node that answers the peers of this attempt until it is released. */
  hold(task: TaskRef): Promise<HeldPort>;

  /** Tries the paths, and runs the preflight where it is asked for. Never throws: what went wrong is in the findings. */
  check(task: TaskRef, launch: TaskLaunch, check: PathCheck, abort: AbortSignal): Promise<PathFindings>;
}
