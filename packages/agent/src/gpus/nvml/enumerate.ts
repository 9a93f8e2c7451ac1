/** Which cards the driver has, and their MIG instances. */
import type { Gpu, MigInstance } from '@muster/common/hardware';
import { readNumaNode, toSysfsAddress } from '../../host/kernelFiles.ts';
import type { GpuProblem } from '../gpuSource.ts';
import type { Calls } from './calls.ts';
import type { ClosedCard } from './protocol.ts';
import { type CardName, isOfNode, nvmlProblem } from './returnCodes.ts';
import {
  attributes,
  maskToList,
  nameSize,
  pciInfo,
  readString,
  readU64,
  serialSize,
  toMebibytes,
  uuidSize,
} from './structs.ts';

/** What can be scheduled: a card, or one of its instances. */
export interface Device {
  readonly handle: number;
  readonly gpu: Gpu;
}

export interface NvmlCard extends CardName {
  readonly handle: number;
  readonly uuid: string;
  /** `domain:bus:device` as numbers, to compare with the other end of a link. */
  readonly pciKey: string | null;
  readonly isMig: boolean;
  /** The card itself, or in MIG mode its instances. */
  readonly devices: readonly Device[];
}

export interface Enumeration {
  readonly cards: readonly NvmlCard[];
  readonly closedCards: readonly ClosedCard[];
  /** The driver as a whole failed. */
  readonly driverProblem: GpuProblem | null;
}

/** More than any machine has. */
const cardsMax = 256;
const instancesMax = 64;

/** @param avoid numbers of cards that are not to be touched */
export function enumerateCards(calls: Calls, avoid: ReadonlySet<number>): Enumeration {
  calls.begin(-1);
  const count = calls.u32('nvmlDeviceGetCount_v2');
  if (count === null) {
    const failure = calls.failure ?? { kind: 'unknown_error', code: -1, call: 'nvmlDeviceGetCount_v2' };
    return { cards: [], closedCards: [], driverProblem: nvmlProblem(failure, null) };
  }
  const cards: NvmlCard[] = [];
  const closedCards: ClosedCard[] = [];
  for (let index = 0; index < Math.min(count, cardsMax); index += 1) {
    if (avoid.has(index)) continue;
    calls.begin(index);
    const card = openCard(calls, index);
    const { failure } = calls;
    if (card !== null && !calls.isOver) cards.push(card);
    // Of a card that opened, a value that could not be read is reported with its samples.
    if (failure === null || (card !== null && !calls.isOver)) continue;
    const problem = nvmlProblem(failure, card ?? { index, uuid: null, pciBusId: null });
    if (isOfNode(problem.kind)) return { cards, closedCards, driverProblem: problem };
    closedCards.push({ index, problem });
  }
  return { cards, closedCards, driverProblem: null };
}

/** @returns null: it has no handle or no UUID, so nobody could use it */
function openCard(calls: Calls, index: number): NvmlCard | null {
  const handle = calls.pointer('nvmlDeviceGetHandleByIndex_v2', index);
  if (handle === null) return null;
  const uuid = calls.string('nvmlDeviceGetUUID', handle, uuidSize);
  if (uuid === null) return null;
  const pci = readPci(calls, handle);
  const isMig = calls.u32('nvmlDeviceGetMigMode', handle, calls.out.subarray(64)) === 1;
  const gpu = (): Gpu => ({
    uuid,
    model: calls.string('nvmlDeviceGetName', handle, nameSize) ?? '',
    memoryMb: readMemorySize(calls, handle),
    simulated: false,
    index,
    pciBusId: pci?.busId ?? null,
    numaNode: nearestNumaNode(calls, handle, pci?.busId ?? null),
    cpuAffinity: readCpuAffinity(calls, handle),
    serial: calls.string('nvmlDeviceGetSerial', handle, serialSize),
    mig: null,
  });
  const whole = gpu();
  return {
    index,
    handle,
    uuid,
    pciBusId: whole.pciBusId,
    pciKey: pci?.key ?? null,
    isMig,
    devices: isMig ? openInstances(calls, handle, whole) : [{ handle, gpu: whole }],
  };
}

function openInstances(calls: Calls, cardHandle: number, card: Gpu): readonly Device[] {
  const slots = calls.u32('nvmlDeviceGetMaxMigDeviceCount', cardHandle) ?? 0;
  const devices: Device[] = [];
  for (let slot = 0; slot < Math.min(slots, instancesMax); slot += 1) {
    // An empty slot answers NOT_FOUND; there may be others behind it.
    const handle = calls.pointer('nvmlDeviceGetMigDeviceHandleByIndex', cardHandle, slot);
    if (handle === null) continue;
    const uuid = calls.string('nvmlDeviceGetUUID', handle, uuidSize);
    const gpuInstanceId = calls.u32('nvmlDeviceGetGpuInstanceId', handle);
    const computeInstanceId = calls.u32('nvmlDeviceGetComputeInstanceId', handle);
    if (uuid === null || gpuInstanceId === null || computeInstanceId === null) continue;
    const shape = readShape(calls, handle);
    const profile = readProfileName(calls, handle) ?? shape?.profile ?? '';
    const mig: MigInstance = { parentUuid: card.uuid, profile, gpuInstanceId, computeInstanceId };
    devices.push({ handle, gpu: { ...card, uuid, memoryMb: shape?.memoryMb ?? null, mig } });
  }
  return devices;
}

/** The name of an instance ends in that of its profile: `… MIG 1g.10gb`. */
function readProfileName(calls: Calls, handle: number): string | null {
  const name = calls.string('nvmlDeviceGetName', handle, nameSize);
  return name === null ? null : (/ MIG (\S+)$/.exec(name)?.[1] ?? null);
}

function readShape(
  calls: Calls,
  handle: number,
): { readonly profile: string; readonly memoryMb: number | null } | null {
  const { out } = calls;
  if (!calls.run('nvmlDeviceGetAttributes_v2', handle, out)) return null;
  const memoryMb = readU64(out, attributes.memoryMb);
  return {
    profile: profileOf(
      out.readUInt32LE(attributes.gpuSlices),
      out.readUInt32LE(attributes.computeSlices),
      memoryMb,
    ),
    memoryMb,
  };
}

/** `1g.10gb`; `1c.2g.20gb` where the compute instance has less than the GPU instance. */
export function profileOf(gpuSlices: number, computeSlices: number, memoryMb: number | null): string {
  const compute = computeSlices < gpuSlices ? `${computeSlices}c.` : '';
  const memory = memoryMb === null ? '' : `.${Math.ceil(memoryMb / 1024)}gb`;
  return `${compute}${gpuSlices}g${memory}`;
}

export function readPci(
  calls: Calls,
  handle: number,
): { readonly busId: string | null; readonly key: string } | null {
  if (!calls.run('nvmlDeviceGetPciInfo_v3', handle, calls.out)) return null;
  const busId = readString(calls.out, pciInfo.busId, pciInfo.busIdSize).toLowerCase();
  return {
    busId: /^[\da-f]{4,8}:[\da-f]{2}:[\da-f]{2}\.\d$/.test(busId) ? busId : null,
    key: pciKey(calls.out),
  };
}

export function pciKey(info: Buffer): string {
  const part = (offset: number) => info.readUInt32LE(offset);
  return `${part(pciInfo.domain)}:${part(pciInfo.bus)}:${part(pciInfo.device)}`;
}

function readMemorySize(calls: Calls, handle: number): number | null {
  return calls.run('nvmlDeviceGetMemoryInfo', handle, calls.out) ? toMebibytes(readU64(calls.out, 0)) : null;
}

// ---- Where it sits

const cpuMaskWords = 16;
const nodeMaskWords = 4;

function readCpuAffinity(calls: Calls, handle: number): string | null {
  const mask = Buffer.alloc(cpuMaskWords * 8);
  return calls.run('nvmlDeviceGetCpuAffinity', handle, cpuMaskWords, mask) ? maskToList(mask) : null;
}

/**
 * The node of the memory nearest to the GPU. (nvmlDeviceGetNumaNodeId is another thing: the node that the memory of a GPU
 * forms itself, on machines where it does.)
 */
function nearestNumaNode(calls: Calls, handle: number, busId: string | null): number | null {
  const mask = Buffer.alloc(nodeMaskWords * 8);
  const nearest = 0;
  if (calls.run('nvmlDeviceGetMemoryAffinity', handle, nodeMaskWords, mask, nearest)) {
    const first = maskToList(mask)?.match(/^\d+/)?.[0];
    if (first !== undefined) return Number(first);
  }
  // What the kernel knows of the slot.
  return busId === null ? null : readNumaNode(`/sys/bus/pci/devices/${toSysfsAddress(busId)}`);
}
