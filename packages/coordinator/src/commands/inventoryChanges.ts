/** What has changed of a node's hardware, in words. */
import { isDeepStrictEqual } from 'node:util';
import type { DeviceLink, MachineFacts, NodeInventory } from '@muster/common/hardware';

/** Of one event. When a whole machine was exchanged, the inventory itself says more than a list of differences. */
const changesMax = 32;
const valueLengthMax = 200;

const unpublishedMachine: MachineFacts = {
  model: null,
  board: null,
  bios: null,
  disks: [],
  memoryModules: [],
};

/** Empty when the two are the same, in whatever order devices are listed. */
export function inventoryChanges(before: NodeInventory, after: NodeInventory): readonly string[] {
  const { gpus, nics, rdmaDevices, links, host, gpuDriver, machine, ...rest } = after;
  const { fileSystems = [], ...hostFacts } = host ?? {};
  const { fileSystems: fileSystemsBefore = [], ...hostFactsBefore } = before.host ?? {};
  const restBefore = Object.fromEntries(
    Object.keys(rest).map((name) => [name, before[name as keyof typeof rest]]),
  );
  const changes = [
    ...changesOfDevices(before.gpus, gpus, (gpu) => `GPU ${gpu.uuid}`),
    ...changesOfFields('GPU driver', before.gpuDriver, gpuDriver),
    ...changesOfDevices(before.nics, nics, (nic) => `NIC ${nic.name}`),
    ...changesOfDevices(
      before.rdmaDevices,
      rdmaDevices,
      ({ name, port }) => `RDMA device ${name} port ${port}`,
    ),
    ...(isDeepStrictEqual(inOrder(before.links), inOrder(links)) ? [] : ['other links between devices']),
    ...changesOfDevices(fileSystemsBefore, fileSystems, (each) => `file system ${each.mountPoint}`),
    ...changesOfFields('host', hostFactsBefore, hostFacts),
    ...changesOfFields('machine', before.machine ?? unpublishedMachine, machine ?? unpublishedMachine),
    ...changesOfFields('node', restBefore, rest),
  ];
  if (changes.length <= changesMax) return changes;
  return [...changes.slice(0, changesMax), `and ${changes.length - changesMax} more`];
}

function changesOfDevices<Device extends object>(
  before: readonly Device[],
  after: readonly Device[],
  nameOf: (device: Device) => string,
): readonly string[] {
  const earlier = new Map(before.map((device) => [nameOf(device), device]));
  const present = new Map(after.map((device) => [nameOf(device), device]));
  const gone = [...earlier.keys()].filter((name) => !present.has(name));
  return [
    ...gone.map((name) => `${cut(name)} is gone`),
    ...[...present].flatMap(([name, device]) => {
      const known = earlier.get(name);
      return known === undefined ? `${cut(name)} is new` : changesOfFields(name, known, device);
    }),
  ];
}

function changesOfFields(name: string, before: object, after: object): readonly string[] {
  const [earlier, now] = [new Map(Object.entries(before)), new Map(Object.entries(after))];
  return [...new Set([...earlier.keys(), ...now.keys()])]
    .filter((field) => !isDeepStrictEqual(earlier.get(field), now.get(field)))
    .map((field) => `${cut(name)}: ${field} ${shown(earlier.get(field))} → ${shown(now.get(field))}`);
}

function inOrder(links: readonly DeviceLink[]): readonly string[] {
  return links.map(({ from, to, kind }) => JSON.stringify([from, to, kind])).sort();
}

function shown(value: unknown): string {
  if (value === undefined || value === null) return 'unknown';
  return cut(typeof value === 'string' ? value : JSON.stringify(value));
}

function cut(text: string): string {
  return text.length <= valueLengthMax ? text : `${text.slice(0, valueLengthMax).toWellFormed()}…`;
}
