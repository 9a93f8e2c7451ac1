/** Messages about nodes, their hardware and conditions ↔ domain words. */
import { type Condition, conditionActions, conditionEnds, conditionSeverities } from '../conditions.ts';
import type { Condition__Output, Condition as WireCondition } from '../gen/muster/v1/Condition.ts';
import type { Drain__Output, Drain as WireDrain } from '../gen/muster/v1/Drain.ts';
import type { Gpu__Output, Gpu as WireGpu } from '../gen/muster/v1/Gpu.ts';
import type {
  MachineFacts__Output,
  MachineFacts as WireMachineFacts,
} from '../gen/muster/v1/MachineFacts.ts';
import type { Nic__Output } from '../gen/muster/v1/Nic.ts';
import type { Node__Output, Node as WireNode } from '../gen/muster/v1/Node.ts';
import type {
  NodeInventory__Output,
  NodeInventory as WireInventory,
} from '../gen/muster/v1/NodeInventory.ts';
import type { NodeTask__Output, NodeTask as WireNodeTask } from '../gen/muster/v1/NodeTask.ts';
import type { RdmaDevice__Output } from '../gen/muster/v1/RdmaDevice.ts';
import {
  emptyInventory,
  type Gpu,
  gpuSourceNames,
  type HostFacts,
  type MachineFacts,
  type Nic,
  type NodeInventory,
  profilingSourceNames,
  type RdmaDevice,
} from '../hardware.ts';
import { nodeStates } from '../states.ts';
import type { Drain, NodeTask, NodeView } from '../views.ts';
import { enumMapping, known } from './enums.ts';
import { pathBandwidthFromWire, pathBandwidthToWire } from './gangCodec.ts';
import { taskRefFromWire, taskRefToWire } from './taskRef.ts';

const nodeStateWire = enumMapping('NODE_STATE_', nodeStates, 'silent');
const nicStates: readonly Nic['state'][] = ['up', 'down', 'unknown'];

function gpuToWire(gpu: Gpu): WireGpu {
  const { index, numaNode } = gpu;
  return {
    uuid: gpu.uuid,
    model: gpu.model,
    memoryMb: gpu.memoryMb ?? 0,
    simulated: gpu.simulated,
    ...(index === null ? {} : { index }),
    pciBusId: gpu.pciBusId ?? '',
    ...(numaNode === null ? {} : { numaNode }),
    cpuAffinity: gpu.cpuAffinity ?? '',
    mig: gpu.mig === null ? null : { ...gpu.mig },
    serial: gpu.serial ?? '',
  };
}

function gpuFromWire(wire: Gpu__Output): Gpu {
  return {
    uuid: wire.uuid,
    model: wire.model,
    memoryMb: wire.memoryMb || null,
    simulated: wire.simulated,
    index: wire.index ?? null,
    pciBusId: wire.pciBusId || null,
    numaNode: wire.numaNode ?? null,
    cpuAffinity: wire.cpuAffinity || null,
    serial: wire.serial || null,
    mig: wire.mig,
  };
}

export function inventoryToWire(inventory: NodeInventory): WireInventory {
  const { gpuDriver } = inventory;
  return {
    gpus: inventory.gpus.map(gpuToWire),
    cpus: inventory.cpus,
    memoryMb: inventory.memoryMb,
    addresses: [...inventory.addresses],
    labels: { ...inventory.labels },
    drivers: [...inventory.drivers],
    gpuDriver: {
      source: gpuDriver.source,
      profilingSource: gpuDriver.profilingSource ?? '',
      driverVersion: gpuDriver.driverVersion ?? '',
      cudaVersion: gpuDriver.cudaVersion ?? '',
    },
    links: inventory.links.map((link) => ({ ...link })),
    nics: inventory.nics.map(({ speedMbps, pciBusId, numaNode, addresses, ...rest }) => ({
      ...rest,
      addresses: [...addresses],
      pciBusId: pciBusId ?? '',
      ...(speedMbps === null ? {} : { speedMbps }),
      ...(numaNode === null ? {} : { numaNode }),
    })),
    rdmaDevices: inventory.rdmaDevices.map(({ rateGbps, nic, pciBusId, numaNode, ...rest }) => ({
      ...rest,
      nic: nic ?? '',
      pciBusId: pciBusId ?? '',
      ...(rateGbps === null ? {} : { rateGbps }),
      ...(numaNode === null ? {} : { numaNode }),
    })),
    host:
      inventory.host === null
        ? null
        : { ...inventory.host, fileSystems: inventory.host.fileSystems.map((each) => ({ ...each })) },
    machine: inventory.machine === null ? null : machineToWire(inventory.machine),
  };
}

function machineToWire({ model, board, bios, disks, memoryModules }: MachineFacts): WireMachineFacts {
  return {
    model: model ?? '',
    board: board ?? '',
    bios: bios ?? '',
    disks: disks.map((disk) => ({ ...disk, sizeBytes: disk.sizeBytes ?? 0 })),
    memoryModules: memoryModules.map((module) => ({ ...module, clockMhz: module.clockMhz ?? 0 })),
  };
}

function machineFromWire({ model, board, bios, disks, memoryModules }: MachineFacts__Output): MachineFacts {
  return {
    model: model || null,
    board: board || null,
    bios: bios || null,
    disks: disks.map((disk) => ({ ...disk, sizeBytes: disk.sizeBytes || null })),
    memoryModules: memoryModules.map((module) => ({ ...module, clockMhz: module.clockMhz || null })),
  };
}

export function inventoryFromWire(wire: NodeInventory__Output | null): NodeInventory {
  if (wire === null) return emptyInventory;
  // A UUID is one GPU, however often it is reported: counted twice, it would be given away twice.
  const gpus = new Map(wire.gpus.map((gpu) => [gpu.uuid, gpu]));
  return {
    gpus: Array.from(gpus.values(), gpuFromWire),
    cpus: wire.cpus,
    memoryMb: wire.memoryMb,
    addresses: wire.addresses,
    labels: wire.labels,
    drivers: wire.drivers,
    gpuDriver: {
      source: known(gpuSourceNames, wire.gpuDriver?.source ?? '', 'none'),
      profilingSource: profilingSourceNames.find((name) => name === wire.gpuDriver?.profilingSource) ?? null,
      driverVersion: wire.gpuDriver?.driverVersion || null,
      cudaVersion: wire.gpuDriver?.cudaVersion || null,
    },
    links: wire.links,
    nics: wire.nics.map(nicFromWire),
    rdmaDevices: wire.rdmaDevices.map(rdmaDeviceFromWire),
    host: wire.host satisfies HostFacts | null,
    machine: wire.machine === null ? null : machineFromWire(wire.machine),
  };
}

function nicFromWire(wire: Nic__Output): Nic {
  return {
    name: wire.name,
    state: known(nicStates, wire.state, 'unknown'),
    speedMbps: wire.speedMbps ?? null,
    addresses: wire.addresses,
    pciBusId: wire.pciBusId || null,
    numaNode: wire.numaNode ?? null,
    isVirtual: wire.isVirtual,
  };
}

function rdmaDeviceFromWire(wire: RdmaDevice__Output): RdmaDevice {
  return {
    name: wire.name,
    port: wire.port,
    linkLayer: wire.linkLayer,
    state: wire.state,
    rateGbps: wire.rateGbps ?? null,
    nic: wire.nic || null,
    pciBusId: wire.pciBusId || null,
    numaNode: wire.numaNode ?? null,
  };
}

export function conditionToWire({ gpuUuid, task, ...condition }: Condition): WireCondition {
  return { ...condition, gpuUuid: gpuUuid ?? '', task: task === null ? null : taskRefToWire(task) };
}

export function conditionFromWire(wire: Condition__Output): Condition {
  return {
    kind: wire.kind,
    gpuUuid: wire.gpuUuid || null,
    severity: known(conditionSeverities, wire.severity, 'warning'),
    action: known(conditionActions, wire.action, 'note'),
    message: wire.message,
    evidence: wire.evidence,
    sinceMs: wire.sinceMs,
    lastSeenAtMs: wire.lastSeenAtMs,
    count: wire.count,
    clears: known(conditionEnds, wire.clears, 'by_hand'),
    task: taskRefFromWire(wire.task),
  };
}

export function nodeToWire(node: NodeView): WireNode {
  return {
    name: node.name,
    state: nodeStateWire.toWire(node.state),
    inventory: inventoryToWire(node.inventory),
    agentVersion: node.agentVersion,
    joinedAtMs: node.joinedAtMs,
    ...(node.silentForMs === null ? {} : { silentForMs: node.silentForMs }),
    gpuUses: node.gpuUses.map((use) => ({ ...use })),
    cpusUsed: node.cpusUsed,
    memoryUsedMb: node.memoryUsedMb,
    conditions: node.conditions.map(conditionToWire),
    drained: node.drained,
    drainedGpuUuids: [...node.drainedGpuUuids],
    ...(node.fencedInMs === null ? {} : { fencedInMs: node.fencedInMs }),
    bandwidths: node.bandwidths.map(pathBandwidthToWire),
    drain: node.drain === null ? null : drainToWire(node.drain),
    tasks: node.tasks.map(nodeTaskToWire),
    orphans: node.orphans.map(({ task, gpuUuids, ...rest }) => ({
      ...{ task: taskRefToWire(task), gpuUuids: [...gpuUuids], ...rest },
    })),
  };
}

export function nodeFromWire(wire: Node__Output): NodeView {
  return {
    name: wire.name,
    state: nodeStateWire.fromWire(wire.state),
    inventory: inventoryFromWire(wire.inventory),
    agentVersion: wire.agentVersion,
    joinedAtMs: wire.joinedAtMs,
    silentForMs: wire.silentForMs ?? null,
    gpuUses: wire.gpuUses,
    cpusUsed: wire.cpusUsed,
    memoryUsedMb: wire.memoryUsedMb,
    conditions: wire.conditions.map(conditionFromWire),
    drained: wire.drained,
    drainedGpuUuids: wire.drainedGpuUuids,
    fencedInMs: wire.fencedInMs ?? null,
    bandwidths: wire.bandwidths.map(pathBandwidthFromWire),
    drain: wire.drain === null ? null : drainFromWire(wire.drain),
    tasks: wire.tasks.flatMap(nodeTaskFromWire),
    orphans: wire.orphans.flatMap(({ task: ref, name, gpuUuids, frozen }) => {
      const task = taskRefFromWire(ref);
      return task === null ? [] : [{ task, name, gpuUuids, frozen }];
    }),
  };
}

function nodeTaskToWire({ task, stopAtMs, ...rest }: NodeTask): WireNodeTask {
  return { task: taskRefToWire(task), ...rest, ...(stopAtMs === null ? {} : { stopAtMs }) };
}

function nodeTaskFromWire({ task: wire, stopAtMs, ...rest }: NodeTask__Output): readonly NodeTask[] {
  const task = taskRefFromWire(wire);
  if (task === null) return [];
  const { name, gpus, cpus, stopping } = rest;
  return [{ task, name, gpus, cpus, stopAtMs: stopAtMs ?? null, stopping }];
}

function drainFromWire({ reason, sinceMs, deadlineMs }: Drain__Output): Drain {
  return { reason, sinceMs, deadlineMs: deadlineMs ?? null };
}

function drainToWire({ reason, sinceMs, deadlineMs }: Drain): WireDrain {
  return { reason, sinceMs, ...(deadlineMs === null ? {} : { deadlineMs }) };
}
