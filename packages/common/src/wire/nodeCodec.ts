/** Messages about nodes, their hardware and conditions ↔ words of the domain. */
import { type Condition, conditionActions, conditionEnds, conditionSeverities } from '../conditions.ts';
import {
  emptyInventory,
  type Gpu,
  type GpuDriver,
  gpuSourceNames,
  type MachineFacts,
  type Nic,
  type NodeInventory,
  profilingSourceNames,
  type RdmaDevice,
} from '../hardware.ts';
import { nodeStates } from '../states.ts';
import type { CredentialView, Drain, NodeTask, NodeView, OrphanTask } from '../views.ts';
import { pathBandwidth } from './gangCodec.ts';
import { enumMapping, knownWord, message, needed, orElse, type Read, word } from './mapping.ts';
import { taskRef } from './taskRef.ts';

const nicStates: readonly Nic['state'][] = ['up', 'down', 'unknown'];

const gpuDriver = message<GpuDriver>()('GpuDriver', {
  source: word(gpuSourceNames, 'none'),
  profilingSource: knownWord(profilingSourceNames),
});
const machine = message<MachineFacts>()('MachineFacts', {
  disks: message<MachineFacts['disks'][number]>()('MachineDisk'),
  memoryModules: message<MachineFacts['memoryModules'][number]>()('MemoryModule'),
});
const everyInventory = message<NodeInventory>()('NodeInventory', {
  gpus: message<Gpu>()('Gpu'),
  gpuDriver: orElse(gpuDriver, emptyInventory.gpuDriver),
  nics: message<Nic>()('Nic', { state: word(nicStates, 'unknown') }),
  rdmaDevices: message<RdmaDevice>()('RdmaDevice'),
  machine,
});
const inventory = {
  toWire: everyInventory.toWire,
  /** A UUID is one GPU, however often it is reported: counted twice, it would be given away twice. */
  fromWire(wire: Read<'NodeInventory'>): NodeInventory {
    const value = everyInventory.fromWire(wire);
    return { ...value, gpus: [...new Map(value.gpus.map((gpu) => [gpu.uuid, gpu])).values()] };
  },
};
export const { toWire: inventoryToWire } = inventory;

export function inventoryFromWire(wire: Read<'NodeInventory'> | null): NodeInventory {
  return wire === null ? emptyInventory : inventory.fromWire(wire);
}

const condition = message<Condition>()('Condition', {
  severity: word(conditionSeverities, 'warning'),
  action: word(conditionActions, 'note'),
  clears: word(conditionEnds, 'by_hand'),
  task: taskRef,
});
export const { toWire: conditionToWire, fromWire: conditionFromWire } = condition;

export const { toWire: nodeToWire, fromWire: nodeFromWire } = message<NodeView>()('Node', {
  state: enumMapping('NODE_STATE_', nodeStates, 'silent'),
  inventory: orElse(inventory, emptyInventory),
  conditions: condition,
  bandwidths: pathBandwidth,
  drain: message<Drain>()('Drain'),
  tasks: message<NodeTask>()('NodeTask', { task: needed(taskRef) }),
  orphans: message<OrphanTask>()('OrphanTask', { task: needed(taskRef) }),
});

export const { fromWire: credentialFromWire } = message<CredentialView>()('Credential');
