/** Judges the paths between the nodes of a gang by the reports of all of them. */
import { isLoopbackHost } from '@muster/common/address';
import { causeOf } from '@muster/common/cause';
import type { NodeName } from '@muster/common/ids';
import type { Cause } from '@muster/common/views';
import type { Attempt, AttemptNetwork, Task } from '../model.ts';
import { peersOf } from './network.ts';

/** One path as the node at its beginning tried it. */
export interface TriedPath {
  readonly from: NodeName;
  readonly to: NodeName;
  readonly address: string;
  /** null: it could be reached. */
  readonly error: string | null;
  readonly roundTripUs: number | null;
}

/** Two nodes and what went between them. */
export interface MeasuredPair {
  readonly from: NodeName;
  readonly to: NodeName;
  readonly bytesPerS: number;
}

/** The address of nodes whose coordinator is on loopback for them, as at the end of a tunnel. */
const onlyOnOneMachine =
  'a loopback address leads to another node only on the same machine. A node behind a tunnel runs jobs of one node, unless ' +
  'its label network names a network that the others reach';

export type Verdict =
  | { readonly kind: 'good' }
  /** The next choice of addresses may do. */
  | Blame<'unreachable'>
  /** No choice of addresses helps: what was measured was too little, or could not be. */
  | Blame<'refused'>;

interface Blame<K extends string> {
  readonly kind: K;
  readonly message: string;
  /** Nodes that the next attempt had better do without. */
  readonly excludeNodes: readonly NodeName[];
}

/** Every path that a node had to try, by the rank of that node. A path without a report counts as not reached. */
export function triedPaths(attempt: Attempt, network: AttemptNetwork): readonly TriedPath[] {
  return attempt.tasks.flatMap((task) =>
    peersOf(attempt, network, task.nodeRank).map((peer) => {
      const result = task.paths?.find(({ nodeRank }) => nodeRank === peer.nodeRank);
      const error = result === undefined ? 'it was not tested' : result.error;
      const roundTripUs = result === undefined || result.error !== null ? null : result.roundTripUs;
      return {
        from: task.node,
        to: nodeOf(attempt, peer.nodeRank),
        address: peer.address,
        error,
        roundTripUs,
      };
    }),
  );
}

/** Every pair that was measured, as often as it was. */
export function measuredPairs(attempt: Attempt): readonly MeasuredPair[] {
  return attempt.tasks.flatMap(({ node, nodeRank, preflight }) =>
    (preflight?.pairs ?? [])
      .filter((pair) => pair.nodeRank !== nodeRank && attempt.tasks[pair.nodeRank] !== undefined)
      .map((pair) => ({ from: node, to: nodeOf(attempt, pair.nodeRank), bytesPerS: pair.bytesPerS })),
  );
}

/**
 * @param attempt an attempt whose nodes have all reported their paths
 * @param minBandwidthMbps Mbit/s of each pair; null: any
 */
export function judgePaths(
  attempt: Attempt,
  paths: readonly TriedPath[],
  minBandwidthMbps: number | null,
): Verdict {
  const failed = paths.filter(({ error }) => error !== null);
  const [first] = failed;
  if (first !== undefined) {
    const others = failed.length === 1 ? '' : ` (${failed.length} of ${paths.length} paths failed)`;
    const isLoopback = attempt.network?.addresses.some(isLoopbackHost) === true;
    const message = inWords(first) + others + (isLoopback ? `; ${onlyOnOneMachine}` : '');
    return { kind: 'unreachable', message, excludeNodes: mostNamed(failed) };
  }
  if (!attempt.preflight) return { kind: 'good' };
  const unmeasured = attempt.tasks.filter((task) => preflightError(task) !== null);
  const [failing] = unmeasured;
  if (failing !== undefined) {
    const message = `the preflight failed on ${failing.node}: ${preflightError(failing)}`;
    return { kind: 'refused', message, excludeNodes: unmeasured.map(({ node }) => node) };
  }
  return judgeBandwidths(measuredPairs(attempt), minBandwidthMbps);
}

/** Agents name both ends; for one that does not, the missing end is filled in. */
function inWords({ from, to, address, error }: TriedPath): string {
  const reported = error ?? '';
  return reported.includes(from) && reported.includes(to)
    ? reported
    : `${from} does not reach ${to} at ${address}: ${reported}`;
}

function preflightError({ preflight }: Task): string | null {
  return preflight === null ? 'it was not run' : preflight.error;
}

function judgeBandwidths(pairs: readonly MeasuredPair[], minBandwidthMbps: number | null): Verdict {
  if (minBandwidthMbps === null) return { kind: 'good' };
  const slow = pairs
    .filter(({ bytesPerS }) => mbps(bytesPerS) < minBandwidthMbps)
    .sort((a, b) => a.bytesPerS - b.bytesPerS);
  const [slowest] = slow;
  if (slowest === undefined) return { kind: 'good' };
  const measured = Math.floor(mbps(slowest.bytesPerS));
  const message =
    `${measured} Mbit/s were measured between ${slowest.from} and ${slowest.to}, ` +
    `and preflight.min_bandwidth_mbps is ${minBandwidthMbps}`;
  return { kind: 'refused', message, excludeNodes: mostNamed(slow) };
}

function mbps(bytesPerS: number): number {
  return (bytesPerS * 8) / 1e6;
}

/**
 * The node to which these pairs are attributed: the one in most of them. In a tie all of them are returned, since it is unknown
 * which node is at fault; of a single pair, both are.
 */
function mostNamed(
  pairs: readonly { readonly from: NodeName; readonly to: NodeName }[],
): readonly NodeName[] {
  // What went wrong both ways between two nodes is one pair.
  const distinct = new Map(pairs.map(({ from, to }) => [[from, to].sort().join(' '), [from, to]]));
  const counts = new Map<NodeName, number>();
  for (const node of [...distinct.values()].flat()) counts.set(node, (counts.get(node) ?? 0) + 1);
  const most = Math.max(...counts.values());
  return [...counts].filter(([, count]) => count === most).map(([node]) => node);
}

/** Of a start that the paths hold back. It names no rank: the nodes are in the message. */
export function pathCause(message: string): Cause {
  return causeOf('rendezvous', message);
}

function nodeOf({ tasks }: Attempt, nodeRank: number): NodeName {
  const task = tasks[nodeRank];
  if (task === undefined) throw new Error(`a gang of ${tasks.length} has no rank ${nodeRank}`);
  return task.node;
}
