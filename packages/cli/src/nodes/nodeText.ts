/** Nodes in a table, and the words that other views of a node share. Pure. */
import type { Gpu } from '@muster/common/hardware';
import type { NodeView, OrphanTask } from '@muster/common/views';
import type { Style } from '../output/colours.ts';
import { type Column, formatTable, type TextOptions } from '../output/table.ts';
import { count, printable } from '../output/text.ts';
import { durationText, memoryText } from '../output/times.ts';
import { conditionStyle, conditionsInShort } from './conditionText.ts';

export function formatNodes(nodes: readonly NodeView[], options: TextOptions): string {
  return formatTable(nodes, nodeColumns, options);
}

const nodeColumns: readonly Column<NodeView>[] = [
  { header: 'NAME', cell: (node) => node.name, narrow: { cutTo: 12 } },
  { header: 'STATE', cell: stateText, style: stateStyle, narrow: { cutTo: 15 } },
  { header: 'GPUS', cell: gpusText, narrow: { cutTo: 16 } },
  { header: 'CPUS', cell: (node) => usedOf(node.cpusUsed, node.inventory.cpus, String), align: 'right' },
  { header: 'MEMORY', cell: memoryUse, align: 'right', narrow: 'drop' },
  { header: 'JOBS', cell: (node) => jobsOf(node).join(' '), narrow: { cutTo: 12 } },
  {
    header: 'CONDITIONS',
    cell: notesOf,
    style: (node) => conditionStyle(node.conditions),
    narrow: { cutTo: 14 },
  },
];

export function stateText(node: NodeView): string {
  if (node.state === 'online') {
    if (!node.drained) return 'online';
    // By a condition of its hardware or a person: what runs there runs on, and it is not empty before that has ended.
    return node.tasks.length > 0 ? 'online, draining' : 'online, drained';
  }
  const silent = node.silentForMs === null ? 'silent' : `silent for ${durationText(node.silentForMs)}`;
  return node.fencedInMs === null ? silent : `${silent}, ${fenceText(node.fencedInMs)}`;
}

/** Of a silent node with tasks: from when on it is certain that they do not run there. */
function fenceText(fencedInMs: number): string {
  return fencedInMs === 0 ? 'fenced' : `fenced in ${durationText(fencedInMs)}`;
}

export function stateStyle(node: NodeView): Style {
  if (node.state !== 'online') return 'red';
  return node.drained ? 'yellow' : 'green';
}

/** `3/4 H100, 1 drained`, `2/2 simulated`; `-` without GPUs. */
function gpusText({ inventory, gpuUses, drainedGpuUuids }: NodeView): string {
  if (inventory.gpus.length === 0) return '-';
  const models = [...new Set(inventory.gpus.map(deviceText))];
  const drained = drainedGpuUuids.length === 0 ? '' : `, ${drainedGpuUuids.length} drained`;
  return `${usedOf(gpuUses.length, inventory.gpus.length, String)} ${models.join(', ')}${drained}`;
}

/** `H100 80GB HBM3`, or `A100 1g.10gb` for a part of a card. */
function deviceText(gpu: Gpu): string {
  return gpu.mig === null ? modelText(gpu) : `${modelText(gpu)} ${gpu.mig.profile}`;
}

/** Without the vendor, which all have in common. Simulated hardware is never shown as if it were real. */
export function modelText({ model, simulated }: Gpu): string {
  const name = model.replace(/^NVIDIA /, '');
  if (!simulated) return name;
  return name === '' || /simulated/i.test(name) ? 'simulated' : `${name} (simulated)`;
}

export function memoryUse({ memoryUsedMb, inventory }: NodeView): string {
  return usedOf(memoryUsedMb, inventory.memoryMb, memoryText);
}

export function usedOf(used: number, total: number, text: (amount: number) => string): string {
  return `${used === 0 ? '0' : text(used)}/${text(total)}`;
}

/** Why it was drained, and what is wrong with it. */
function notesOf({ drain, conditions }: NodeView): string {
  const reason = drain === null || drain.reason === '' ? '' : `drained: ${drain.reason}`;
  return [reason, conditionsInShort(conditions)].filter((note) => note !== '').join('; ');
}

function jobsOf({ gpuUses, tasks, orphans }: NodeView): readonly string[] {
  const unknown = new Set<string>(orphans.map(({ task }) => task.jobId));
  const ids = [...tasks.map(({ task }) => task.jobId), ...gpuUses.map(({ jobId }) => jobId), ...unknown];
  return [...new Set(ids)].map((id) => (unknown.has(id) ? `${id} (orphan)` : id));
}

/** Tasks of a node that are named. */
const namedMax = 8;

/** A block for each node that has some, with the command that ends them; empty when none has. */
export function orphansText(
  nodes: readonly Pick<NodeView, 'name' | 'orphans'>[],
  programName: string,
): string {
  return nodes
    .filter(({ orphans }) => orphans.length > 0)
    .map(({ name, orphans }) => {
      const { length } = orphans.flatMap(({ gpuUuids }) => gpuUuids);
      const holding = length === 0 ? '' : `, holding ${count(length, 'GPU')}`;
      const tasks = count(orphans.length, 'task runs', 'tasks run');
      return (
        `${tasks} on ${name} that the store does not know${holding}:\n${orphanLines(orphans)}` +
        `Kill ${orphans.length === 1 ? 'it' : 'them'}: ${programName} node end-orphans ${name}\n`
      );
    })
    .join('');
}

/** One line for each of the first few. */
export function orphanLines(orphans: readonly OrphanTask[]): string {
  const lines = orphans.slice(0, namedMax).map(({ task, name, gpuUuids, frozen }) => {
    const facts = [
      task.jobId,
      name,
      `attempt ${task.attempt}`,
      `node rank ${task.nodeRank}`,
      ...(gpuUuids.length === 0 ? [] : [count(gpuUuids.length, 'GPU')]),
      ...(frozen ? ['frozen'] : []),
    ];
    return `  ${printable(facts.filter((fact) => fact !== '').join('  '))}\n`;
  });
  const more = orphans.length - namedMax;
  return [...lines, ...(more > 0 ? [`  … and ${more} more\n`] : [])].join('');
}
