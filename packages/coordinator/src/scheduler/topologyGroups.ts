/**
 * How many nodes one attempt of a job could have at once, and which nodes to take for a gang that prefers to be near each other.
 *
 * A collective goes at the pace of its longest way, so a choice is judged level by level: as few switches of the
 * farthest level as possible, then of the next, down to the nearest. Among choices that are equal in this, the one that
 * leaves large groups of free nodes whole for those who need them; then the order in which the nodes were given.
 */
import type { JobResources } from '@muster/common/spec/types';
import { chooseUnderOneSwitch, type Located, largestGroup, switchPath } from './topology.ts';

/**
 * Nodes under as few switches as possible.
 * @param ordered in the order in which they are taken when nothing else tells them apart
 * @param count at most as many as there are
 */
export function chooseClosest<T extends Located>(ordered: readonly T[], count: number): readonly T[] {
  if (count <= 1 || count >= ordered.length) return ordered.slice(0, count);
  const tree = treeOf(ordered);
  if (tree.depth === 0) return ordered.slice(0, count);
  const chosen: number[] = [];
  bestTable(tree.root, 0, pricesOf(tree, count, ordered.length), count).collect(count, chosen);
  return chosen.sort((a, b) => a - b).flatMap((index) => ordered[index] ?? []);
}

/** Nodes are known by their positions in the order that they were given in. */
interface Switch {
  readonly below: Map<string, Switch>;
  /** Nodes that hang at this very switch; at the root those of which nothing is known. */
  readonly direct: number[];
  /** How many nodes are below it, at any depth. */
  size: number;
}

interface Tree {
  readonly root: Switch;
  readonly depth: number;
}

function newSwitch(): Switch {
  return { below: new Map(), direct: [], size: 0 };
}

function treeOf(nodes: readonly Located[]): Tree {
  const root = newSwitch();
  let depth = 0;
  for (const [index, node] of nodes.entries()) {
    const path = switchPath(node).toReversed();
    depth = Math.max(depth, path.length);
    let above = root;
    above.size += 1;
    for (const name of path) {
      const next = above.below.get(name) ?? newSwitch();
      above.below.set(name, next);
      next.size += 1;
      above = next;
    }
    above.direct.push(index);
  }
  return { root, depth };
}

/**
 * What one switch of each level costs, so that comparing sums compares level by level. Levels count from 1, the
 * farthest. Sums are exact integers for any real network; beyond that the least important levels lose their say.
 */
interface Prices {
  /** For being used at all; the farthest level weighs most. */
  readonly use: readonly number[];
  /** For each free node below it, taken or not; the nearest level weighs most. */
  readonly size: readonly number[];
}

function pricesOf({ root, depth }: Tree, count: number, total: number): Prices {
  const use = Array.from({ length: depth + 1 }, () => 0);
  const size = Array.from({ length: depth + 1 }, () => 0);
  const switches = switchesPerLevel(root, depth);
  let weight = 1;
  for (let level = depth; level >= 1; level -= 1) {
    use[level] = weight;
    weight *= Math.min(count, switches[level] ?? 0) + 1;
  }
  weight = 1;
  for (let level = 1; level <= depth; level += 1) {
    size[level] = weight;
    weight *= total + 1;
  }
  return { use, size };
}

function switchesPerLevel(root: Switch, depth: number): readonly number[] {
  const switches = Array.from({ length: depth + 1 }, () => root.direct.length);
  const visit = (part: Switch, level: number) => {
    if (level > 0) switches[level] = (switches[level] ?? 0) + 1;
    if (level > 0 && part.direct.length > 0) {
      for (let deeper = level + 1; deeper <= depth; deeper += 1)
        switches[deeper] = (switches[deeper] ?? 0) + 1;
    }
    for (const next of part.below.values()) visit(next, level + 1);
  };
  visit(root, 0);
  return switches;
}

/**
 * The cheapest way to take 0, 1, 2 … nodes of a part of the tree. Taking from one part does not change the price of
 * another, so the best of the whole is made of the bests of its parts.
 */
class Table {
  /** Of taking as many nodes as the index says: first what the used switches cost, … */
  readonly use: Float64Array;
  /** … then their free nodes, … */
  readonly size: Float64Array;
  /** … then the positions of the nodes that are taken. */
  readonly order: Float64Array;
  /** Adds the positions of the cheapest choice of so many. */
  readonly collect: (count: number, into: number[]) => void;

  constructor(length: number, collect: Table['collect']) {
    this.use = new Float64Array(length);
    this.size = new Float64Array(length);
    this.order = new Float64Array(length);
    this.collect = collect;
  }

  get most(): number {
    return this.use.length - 1;
  }

  /** For taking any at all: one more switch, with so many free nodes below it. */
  addSwitch(use: number, size: number): void {
    for (let count = 1; count <= this.most; count += 1) {
      this.use[count] = valueAt(this.use, count) + use;
      this.size[count] = valueAt(this.size, count) + size;
    }
  }
}

function valueAt(values: Float64Array, index: number): number {
  return values[index] ?? Number.POSITIVE_INFINITY;
}

function bestTable(part: Switch, level: number, prices: Prices, countMax: number): Table {
  let table =
    level === 0
      ? unknownTable(part.direct, prices, countMax)
      : directTable(part.direct, level, prices, countMax);
  for (const next of part.below.values()) {
    table = merged(table, bestTable(next, level + 1, prices, countMax), countMax);
  }
  if (level > 0) table.addSwitch(prices.use[level] ?? 0, part.size * (prices.size[level] ?? 0));
  return table;
}

/** The nodes that hang at one switch, which on the levels below it are together as well. */
function directTable(nodes: readonly number[], level: number, prices: Prices, countMax: number): Table {
  const table = firstNodesTable(nodes, countMax);
  for (let deeper = level + 1; deeper < prices.use.length; deeper += 1) {
    table.addSwitch(prices.use[deeper] ?? 0, nodes.length * (prices.size[deeper] ?? 0));
  }
  return table;
}

/** Nodes of which nothing is known: each alone on every level. */
function unknownTable(nodes: readonly number[], prices: Prices, countMax: number): Table {
  const table = firstNodesTable(nodes, countMax);
  const [use, size] = [prices.use, prices.size].map((each) => each.reduce((sum, price) => sum + price, 0));
  for (let count = 1; count <= table.most; count += 1) {
    table.use[count] = count * (use ?? 0);
    table.size[count] = count * (size ?? 0);
  }
  return table;
}

/** Nothing tells these apart but their order. */
function firstNodesTable(nodes: readonly number[], countMax: number): Table {
  const most = Math.min(nodes.length, countMax);
  const table = new Table(most + 1, (count, into) => {
    into.push(...nodes.slice(0, count));
  });
  for (let count = 1; count <= most; count += 1) {
    table.order[count] = valueAt(table.order, count - 1) + (nodes[count - 1] ?? 0);
  }
  return table;
}

function merged(a: Table, b: Table, countMax: number): Table {
  const most = Math.min(a.most + b.most, countMax);
  /** How many of the cheapest choice of so many come from `b`. */
  const fromB = new Uint16Array(most + 1);
  const table = new Table(most + 1, (count, into) => {
    const ofB = fromB[count] ?? 0;
    a.collect(count - ofB, into);
    b.collect(ofB, into);
  });
  for (let count = 1; count <= most; count += 1) {
    let [use, size, order] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
    for (let ofB = Math.max(0, count - a.most); ofB <= Math.min(count, b.most); ofB += 1) {
      const nextUse = valueAt(a.use, count - ofB) + valueAt(b.use, ofB);
      if (nextUse > use) continue;
      const nextSize = valueAt(a.size, count - ofB) + valueAt(b.size, ofB);
      const nextOrder = valueAt(a.order, count - ofB) + valueAt(b.order, ofB);
      const isBetter = nextUse < use || nextSize < size || (nextSize === size && nextOrder < order);
      if (!isBetter) continue;
      [use, size, order] = [nextUse, nextSize, nextOrder];
      fromB[count] = ofB;
    }
    table.use[count] = use;
    table.size[count] = size;
    table.order[count] = order;
  }
  return table;
}

/** Of these nodes, each of which would do: as many as one attempt could have. */
export function gangSizeMax(nodes: readonly Located[], resources: JobResources): number {
  const most = isBoundToOneSwitch(resources) ? (largestGroup(nodes)?.nodes.length ?? 0) : nodes.length;
  return Math.min(most, resources.nodes);
}

/** @param count at most `gangSizeMax` */
export function chooseGang<T extends Located>(
  ordered: readonly T[],
  count: number,
  resources: JobResources,
): readonly T[] {
  return isBoundToOneSwitch(resources) ? chooseUnderOneSwitch(ordered, count) : chooseClosest(ordered, count);
}

export function isBoundToOneSwitch({ topology, nodes }: JobResources): boolean {
  return topology === 'required' && nodes > 1;
}
