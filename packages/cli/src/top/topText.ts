/** Every node and GPU at work, as text. Pure. */
import { cardUuid, type Gpu } from '@muster/common/hardware';
import type { GpuReading, HostReading, NodeTelemetry } from '@muster/common/telemetry';
import type { JobView, NodeView } from '@muster/common/views';
import { nameOf } from '../jobs/summary.ts';
import { conditionStyle, conditionsInShort } from '../nodes/conditionText.ts';
import { byIndex } from '../nodes/gpuTable.ts';
import { stateStyle, stateText } from '../nodes/nodeText.ts';
import { type Column, formatTable, type View } from '../output/table.ts';
import { count } from '../output/text.ts';
import { durationText, memoryText } from '../output/times.ts';
import { absent, fullness, rateText, ratioText, valueText } from '../output/units.ts';

/** As the API gives them: what `-o json` prints. */
export interface TopSnapshot {
  readonly nodes: readonly NodeView[];
  readonly telemetry: readonly NodeTelemetry[];
  /** Those that hold GPUs. */
  readonly jobs: readonly JobView[];
}

/** Three intervals: one may come late, two are missing. */
const staleAfterMs = 30_000;
const barColumns = 10;
/** An id, and the `…` in place of a name. */
const jobColumnsMin = 17;

export interface TopText {
  /** One line about the whole cluster. */
  readonly summary: string;
  /** Headings of the node lines and of the GPU lines. */
  readonly headings: readonly string[];
  readonly lines: readonly string[];
}

export function formatTop(snapshot: TopSnapshot, options: View): TopText {
  const telemetryOf = new Map(snapshot.telemetry.map((each) => [each.node, each]));
  const jobNames = new Map(snapshot.jobs.map((job) => [job.id, nameOf(job)]));
  const nodes = snapshot.nodes.map((node) => ({ node, host: telemetryOf.get(node.name)?.host ?? null }));
  const gpus = nodes.map(({ node }) => gpuRows(node, telemetryOf.get(node.name), jobNames));
  const all = gpus.flat();

  // All nodes in one table and all GPUs in another, so that each lines up; then woven together.
  const [nodeHeading = '', ...nodeLines] = tableLines(nodes, nodeColumns(options), options);
  const [gpuHeading = '', ...gpuLines] = tableLines(all, gpuColumns(all, options), options);
  let taken = 0;
  const lines = nodeLines.flatMap((line, index) => {
    const from = taken;
    taken += gpus[index]?.length ?? 0;
    return [line, ...gpuLines.slice(from, taken)];
  });
  return {
    summary: summaryText(snapshot, all, options),
    headings: [nodeHeading, ...(all.length === 0 ? [] : [gpuHeading])],
    lines,
  };
}

function tableLines<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  options: View,
): readonly string[] {
  return formatTable(rows, columns, options).split('\n').slice(0, -1);
}

function summaryText({ nodes, jobs }: TopSnapshot, gpus: readonly GpuRow[], { nowMs }: View): string {
  const used = gpus.filter(({ jobId }) => jobId !== null).length;
  const drained = nodes.reduce((sum, { drainedGpuUuids }) => sum + drainedGpuUuids.length, 0);
  const watts = gpus
    .filter(({ reading }) => !isStale(reading, nowMs))
    .map(({ reading }) => reading?.powerWatts ?? null)
    .filter((value) => value !== null);
  return [
    count(nodes.length, 'node'),
    `${used}/${gpus.length} GPUs in use${drained === 0 ? '' : `, ${drained} drained`}`,
    ...(watts.length === 0 ? [] : [powerText(watts.reduce((sum, value) => sum + value, 0))]),
    `${count(jobs.length, 'job')} at work`,
  ].join(' · ');
}

function powerText(watts: number): string {
  return watts < 10_000 ? `${watts.toFixed(0)} W` : `${(watts / 1_000).toFixed(1)} kW`;
}

// ---- Nodes

interface NodeRow {
  readonly node: NodeView;
  readonly host: HostReading | null;
}

function nodeColumns({ nowMs }: View): readonly Column<NodeRow>[] {
  return [
    { header: 'NODE', cell: ({ node }) => node.name, style: () => 'bold', narrow: { cutTo: 12 } },
    { header: 'STATE', cell: ({ node }) => stateText(node), style: ({ node }) => stateStyle(node) },
    { header: 'CPU', cell: ({ host }) => valueText(host?.cpuUtilization ?? null, 'percent'), align: 'right' },
    {
      header: 'MEMORY',
      cell: ({ node, host }) => usedOf(host?.memoryUsedMb ?? null, node.inventory.memoryMb),
      align: 'right',
    },
    { header: 'LOAD', cell: ({ host }) => host?.load1?.toFixed(1) ?? absent, align: 'right', narrow: 'drop' },
    { header: 'NETWORK', cell: ({ host }) => networkText(host), align: 'right', narrow: 'drop' },
    {
      header: 'NOTE',
      cell: ({ node, host }) => noteText(conditionsInShort(node.conditions), ageText(host, nowMs)),
      style: ({ node }) => conditionStyle(node.conditions) ?? 'dim',
      narrow: { cutTo: 10 },
    },
  ];
}

/** `1.2 MiB/s in, 300 KiB/s out`. */
function networkText(host: HostReading | null): string {
  const received = host?.networkReceiveBytes ?? null;
  const sent = host?.networkTransmitBytes ?? null;
  return received === null && sent === null ? absent : `${rateText(received)} in, ${rateText(sent)} out`;
}

// ---- GPUs

interface GpuRow {
  readonly gpu: Gpu;
  readonly reading: GpuReading | null;
  readonly jobId: string | null;
  readonly jobText: string;
  /** The conditions of its card. */
  readonly conditions: NodeView['conditions'];
}

function gpuRows(
  node: NodeView,
  telemetry: NodeTelemetry | undefined,
  jobNames: ReadonlyMap<string, string>,
): readonly GpuRow[] {
  const readingOf = new Map(telemetry?.gpus.map((reading) => [reading.gpuUuid, reading]));
  const jobOf = new Map(node.gpuUses.map(({ uuid, jobId }) => [uuid, jobId]));
  return byIndex(node.inventory.gpus).map((gpu) => {
    const jobId = jobOf.get(gpu.uuid) ?? null;
    return {
      gpu,
      reading: readingOf.get(gpu.uuid) ?? null,
      jobId,
      jobText: jobId === null ? '' : `${jobId} ${jobNames.get(jobId) ?? ''}`.trimEnd(),
      conditions: node.conditions.filter(
        ({ gpuUuid }) => gpuUuid === gpu.uuid || (gpuUuid !== null && gpuUuid === cardUuid(gpu)),
      ),
    };
  });
}

function gpuColumns(rows: readonly GpuRow[], { unicode, nowMs }: View): readonly Column<GpuRow>[] {
  /** What was read too long ago looks like the past that it is. */
  const faded = ({ reading }: GpuRow) => (isStale(reading, nowMs) ? 'dim' : null);
  const value = (header: string, text: (reading: GpuReading | null) => string): Column<GpuRow> => ({
    header,
    cell: ({ reading }) => text(reading),
    style: faded,
    align: 'right',
    narrow: 'drop',
  });
  const isMeasured = (field: 'smActive' | 'tensorActive') =>
    rows.some(({ reading }) => reading !== null && reading[field] !== null);
  return [
    { header: '  GPU', cell: ({ gpu }) => `  ${gpuText(gpu)}`, narrow: { cutTo: 12 } },
    {
      header: 'BUSY',
      cell: ({ reading }) => busyText(reading?.utilization ?? null, unicode),
      style: (row) => faded(row) ?? 'green',
    },
    {
      header: 'MEMORY',
      cell: ({ gpu, reading }) => usedOf(reading?.memoryUsedMb ?? null, gpu.memoryMb),
      style: faded,
      align: 'right',
    },
    value('POWER', (reading) => valueText(reading?.powerWatts ?? null, 'watts')),
    value('TEMP', (reading) => valueText(reading?.temperature ?? null, 'celsius')),
    ...(isMeasured('smActive') ? [value('SM', (reading) => ratioText(reading?.smActive ?? null))] : []),
    ...(isMeasured('tensorActive')
      ? [value('TENSOR', (reading) => ratioText(reading?.tensorActive ?? null))]
      : []),
    { header: 'JOB', cell: ({ jobText }) => jobText, narrow: { cutTo: jobColumnsMin } },
    {
      header: 'NOTE',
      cell: ({ gpu, reading, conditions }) =>
        noteText(conditionsInShort(conditions), ageText(reading, nowMs), gpu.simulated ? 'simulated' : ''),
      style: ({ conditions }) => conditionStyle(conditions) ?? 'dim',
      narrow: { cutTo: 9 },
    },
  ];
}

/** `3`, `0 1g.10gb`. */
function gpuText({ index, uuid, mig }: Gpu): string {
  const card = index === null ? uuid.slice(0, 10) : String(index);
  return mig === null ? card : `${card} ${mig.profile}`;
}

/** `█████████░  87 %`. */
function busyText(percent: number | null, unicode: boolean): string {
  if (percent === null) return absent;
  return `${fullness(percent / 100, barColumns, unicode)} ${valueText(percent, 'percent').padStart(5)}`;
}

function usedOf(usedMb: number | null, totalMb: number | null): string {
  const total = totalMb === null ? absent : memoryText(totalMb);
  return `${usedMb === null ? absent : memoryText(Math.round(usedMb))}/${total}`;
}

function isStale(reading: { readonly atMs: number } | null, nowMs: number): boolean {
  return reading !== null && nowMs - reading.atMs > staleAfterMs;
}

/** `read 45 s ago`; empty for what is fresh. */
function ageText(reading: { readonly atMs: number } | null, nowMs: number): string {
  if (reading === null || !isStale(reading, nowMs)) return '';
  return `read ${durationText(nowMs - reading.atMs)} ago`;
}

function noteText(...parts: readonly string[]): string {
  return parts.filter((part) => part !== '').join(', ');
}
