import type { NodeName } from '@muster/common/ids';
import type { Node } from '../model.ts';
import type { Batch } from '../store/store.ts';
import { applyChanges, removedOf } from './committed.ts';
import type { SetUndoably } from './people.ts';

/** What a draft changes of the nodes. */
export class DraftedNodes {
  /** null: removed. */
  private readonly changed = new Map<NodeName, Node | null>();
  /** Those of the changed nodes that will be stored. */
  private readonly toStore = new Map<NodeName, true>();
  private readonly base: Map<NodeName, Node>;
  private readonly set: SetUndoably;

  constructor(base: Map<NodeName, Node>, set: SetUndoably) {
    this.base = base;
    this.set = set;
  }

  get(name: NodeName): Node | undefined {
    const drafted = this.changed.get(name);
    return drafted === undefined ? this.base.get(name) : (drafted ?? undefined);
  }

  every(): readonly Node[] {
    if (this.changed.size === 0) return [...this.base.values()];
    return [...new Set([...this.base.keys(), ...this.changed.keys()])].flatMap(
      (name) => this.get(name) ?? [],
    );
  }

  /** @param node null: it is removed @param isStored without a commit of its own it is stored with its next change */
  put(name: NodeName, node: Node | null, isStored: boolean): void {
    this.set(this.changed, name, node);
    if (isStored) this.set(this.toStore, name, true);
  }

  toBatch(): Pick<Batch, 'nodes' | 'removedNodes'> {
    return {
      nodes: [...this.changed.values()].flatMap((node) =>
        node !== null && this.toStore.has(node.name) ? [node] : [],
      ),
      removedNodes: removedOf(this.changed),
    };
  }

  /** After the commit. @returns the names of those that were removed */
  apply(): readonly NodeName[] {
    applyChanges(this.base, this.changed);
    return removedOf(this.changed);
  }
}
