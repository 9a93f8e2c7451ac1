import { describe, expect, it, test } from 'vitest';
import { seededRandom } from '../modelFixture.ts';
import { type Located, switchPath, topologyLabel } from './topology.ts';
import { chooseClosest } from './topologyGroups.ts';

/** @param paths null: the node has no topology label. Nodes are named by their positions. */
function nodesAt(...paths: readonly (string | null)[]): readonly Located[] {
  return paths.map((path, index) => ({
    name: String(index),
    inventory: { labels: path === null ? {} : { [topologyLabel]: path } },
  }));
}

function chosen(nodes: readonly Located[], count: number): readonly number[] {
  return chooseClosest(nodes, count).map(({ name }) => Number(name));
}

describe('nodes for a gang', () => {
  it.each<[string, readonly (string | null)[], count: number, readonly number[]]>([
    ['without labels in the order given', [null, null, null, null], 2, [0, 1]],
    ['one as the order says', ['a', 'b', 'b'], 1, [0]],
    ['all that there are', ['a', null, 'b'], 3, [0, 1, 2]],
    ['under one switch where there is one', ['a', 'b', 'b', 'c'], 2, [1, 2]],
    ['under the switch that is just large enough', ['a', 'a', 'a', 'b', 'b'], 2, [3, 4]],
    ['in the order given within a switch', ['a', 'b', 'b', 'b'], 2, [1, 2]],
    ['under few switches', ['a', 'a', 'b', 'c', 'c', 'c'], 5, [0, 1, 3, 4, 5]],
    ['filling small groups first', ['a', 'a', 'a', 'b', 'b', 'c', 'c', 'c', 'c'], 5, [0, 1, 2, 3, 4]],
    ['near the far end first', ['r1/s1', 'r1/s2', 'r2/s1', 'r3/s2', 'r3/s2'], 3, [1, 3, 4]],
    ['with few racks under the same spine', ['r1/s1', 'r2/s1', 'r2/s1', 'r3/s1'], 2, [1, 2]],
    [
      'with few racks even if another spine is larger',
      ['r1/s1', 'r2/s1', 'r3/s1', 'r4/s1', 'r1/s2', 'r1/s2', 'r1/s2'],
      3,
      [4, 5, 6],
    ],
    ['of places that are known before others', [null, null, 'a', 'a'], 2, [2, 3]],
    ['of unknown places where the known are too few', ['a', 'a', null, null], 3, [0, 1, 2]],
    ['at a higher switch together', ['r1/s1', 's1', 's1', 'r2/s1'], 2, [1, 2]],
  ])('%s', (_what, paths, count, expected) => {
    expect(chosen(nodesAt(...paths), count)).toEqual(expected);
  });

  it('are as near when their labels go deeper than numbers reach', () => {
    const deep = (rack: string) => [rack, ...Array.from({ length: 15 }, (_, level) => `s${level}`)].join('/');
    const paths = Array.from({ length: 600 }, (_, index) => deep(`rack${index % 200}`));
    const nodes = nodesAt(...paths);
    const racks = new Set(chooseClosest(nodes, 3).map((node) => switchPath(node)[0]));
    expect(racks.size).toBe(1);
  });
});

/**
 * A switch is identified by its whole path from above. At a level below its label, a node is in a group with the nodes of the
 * same label; a node without a label is alone.
 */
function switchAt(node: Located, level: number): string {
  const path = switchPath(node).toReversed();
  return path.length === 0
    ? `alone ${node.name}`
    : path.slice(0, level).join('/').padEnd(1) + (level > path.length ? ' direct' : '');
}

/** What the choice is judged by, spelled out: switches by level from the farthest, free nodes from the nearest, order. */
function judge(nodes: readonly Located[], set: readonly Located[]): readonly number[] {
  const levels = Array.from(
    { length: Math.max(...nodes.map((node) => switchPath(node).length)) },
    (_, at) => at + 1,
  );
  const used = levels.map((level) => new Set(set.map((node) => switchAt(node, level))));
  const below = levels.map(
    (level, at) => nodes.filter((node) => used[at]?.has(switchAt(node, level))).length,
  );
  const order = set.reduce((sum, { name }) => sum + Number(name), 0);
  return [...used.map((switches) => switches.size), ...below.reverse(), order];
}

function compare(a: readonly number[], b: readonly number[]): number {
  const at = a.findIndex((value, index) => value !== b[index]);
  return at < 0 ? 0 : (a[at] ?? 0) - (b[at] ?? 0);
}

function* subsets<T>(items: readonly T[], count: number): Generator<readonly T[]> {
  const [first, ...rest] = items;
  if (count === 0) yield [];
  if (count === 0 || first === undefined) return;
  for (const others of subsets(rest, count - 1)) yield [first, ...others];
  yield* subsets(rest, count);
}

test('no other choice of nodes is better, on thousands of small clusters', () => {
  const random = seededRandom(20_240_817);
  const upTo = (maximum: number) => Math.floor(random() * (maximum + 1));
  let spread = 0;
  for (let situation = 0; situation < 3_000; situation += 1) {
    const depth = upTo(3);
    const paths = Array.from({ length: 2 + upTo(6) }, () => {
      if (random() < 0.1) return null;
      const known = random() < 0.15 ? upTo(depth) : depth;
      const path = Array.from({ length: known }, (_, level) => `s${level}${upTo(level === 0 ? 1 : 2)}`);
      return path.reverse().join('/');
    });
    const nodes = nodesAt(...paths);
    const count = 2 + upTo(nodes.length - 2);
    const best = [...subsets(nodes, count)].map((set) => judge(nodes, set)).sort(compare)[0];
    const choice = chooseClosest(nodes, count);
    expect(choice, `${count} of ${paths.join(' ')}`).toHaveLength(count);
    expect(judge(nodes, choice), `${count} of ${paths.join(' ')}`).toEqual(best);
    if ((best?.[0] ?? 0) > 1) spread += 1;
  }
  // Gangs that one switch cannot hold have been among them.
  expect(spread).toBeGreaterThan(500);
});
