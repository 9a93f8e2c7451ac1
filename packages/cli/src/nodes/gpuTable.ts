/** The GPUs of a node, MIG instances below their cards. Pure. */
import { cardUuid, type Gpu } from '@muster/common/hardware';
import type { NodeView } from '@muster/common/views';
import type { Style } from '../output/colours.ts';
import { type Column, formatTable, type TextOptions } from '../output/table.ts';
import { memoryText } from '../output/times.ts';
import { drains, worstFirst } from './conditionText.ts';
import { modelText } from './nodeText.ts';

/** A card in MIG mode is no device itself, but a heading for its instances. */
interface Row {
  readonly gpu: Gpu;
  readonly kind: 'card' | 'migCard' | 'migInstance';
}

export function formatGpus(node: NodeView, options: TextOptions): string {
  const { gpus } = node.inventory;
  if (gpus.length === 0) return '';
  const jobOf = new Map(node.gpuUses.map(({ uuid, jobId }) => [uuid, jobId]));
  const drained = new Set(node.drainedGpuUuids);
  const isDevice = ({ kind }: Row) => kind !== 'migCard';
  const jobText = ({ gpu }: Row) => jobOf.get(gpu.uuid) ?? '';
  const state = (row: Row): string => {
    if (!isDevice(row)) return 'MIG';
    if (drained.has(row.gpu.uuid)) return drainedText(row.gpu, node);
    return jobText(row) === '' ? 'free' : 'in use';
  };
  const stateStyle = (row: Row): Style | null => {
    if (!isDevice(row)) return 'dim';
    if (drained.has(row.gpu.uuid)) return 'red';
    return jobText(row) === '' ? 'green' : null;
  };
  const columns: readonly Column<Row>[] = [
    { header: 'GPU', cell: deviceText, narrow: { cutTo: 16 } },
    {
      header: 'MODEL',
      cell: ({ gpu, kind }) => (kind === 'migInstance' ? '' : modelText(gpu)),
      narrow: { cutTo: 12 },
    },
    {
      header: 'MEMORY',
      cell: (row) => (row.gpu.memoryMb === null || !isDevice(row) ? '' : memoryText(row.gpu.memoryMb)),
      align: 'right',
      narrow: 'drop',
    },
    { header: 'STATE', cell: state, style: stateStyle, narrow: { cutTo: 14 } },
    { header: 'JOB', cell: (row) => (isDevice(row) ? jobText(row) : '') },
    {
      header: 'PCI',
      cell: ({ gpu, kind }) => (kind === 'migInstance' ? '' : (gpu.pciBusId ?? '')),
      narrow: 'drop',
    },
    {
      header: 'NUMA',
      cell: ({ gpu, kind }) => (kind === 'migInstance' || gpu.numaNode === null ? '' : String(gpu.numaNode)),
      align: 'right',
      narrow: 'drop',
    },
    { header: 'UUID', cell: (row) => (isDevice(row) ? row.gpu.uuid : cardUuid(row.gpu)), narrow: 'drop' },
  ];
  return formatTable(rowsOf(gpus), columns, options);
}

function rowsOf(gpus: readonly Gpu[]): readonly Row[] {
  const cards = Map.groupBy(byIndex(gpus), cardUuid);
  return Array.from(cards.values()).flatMap((devices) => {
    const rows = devices.map((gpu): Row => ({ gpu, kind: gpu.mig === null ? 'card' : 'migInstance' }));
    const [first] = devices;
    return first === undefined || first.mig === null ? rows : [{ gpu: first, kind: 'migCard' }, ...rows];
  });
}

/** By the driver's number, those without one last; instances in the order of their card. */
export function byIndex(gpus: readonly Gpu[]): readonly Gpu[] {
  const last = Number.MAX_SAFE_INTEGER;
  return gpus.toSorted(
    (a, b) =>
      (a.index ?? last) - (b.index ?? last) ||
      (a.mig?.gpuInstanceId ?? -1) - (b.mig?.gpuInstanceId ?? -1) ||
      (a.mig?.computeInstanceId ?? -1) - (b.mig?.computeInstanceId ?? -1) ||
      (a.uuid < b.uuid ? -1 : 1),
  );
}

function deviceText({ gpu, kind }: Row): string {
  if (kind === 'migInstance') return `  ${gpu.mig?.profile ?? gpu.uuid}`;
  return gpu.index === null ? cardUuid(gpu) : String(gpu.index);
}

/** `drained: xid_79`. */
function drainedText(gpu: Gpu, { conditions }: NodeView): string {
  const here = conditions.filter(({ gpuUuid }) => gpuUuid === gpu.uuid || gpuUuid === cardUuid(gpu));
  const kinds = [...new Set(worstFirst(here.filter(drains)).map(({ kind }) => kind))];
  return kinds.length === 0 ? 'drained' : `drained: ${kinds.join(', ')}`;
}
