/**
 * Unknown jobs whose tasks nodes still report, and which an administrator has accepted. The store has one row for each such
 * node; the next acceptance for the node replaces it.
 */
import type { JobId, NodeName } from '@muster/common/ids';
import type { MetaStore } from './metaStore.ts';
import { straysMax } from './testimony.ts';

const metaName = (node: NodeName) => `accepted_strays/${node}`;
const none: ReadonlySet<JobId> = new Set();

export class AcceptedStrays {
  private readonly store: Pick<MetaStore, 'writeMeta'>;
  private readonly byNode: Map<NodeName, ReadonlySet<JobId>>;

  private constructor(store: Pick<MetaStore, 'writeMeta'>, byNode: Map<NodeName, ReadonlySet<JobId>>) {
    this.store = store;
    this.byNode = byNode;
  }

  static async open(
    store: Pick<MetaStore, 'readMeta' | 'writeMeta'>,
    nodes: Iterable<NodeName>,
  ): Promise<AcceptedStrays> {
    const byNode = new Map<NodeName, ReadonlySet<JobId>>();
    for (const node of nodes) {
      const text = await store.readMeta(metaName(node));
      if (text !== null) byNode.set(node, new Set(JSON.parse(text) as JobId[]));
    }
    return new AcceptedStrays(store, byNode);
  }

  of(node: NodeName): ReadonlySet<JobId> {
    return this.byNode.get(node) ?? none;
  }

  /** Beside those that were accepted before; of too many, these are kept. */
  async accept(node: NodeName, strays: ReadonlySet<JobId>): Promise<void> {
    if (strays.size === 0) return;
    const kept = [...new Set([...strays, ...this.of(node)])].slice(0, straysMax);
    await this.store.writeMeta(metaName(node), JSON.stringify(kept));
    this.byNode.set(node, new Set(kept));
  }
}
