/**
 * What preflights measured between nodes, and which nodes were away since. In memory: it follows the events that have
 * been committed, and begins with the newest of the store.
 */
import { type PathBandwidth, type PreflightBackend, preflightBackends } from '@muster/common/gangs';
import type { NodeName } from '@muster/common/ids';
import type { StoredEvent } from '../model.ts';
import type { ClusterState } from '../state/state.ts';
import type { Store } from '../store/store.ts';

/** An event of a preflight, as far as it is read here. */
interface Measured {
  readonly backend?: unknown;
  readonly pairs?: unknown;
}

interface MeasuredPair {
  readonly from: string;
  readonly to: string;
  readonly bytesPerS: number;
}

/** Events looked back on at the start; reading them takes a moment. */
const lookBackEvents = 5_000;
const pageSize = 1_000;

export class PathHistory {
  /** By node, then by its peer. */
  private readonly paths = new Map<string, Map<string, PathBandwidth>>();
  /** By which boot each node was known last. */
  private readonly bootIds = new Map<string, string>();
  private readonly silent = new Set<string>();
  private readonly returned = new Set<string>();

  /** With what the newest events of the store tell. */
  static async open(
    store: Pick<Store, 'readEvents'>,
    { lastEventSeq, nodes }: Pick<ClusterState, 'lastEventSeq' | 'nodes'>,
  ): Promise<PathHistory> {
    const history = new PathHistory();
    let sinceSeq = Math.max(0, lastEventSeq - lookBackEvents);
    for (;;) {
      const events = await store.readEvents(sinceSeq, pageSize, null);
      const last = events.at(-1);
      if (last === undefined) break;
      history.committed(events);
      sinceSeq = last.seq;
    }
    for (const { name, bootId } of nodes.values()) history.bootIds.set(name, bootId);
    return history;
  }

  /** To be called after every commit, in order. */
  committed(events: readonly StoredEvent[]): void {
    for (const event of events) {
      if (event.kind === 'preflight.measured') this.noteMeasured(event);
      else if (event.kind === 'node.silent') this.silent.add(event.subject);
      else if (event.kind === 'node.online') this.noteOnline(event);
      else if (event.kind === 'node.removed') this.forgetPaths(event.subject);
    }
  }

  /** It came back, after a silence or a reboot, and nobody has measured its paths since. */
  needsPreflight(node: NodeName): boolean {
    return this.returned.has(node);
  }

  /** The newest measurement of each path from a node, by peer. */
  bandwidthsOf(node: NodeName): readonly PathBandwidth[] {
    const paths = [...(this.paths.get(node)?.values() ?? [])];
    return paths.sort((a, b) => (a.peer < b.peer ? -1 : 1));
  }

  private noteOnline({ subject, data }: StoredEvent): void {
    const bootId = typeof data['bootId'] === 'string' ? data['bootId'] : null;
    const before = this.bootIds.get(subject);
    const wasRebooted = bootId !== null && before !== undefined && before !== bootId;
    if (bootId !== null) this.bootIds.set(subject, bootId);
    if (this.silent.delete(subject) || wasRebooted) this.returned.add(subject);
  }

  /** What says that the node was away stays: a machine of that name may come back. */
  private forgetPaths(node: string): void {
    this.paths.delete(node);
    for (const peers of this.paths.values()) peers.delete(node);
  }

  private noteMeasured({ data, timeMs }: StoredEvent): void {
    const { backend, pairs } = data as Measured;
    const known: PreflightBackend = preflightBackends.find((each) => each === backend) ?? 'tcp';
    const measured = Array.isArray(pairs) ? (pairs as readonly MeasuredPair[]) : [];
    const path = { measuredAtMs: timeMs, backend: known };
    for (const { from, to, bytesPerS } of measured) {
      this.put(to, { ...path, bytesPerS, peer: from });
      this.returned.delete(from);
      this.returned.delete(to);
    }
    // What a node measured itself counts more for it than what its peer did.
    for (const { from, to, bytesPerS } of measured) this.put(from, { ...path, bytesPerS, peer: to });
  }

  private put(node: string, path: PathBandwidth): void {
    const peers = this.paths.get(node) ?? new Map<string, PathBandwidth>();
    peers.set(path.peer, path);
    this.paths.set(node, peers);
  }
}
