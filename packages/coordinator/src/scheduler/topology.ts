/**
 * Where nodes are in the network.
 *
 * A node's label `topology` is the path of switches above it, nearest first: `rack7/leaf3/spine1`. Read from its far
 * end the paths of all nodes are a tree, in which a switch is known by everything above it: `rack7` under two leaves is
 * two racks. A path may be shorter than others: then the node hangs at a higher switch, beside whatever else hangs there.
 * Of a node without a path nothing is known, so it counts as a switch of its own on every level.
 */
import { byName } from './order.ts';

/** A node, as far as its place is concerned. */
export interface Located {
  readonly name: string;
  readonly inventory: { readonly labels: Readonly<Record<string, string>> };
}

/** Label of a node that says where it is. */
export const topologyLabel = 'topology';

/** More levels than any network has: what a node says of itself must not exhaust us. */
const levelsMax = 16;

/** The switches above a node, the nearest first; empty when they are unknown. */
export function switchPath({ inventory }: Located): readonly string[] {
  const label = inventory.labels[topologyLabel];
  if (label === undefined) return [];
  const names = label.split('/', 2 * levelsMax).map((name) => name.trim());
  return names.filter((name) => name !== '').slice(0, levelsMax);
}

/** Neighbours in the network become neighbours in rank; equal places by name. */
export function byPlace(a: Located, b: Located): number {
  const [from, to] = [switchPath(a).toReversed(), switchPath(b).toReversed()];
  for (const [level, name] of from.entries()) {
    const other = to[level];
    if (other === undefined) return 1;
    if (name !== other) return name < other ? -1 : 1;
  }
  return from.length === to.length ? byName(a, b) : -1;
}

/** Nodes that share all their switches, or one node of which nothing is known. */
export interface SwitchGroup<T> {
  /** Of the nearest switch; null: unknown. */
  readonly switchName: string | null;
  readonly nodes: readonly T[];
}

/** In the order of their first nodes. */
export function nearestGroups<T extends Located>(nodes: readonly T[]): readonly SwitchGroup<T>[] {
  const groups = new Map<string, { readonly switchName: string | null; readonly nodes: T[] }>();
  for (const node of nodes) {
    const path = switchPath(node);
    const key = path.length === 0 ? `?${node.name}` : `/${path.join('/')}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { switchName: path[0] ?? null, nodes: [node] });
    else group.nodes.push(node);
  }
  return [...groups.values()];
}

/** The group with the most nodes, named ones first; null where there are no nodes. */
export function largestGroup<T extends Located>(nodes: readonly T[]): SwitchGroup<T> | null {
  let largest: SwitchGroup<T> | null = null;
  for (const group of nearestGroups([...nodes].sort(byPlace))) {
    const more = group.nodes.length - (largest?.nodes.length ?? 0);
    if (more > 0 || (more === 0 && largest?.switchName === null)) largest = group;
  }
  return largest;
}

/**
 * Nodes under one nearest switch: of the group that is just large enough.
 * @param ordered in the order in which they are taken when nothing else tells them apart
 * @returns empty when no switch has as many
 */
export function chooseUnderOneSwitch<T extends Located>(ordered: readonly T[], count: number): readonly T[] {
  let tightest: readonly T[] | null = null;
  for (const { nodes } of nearestGroups(ordered)) {
    if (nodes.length < count) continue;
    if (tightest === null || nodes.length < tightest.length) tightest = nodes;
  }
  return tightest?.slice(0, count) ?? [];
}
