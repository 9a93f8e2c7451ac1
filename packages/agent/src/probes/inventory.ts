/** What this node has to offer, as the coordinator schedules by it. */
import { availableParallelism, networkInterfaces, totalmem } from 'node:os';
import type { Gpu, NodeInventory } from '@muster/common/views';
import type { AgentOptions } from '../options.ts';

export function buildInventory(
  options: AgentOptions,
  gpus: readonly Gpu[],
  drivers: readonly string[],
): NodeInventory {
  return {
    gpus,
    cpus: options.cpus ?? availableParallelism(),
    memoryMb: Math.floor(totalmem() / (1024 * 1024)),
    addresses: nodeAddresses(options.coordinator),
    labels: options.labels,
    drivers,
  };
}

/** Where the other nodes reach this one. With a coordinator on loopback every node is this machine. */
function nodeAddresses(coordinator: string): readonly string[] {
  if (/^(127\.|localhost:|\[::1\])/.test(coordinator)) return ['127.0.0.1'];
  return Object.entries(networkInterfaces())
    .filter(([name]) => !/^(lo|docker|br-|veth|virbr|cni|flannel)/.test(name))
    .flatMap(([, addresses]) => addresses ?? [])
    .filter((address) => address.family === 'IPv4' && !address.internal)
    .map((address) => address.address);
}
