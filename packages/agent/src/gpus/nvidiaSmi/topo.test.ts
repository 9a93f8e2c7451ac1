import { describe, expect, test } from 'vitest';
import { capture, hasCaptures } from './testing/captures.ts';
import { deviceLinks, parseTopology } from './topo.ts';

const underlined = (header: string): string => `\t\u001B[4m${header}\u001B[0m`;

function matrix(...lines: readonly string[]): string {
  return `${lines.join('\n')}\n\nLegend:\n\n  X    = Self\n`;
}

test('a matrix of GPUs and NICs, as R5xx prints it', () => {
  const text = `${matrix(
    underlined('GPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID'),
    'GPU0\t X \tNV4\tPIX\t0-7,16-23\t0\t\tN/A',
    'GPU1\tNV4\t X \tSYS\t8-15,24-31\t1\t\tN/A',
    'NIC0\tPIX\tSYS\t X \t\t\t\t',
  )}\nNIC Legend:\n\n  NIC0: mlx5_3\n`;
  const topology = parseTopology(text);
  expect(topology?.refused).toEqual([]);
  expect([...(topology?.affinities ?? [])]).toEqual([
    [0, { cpuAffinity: '0-7,16-23', numaNode: 0 }],
    [1, { cpuAffinity: '8-15,24-31', numaNode: 1 }],
  ]);
  expect(topology?.links).toEqual([
    { from: 0, to: 1, kind: 'NV4' },
    { from: 0, to: 'mlx5_3', kind: 'PIX' },
    { from: 1, to: 'mlx5_3', kind: 'SYS' },
  ]);
});

test('older drivers name the NICs in the header and have fewer columns', () => {
  const topology = parseTopology(
    matrix(
      '\tGPU0\tGPU1\tmlx5_0\tCPU Affinity\tNUMA Affinity',
      'GPU0\t X \tSYS\tPHB\t0-3\t0',
      'GPU1\tSYS\t X \tNODE\t4-7\tN/A',
      'mlx5_0\tPHB\tNODE\t X ',
    ),
  );
  expect(topology?.refused).toEqual([]);
  expect(topology?.links).toContainEqual({ from: 0, to: 'mlx5_0', kind: 'PHB' });
  expect(topology?.affinities.get(1)).toEqual({ cpuAffinity: '4-7', numaNode: null });
});

test.each([
  ['a cell too few', 'GPU0\t X \t0-3\t0\t\tN/A'],
  ['a cell too many', 'GPU0\t X \tSYS\tSYS\t0-3\t0\t\tN/A'],
  ['an unknown kind of link', 'GPU0\t X \tQQ\t0-3\t0\t\tN/A'],
  ['no X at its own place', 'GPU0\tSYS\tSYS\t0-3\t0\t\tN/A'],
  ['a device that is not in the header', 'GPU7\t X \tSYS\t0-3\t0\t\tN/A'],
])('a row with %s is refused, the others count', (_, row) => {
  const topology = parseTopology(
    matrix('\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID', row, 'GPU1\tSYS\t X \t4-7\t1\t\tN/A'),
  );
  expect(topology?.refused).toHaveLength(1);
  expect([...(topology?.affinities.keys() ?? [])]).toEqual([1]);
});

test.each(['', 'ERROR: Option -m is missing its value.', '0, 1, 2', '<xml/>'])('%j is no matrix', (text) => {
  expect(parseTopology(text)).toBeNull();
});

test('links are named by UUID; those of cards that are not there are left out', () => {
  const topology = parseTopology(
    matrix(
      '\tGPU0\tGPU1\tGPU2\tmlx5_0\tCPU Affinity\tNUMA Affinity',
      'GPU0\t X \tNV2\tSYS\tPIX\t0-3\t0',
      'GPU1\tNV2\t X \tSYS\tPIX\t0-3\t0',
      'GPU2\tSYS\tSYS\t X \tSYS\t0-3\t0',
    ),
  );
  if (topology === null) throw new Error('not read');
  const uuids = new Map([
    [0, 'GPU-a'],
    [2, 'GPU-c'],
  ]);
  expect(deviceLinks(topology, uuids)).toEqual([
    { from: 'GPU-a', to: 'GPU-c', kind: 'SYS' },
    { from: 'GPU-a', to: 'mlx5_0', kind: 'PIX' },
    { from: 'GPU-c', to: 'mlx5_0', kind: 'SYS' },
  ]);
});

describe.runIf(hasCaptures)('captured matrices', () => {
  test.each([
    // cards, pairs of cards, links to NICs, CPUs of the first card, how often each kind joins two cards
    ['4gpu-phb.txt', 4, 0, '0-47', { PHB: 6 }],
    ['8x-a100-nv12-10nics.txt', 8, 80, '0-63,128-191', { NV12: 28 }],
    ['doc-2gpu-nv2.txt', 2, 0, '0-23', { NV2: 1 }],
    ['doc-2gpu-phb.txt', 2, 0, '0-11', { PHB: 1 }],
    ['doc-8gpu-nv12.txt', 8, 0, '0-23', { NV12: 28 }],
    ['doc-8gpu-nv18-ht-ranges.txt', 8, 0, '0-51,104-155', { NV18: 28 }],
    ['gen-8x-h100-12nics.txt', 8, 96, '0-55,112-167', { NV18: 28 }],
    ['gen-8x-l40s-pcie-no-nic.txt', 8, 0, '0-31,64-95', { PIX: 4, NODE: 8, SYS: 16 }],
    ['gen-8x-v100-hybrid-cube-mesh.txt', 8, 32, '0-19,40-59', { NV1: 8, NV2: 8, SYS: 12 }],
    ['h100-80g-r590.txt', 1, 0, '0-19', {}],
    ['h200-mig-r590.txt', 1, 0, '0-23', {}],
    ['l40s-r595.txt', 1, 0, '0-7', {}],
    ['rtx2080s-r595.txt', 1, 0, '0-23', {}],
    ['rtx2080s-r610.txt', 1, 0, undefined, {}],
    ['rtx4080s-r595.txt', 1, 0, undefined, {}],
  ] as const)('%s', (file, cards, nicLinks, cpus, kinds) => {
    const topology = parseTopology(capture('topo', file));
    expect(topology?.refused).toEqual([]);
    expect(topology?.affinities.size).toBe(cards);
    if (cpus !== undefined) expect(topology?.affinities.get(0)?.cpuAffinity).toBe(cpus);
    const links = topology?.links ?? [];
    expect(links.filter(({ to }) => typeof to === 'string')).toHaveLength(nicLinks);
    expect(links.every(({ to }) => typeof to === 'number' || /^mlx5_\d+$/.test(to))).toBe(true);
    const pairs = links.filter(({ to }) => typeof to === 'number');
    const counted = Map.groupBy(pairs, ({ kind }) => kind);
    expect(Object.fromEntries([...counted].map(([kind, all]) => [kind, all.length]))).toEqual(kinds);
  });

  test('what is no matrix, or one of something else, gives no links', () => {
    expect(parseTopology(capture('topo', 'rtx2080s-windows-r591.txt'))).toBeNull();
    expect(parseTopology(capture('topo', 'p2p-r-8gpu-ok.txt'))).toMatchObject({ links: [] });
  });
});

test.each([
  ['spaces before a header with tabs', '        GPU0\tGPU1\tGPU2', '\t'],
  ['single spaces', '     GPU0 GPU1 GPU2', ' '],
  ['runs of spaces', '      GPU0   GPU1   GPU2', '   '],
  ['indented as a whole', '            GPU0   GPU1   GPU2', '   ', '    '],
  ['spaces in the header only', '      GPU0   GPU1   GPU2', '\t'],
])('a matrix without affinities: %s', (_, header, gap, indent = '') => {
  const row = (...cells: readonly string[]) => indent + cells.join(gap);
  const topology = parseTopology(
    matrix(
      header,
      row('GPU0', ' X ', 'NV2', 'SYS'),
      row('GPU1', 'NV2', ' X ', 'SYS'),
      row('GPU2', 'SYS', 'SYS', ' X '),
    ),
  );
  expect(topology?.refused).toEqual([]);
  expect(topology?.links).toEqual([
    { from: 0, to: 1, kind: 'NV2' },
    { from: 0, to: 2, kind: 'SYS' },
    { from: 1, to: 2, kind: 'SYS' },
  ]);
  expect(topology?.affinities.get(2)).toEqual({ cpuAffinity: null, numaNode: null });
});
