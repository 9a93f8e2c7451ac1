/** Nodes for a person. Pure. */
import type { Gpu, NodeView } from '@muster/common/views';
import type { Colours } from '../output/colours.ts';
import { formatFields } from '../output/fields.ts';
import { type Column, formatTable } from '../output/table.ts';
import { agoText, durationText, memoryText } from '../output/times.ts';

interface NodeOptions {
  readonly width: number | null;
  readonly colours: Colours;
}

export function formatNodes(nodes: readonly NodeView[], options: NodeOptions): string {
  return formatTable(nodes, nodeColumns, options);
}

const nodeColumns: readonly Column<NodeView>[] = [
  { header: 'NAME', cell: (node) => node.name, narrow: { cutTo: 12 } },
  { header: 'STATE', cell: stateText, style: stateStyle },
  { header: 'GPUS', cell: gpusText, narrow: { cutTo: 20 } },
  { header: 'CPUS', cell: (node) => usedOf(node.cpusUsed, node.inventory.cpus, String), align: 'right' },
  { header: 'MEMORY', cell: memoryUse, align: 'right', narrow: 'drop' },
  { header: 'JOBS', cell: (node) => jobsOf(node).join(' '), narrow: { cutTo: 16 } },
];

function stateText(node: NodeView): string {
  if (node.state === 'online') return 'online';
  return node.silentForMs === null ? 'silent' : `silent for ${durationText(node.silentForMs)}`;
}

function stateStyle(node: NodeView): 'green' | 'red' {
  return node.state === 'online' ? 'green' : 'red';
}

/** `3/4 H100`, `2/2 simulated`; `-` without GPUs. */
function gpusText({ inventory, gpuUses }: NodeView): string {
  if (inventory.gpus.length === 0) return '-';
  const models = [...new Set(inventory.gpus.map(modelText))];
  return `${usedOf(gpuUses.length, inventory.gpus.length, String)} ${models.join(', ')}`;
}

/** Simulated hardware is never shown as if it were real. */
function modelText({ model, simulated }: Gpu): string {
  if (!simulated) return model;
  return model === '' || /simulated/i.test(model) ? 'simulated' : `${model} (simulated)`;
}

function memoryUse({ memoryUsedMb, inventory }: NodeView): string {
  return usedOf(memoryUsedMb, inventory.memoryMb, memoryText);
}

function usedOf(used: number, total: number, text: (amount: number) => string): string {
  return `${used === 0 ? '0' : text(used)}/${text(total)}`;
}

function jobsOf({ gpuUses }: NodeView): readonly string[] {
  return [...new Set(gpuUses.map(({ jobId }) => jobId))];
}

export function formatNode(node: NodeView, options: NodeOptions & { readonly nowMs: number }): string {
  const { colours, nowMs } = options;
  const { inventory } = node;
  const fields = formatFields(
    [
      ['State', stateText(node)],
      ['Joined', agoText(node.joinedAtMs, nowMs)],
      ['Agent', node.agentVersion],
      ['Addresses', inventory.addresses.join(' ')],
      ['CPUs', `${usedOf(node.cpusUsed, inventory.cpus, String)} used`],
      ['Memory', `${memoryUse(node)} used`],
      ['Runs', inventory.drivers.join(', ')],
      [
        'Labels',
        Object.entries(inventory.labels)
          .map(([name, value]) => `${name}=${value}`)
          .join(' '),
      ],
    ],
    colours,
  );
  const heading = `${colours.bold(node.name)}\n`;
  if (inventory.gpus.length === 0) return `${heading}\n${fields}`;
  const jobOf = new Map(node.gpuUses.map(({ uuid, jobId }) => [uuid, jobId]));
  const gpuColumns: readonly Column<Gpu>[] = [
    { header: 'GPU', cell: (gpu) => gpu.uuid },
    { header: 'MODEL', cell: modelText, narrow: { cutTo: 12 } },
    {
      header: 'MEMORY',
      cell: (gpu) => (gpu.memoryMb === null ? '' : memoryText(gpu.memoryMb)),
      align: 'right',
      narrow: 'drop',
    },
    {
      header: 'JOB',
      cell: (gpu) => jobOf.get(gpu.uuid) ?? 'free',
      style: (gpu) => (jobOf.has(gpu.uuid) ? null : 'green'),
    },
  ];
  return `${heading}\n${fields}\n${formatTable(inventory.gpus, gpuColumns, options)}`;
}
