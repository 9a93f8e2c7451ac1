/** How the GPUs of a node are connected, as the matrix that `nvidia-smi topo -m` shows. Pure. */
import { cardUuid, type Gpu, type NodeInventory } from '@muster/common/hardware';
import { makeColours } from '../output/colours.ts';
import { type Column, formatTable, type TextOptions } from '../output/table.ts';
import { textWidth } from '../output/text.ts';
import { byIndex } from './gpuTable.ts';

/** @returns nothing without links, and one line in place of a matrix that the terminal is too narrow for */
export function formatTopology(inventory: NodeInventory, options: TextOptions): string {
  const { colours, width } = options;
  const { links } = inventory;
  if (links.length === 0) return '';
  const cards = [...new Map(byIndex(inventory.gpus).map((gpu) => [cardUuid(gpu), gpu])).values()];
  const names = new Map(
    cards.map((gpu) => [cardUuid(gpu), gpu.index === null ? gpu.uuid : `GPU${gpu.index}`]),
  );
  const kinds = new Map(
    links.flatMap(({ from, to, kind }) => [
      [pairKey(from, to), kind],
      [pairKey(to, from), kind],
    ]),
  );
  // NICs and RDMA devices by name, behind the cards.
  const others = [...new Set(links.map(({ to }) => to))].filter((to) => !names.has(to)).toSorted();
  const linkColumn = (to: string): Column<Gpu> => ({
    header: names.get(to) ?? to,
    cell: (gpu) => (cardUuid(gpu) === to ? 'X' : (kinds.get(pairKey(cardUuid(gpu), to)) ?? '-')),
  });
  const columns: readonly Column<Gpu>[] = [
    { header: '', cell: (gpu) => names.get(cardUuid(gpu)) ?? '' },
    ...[...names.keys(), ...others].map(linkColumn),
    { header: 'CPUS', cell: (gpu) => gpu.cpuAffinity ?? '', narrow: 'drop' },
    { header: 'NUMA', cell: (gpu) => (gpu.numaNode === null ? '' : String(gpu.numaNode)), narrow: 'drop' },
  ];
  const heading = colours.bold('Topology');
  const plain = formatTable(cards, columns, { width, colours: makeColours(false) });
  const widest = Math.max(...plain.split('\n').map(textWidth));
  if (width !== null && widest > width) {
    return `${heading}  ${colours.dim(`needs ${widest} columns to be shown; -o json has it`)}\n`;
  }
  const legend = colours.dim(legendText(links.map(({ kind }) => kind)));
  return `${heading}\n${formatTable(cards, columns, options)}${legend}\n`;
}

/** Best first. */
const kindTexts = {
  NV: 'NV#: # NVLinks',
  PIX: 'PIX: one PCIe switch',
  PXB: 'PXB: several PCIe switches',
  PHB: 'PHB: the PCIe host bridge',
  NODE: 'NODE: the same NUMA node',
  SYS: 'SYS: another NUMA node',
} as const;

/** What the words in the matrix mean: those that occur. */
function legendText(kinds: readonly string[]): string {
  const words = new Set(kinds.map((kind) => kind.replace(/\d+$/, '')));
  return Object.entries(kindTexts)
    .filter(([word]) => words.has(word))
    .map(([, text]) => text)
    .join(' · ');
}

function pairKey(from: string, to: string): string {
  return `${from} ${to}`;
}
