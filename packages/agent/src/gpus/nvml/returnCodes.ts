/** What NVML's return codes mean to us. Numbers from nvmlReturn_t in NVIDIA's nvml.h. */
import type { GpuProblem } from '../gpuSource.ts';

export const success = 0;
export const notFound = 6;
export const insufficientSize = 7;
export const timeout = 10;
/** Also what a call of a function answers that this library does not have. */
export const functionNotFound = 13;
export const gpuIsLost = 15;

export type ProblemKind = GpuProblem['kind'];

/** A call that failed for a reason that somebody has to know. */
export interface NvmlFailure {
  readonly kind: ProblemKind;
  readonly code: number;
  readonly call: string;
}

/** Codes for what is absent on this card, driver or state. All others mean that something is wrong. */
const absent: ReadonlySet<number> = new Set([
  2, // INVALID_ARGUMENT: this driver does not know the sensor or field
  3, // NOT_SUPPORTED
  6, // NOT_FOUND
  13, // FUNCTION_NOT_FOUND
  14, // CORRUPTED_INFOROM: the counters kept there
  21, // NO_DATA
  25, // ARGUMENT_VERSION_MISMATCH
  26, // DEPRECATED
  27, // NOT_READY
  29, // INVALID_STATE
]);

const kinds: Readonly<Record<number, ProblemKind>> = {
  4: 'no_permission',
  9: 'driver_not_loaded',
  12: 'driver_not_loaded',
  15: 'lost',
  16: 'reset_required',
  // The kernel keeps the device file from us: the rules of a control group.
  17: 'no_permission',
  18: 'driver_mismatch',
  28: 'lost',
};

/** @returns null: there is no such value here */
export function problemKindOf(code: number): ProblemKind | null {
  if (code === success || absent.has(code)) return null;
  return kinds[code] ?? 'unknown_error';
}

/** From grave to slight; of several failures of one card the gravest is reported. */
const byGravity: readonly ProblemKind[] = [
  'driver_mismatch',
  'driver_not_loaded',
  'lost',
  'reset_required',
  'hung',
  'unknown_error',
  'no_permission',
  'unreadable',
];

export function graver(one: NvmlFailure | null, other: NvmlFailure): NvmlFailure {
  if (one === null) return other;
  return byGravity.indexOf(other.kind) < byGravity.indexOf(one.kind) ? other : one;
}

/** Nothing more can be read of this card: each further call would only take time. */
export function endsReading(kind: ProblemKind): boolean {
  return kind === 'lost' || kind === 'reset_required' || isOfNode(kind);
}

/** Not one card's fault. */
export function isOfNode(kind: ProblemKind): boolean {
  return kind === 'driver_mismatch' || kind === 'driver_not_loaded';
}

export interface CardName {
  readonly index: number;
  readonly uuid: string | null;
  readonly pciBusId: string | null;
}

/** `GPU 3 at 00000000:9b:00.0` */
export function cardTitle({ index, pciBusId }: CardName): string {
  return pciBusId === null ? `GPU ${index}` : `GPU ${index} at ${pciBusId}`;
}

const evidenceOf = ({ call, code }: NvmlFailure) => `${call} returned ${code}`;

/** @param card null: the failure is of the driver as a whole */
export function nvmlProblem(failure: NvmlFailure, card: CardName | null): GpuProblem {
  const { kind } = failure;
  if (card === null || isOfNode(kind)) {
    const message = driverMessage(kind);
    return { kind, gpuUuid: null, pciBusId: null, message, evidence: evidenceOf(failure) };
  }
  const message = `${cardTitle(card)} ${cardMessages[kind] ?? 'failed without a reason'}`;
  return { kind, gpuUuid: card.uuid, pciBusId: card.pciBusId, message, evidence: evidenceOf(failure) };
}

const cardMessages: Partial<Readonly<Record<ProblemKind, string>>> = {
  lost: 'has fallen off the bus: drain the node and reboot it; look at the card if it happens again',
  reset_required: 'needs a reset: drain it, then run nvidia-smi --gpu-reset for it',
  no_permission:
    "is there, but the agent may not read it: allow /dev/nvidia* in its service or container's rules",
  unknown_error:
    'fails with an unknown error: look at the kernel log of this node, and restart the container if the agent runs in one',
};

const driverMessages: Partial<Readonly<Record<ProblemKind, string>>> = {
  driver_mismatch:
    "the NVIDIA driver's library and its kernel module are of different versions on this node: reboot it, or reload the module",
  driver_not_loaded:
    'the NVIDIA driver is not loaded on this node: load it with modprobe nvidia, or install it',
  no_permission:
    "the agent may not use the NVIDIA driver of this node: allow /dev/nvidia* in its service or container's rules",
};

function driverMessage(kind: ProblemKind): string {
  return (
    driverMessages[kind] ??
    'the NVIDIA driver of this node fails with an unknown error: look at its kernel log; a container that lost its devices has to be restarted'
  );
}
