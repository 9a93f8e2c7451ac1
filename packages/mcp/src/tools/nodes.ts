/** The nodes of the cluster. */
import type { Gpu } from '@muster/common/hardware';
import type { NodeTelemetry } from '@muster/common/telemetry';
import type { NodeView } from '@muster/common/views';
import * as z from 'zod';
import { cursor, limitOf, nextCursor } from '../parameters.ts';
import { brief, isoTime, pageFrom } from '../size.ts';
import { tool } from '../tool.ts';

const gpuKind = z.object({
  model: z.string(),
  memoryMb: z.number().nullable(),
  count: z.number(),
  simulated: z.boolean(),
});

const nodeRow = z.object({
  name: z.string(),
  state: z.string().describe('online, or silent'),
  takesWork: z.boolean(),
  gpus: z.number(),
  gpusFree: z.number(),
  gpuKinds: z.array(gpuKind),
  gpuUtilizationPercent: z.number().nullable().describe('mean over its GPUs now; null: not read'),
  cpus: z.number(),
  cpusFree: z.number(),
  memoryMb: z.number(),
  memoryFreeMb: z.number(),
  conditions: z
    .array(z.string())
    .describe('what is wrong with it; the resource of the node has the evidence'),
});

export const nodeList = tool({
  name: 'node_list',
  title: 'List nodes',
  about:
    'Nodes of the cluster with their GPUs, what is free, how busy the GPUs are, and what is wrong with them.',
  verb: 'read',
  effect: 'read',
  idempotent: true,
  input: z.strictObject({
    onlyFree: z.boolean().default(false).describe('only nodes that take work and have a free GPU'),
    limit: limitOf(100, 20),
    cursor,
  }),
  output: z.object({
    nodes: z.array(nodeRow),
    gpus: z.number().describe('of all nodes that are online'),
    gpusFree: z.number(),
    nextCursor,
  }),
  async run(given, { api }) {
    const [nodes, readings] = await Promise.all([api.listNodes(), api.listTelemetry()]);
    const rows = nodes.map((node) =>
      rowOf(
        node,
        readings.find((each) => each.node === node.name),
      ),
    );
    const asked = given.onlyFree ? rows.filter((row) => row.takesWork && row.gpusFree > 0) : rows;
    const online = rows.filter(({ state }) => state === 'online');
    const sum = (pick: (row: z.input<typeof nodeRow>) => number) =>
      online.reduce((total, row) => total + pick(row), 0);
    const { page, nextCursor: next } = pageFrom(asked, given);
    const data = {
      nodes: [...page],
      gpus: sum(({ gpus }) => gpus),
      gpusFree: sum(({ gpusFree }) => gpusFree),
      nextCursor: next,
    };
    return {
      data,
      text: `${online.length} of ${rows.length} nodes are online; ${data.gpusFree} of ${data.gpus} GPUs are free.`,
    };
  },
});

function rowOf(node: NodeView, readings: NodeTelemetry | undefined): z.input<typeof nodeRow> {
  const { inventory, gpuUses, drainedGpuUuids } = node;
  const takesWork = node.state === 'online' && !node.drained && node.drain === null;
  const used = new Set([...gpuUses.map(({ uuid }) => uuid), ...drainedGpuUuids]);
  const gpusFree = inventory.gpus.filter(({ uuid }) => !used.has(uuid)).length;
  return {
    name: node.name,
    state: node.state,
    takesWork,
    gpus: inventory.gpus.length,
    gpusFree: takesWork ? gpusFree : 0,
    gpuKinds: kindsOf(inventory.gpus).slice(0, 4),
    gpuUtilizationPercent: meanOf(readings?.gpus.flatMap(({ utilization }) => utilization ?? []) ?? []),
    cpus: inventory.cpus,
    cpusFree: Math.max(0, inventory.cpus - node.cpusUsed),
    memoryMb: inventory.memoryMb,
    memoryFreeMb: Math.max(0, inventory.memoryMb - node.memoryUsedMb),
    conditions: node.conditions.slice(0, 4).map(({ kind, message }) => `${kind}: ${brief(message, 100)}`),
  };
}

function kindsOf(gpus: readonly Gpu[]): z.input<typeof gpuKind>[] {
  const groups = Map.groupBy(gpus, ({ model, memoryMb, simulated }) => `${model}/${memoryMb}/${simulated}`);
  return [...groups.values()].flatMap((group) => {
    const [first] = group;
    if (first === undefined) return [];
    const { model, memoryMb, simulated } = first;
    return [{ model: brief(model, 60), memoryMb, simulated, count: group.length }];
  });
}

function meanOf(values: readonly number[]): number | null {
  if (values.length === 0) return null;
  return Math.round(values.reduce((sum, value) => sum + value, 0) / values.length);
}

/** What is wrong with a node, for the resource of it. */
export function conditionsOf(node: NodeView): Readonly<Record<string, unknown>> {
  return {
    node: node.name,
    state: node.state,
    drained: node.drained,
    drain:
      node.drain === null ? null : { reason: brief(node.drain.reason), since: isoTime(node.drain.sinceMs) },
    conditions: node.conditions.slice(0, 12).map((each) => ({
      kind: each.kind,
      gpuUuid: each.gpuUuid,
      severity: each.severity,
      action: each.action,
      message: brief(each.message),
      evidence: brief(each.evidence),
      since: isoTime(each.sinceMs),
      count: each.count,
      clears: each.clears,
    })),
    conditionsNotShown: Math.max(0, node.conditions.length - 12),
  };
}
