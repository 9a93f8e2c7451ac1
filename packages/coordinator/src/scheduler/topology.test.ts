import { describe, expect, it, test } from 'vitest';
import {
  byPlace,
  chooseUnderOneSwitch,
  type Located,
  largestGroup,
  nearestGroups,
  switchPath,
  topologyLabel,
} from './topology.ts';

/** @param path null: it does not tell */
function located(name: string, path: string | null): Located {
  return { name, inventory: { labels: path === null ? {} : { [topologyLabel]: path } } };
}

const namesOf = (nodes: readonly Located[]) => nodes.map(({ name }) => name).join(' ');

test.each([
  [null, []],
  ['', []],
  ['rack7', ['rack7']],
  ['rack7/leaf3/spine1', ['rack7', 'leaf3', 'spine1']],
  [' rack 7 //leaf3/ ', ['rack 7', 'leaf3']],
  ['x/'.repeat(100_000), Array.from({ length: 16 }, () => 'x')],
])('the path of %j', (label, path) => {
  expect(switchPath(located('node', label))).toEqual(path);
});

test('neighbours in the network are neighbours in rank', () => {
  const nodes = [
    located('a', 'rack2/leaf1'),
    located('b', 'rack1/leaf2'),
    located('c', 'rack1/leaf1'),
    located('d', 'rack2/leaf1'),
    located('e', 'leaf1'),
    located('f', null),
  ];
  expect(namesOf(nodes.toSorted(byPlace))).toBe('f e c a d b');
  expect(namesOf(nodes.toReversed().sort(byPlace))).toBe('f e c a d b');
});

test('switches of one name under different switches are different', () => {
  const nodes = [located('a', 'rack1/leaf1'), located('b', 'rack1/leaf2'), located('c', 'rack1/leaf1')];
  expect(nearestGroups(nodes).map((group) => namesOf(group.nodes))).toEqual(['a c', 'b']);
});

describe('the largest group', () => {
  it('is of nodes that share all their switches', () => {
    const nodes = [located('a', 'rack2'), located('b', 'rack1'), located('c', 'rack1'), located('d', null)];
    expect(largestGroup(nodes)).toEqual({ switchName: 'rack1', nodes: [nodes[1], nodes[2]] });
  });

  it('has a name, where there is a choice', () => {
    const nodes = [located('a', null), located('b', 'rack2'), located('c', 'rack1')];
    expect(largestGroup(nodes)?.switchName).toBe('rack1');
    expect(largestGroup(nodes.slice(0, 1))?.switchName).toBeNull();
    expect(largestGroup([])).toBeNull();
  });
});

describe('under one switch', () => {
  const nodes = [
    ...['a', 'b', 'c', 'd'].map((name) => located(name, 'rack1')),
    ...['e', 'f', 'g'].map((name) => located(name, 'rack2')),
    located('h', null),
  ];

  it.each([
    [1, 'h'],
    [2, 'e f'],
    [3, 'e f g'],
    [4, 'a b c d'],
    [5, ''],
  ])('%i nodes are of the group that is just large enough', (count, names) => {
    expect(namesOf(chooseUnderOneSwitch(nodes, count))).toBe(names);
  });

  it('they are taken in the order given', () => {
    expect(namesOf(chooseUnderOneSwitch(nodes.toReversed(), 2))).toBe('g f');
  });
});
