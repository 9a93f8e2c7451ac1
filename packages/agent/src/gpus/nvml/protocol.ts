/** Messages between the agent and its reader of NVML: one JSON object per line. */
import type { DeviceLink, Gpu } from '@muster/common/hardware';
import type { GpuProblem, GpuSampling, XidEvent } from '../gpuSource.ts';
import type { CardName } from './returnCodes.ts';

/** To the reader; one at a time. */
export interface ReaderRequest {
  readonly id: number;
  readonly kind: 'list' | 'sample';
  /** Numbers of cards that are not to be touched. */
  readonly avoid: readonly number[];
}

/** From the reader. */
export type ReaderMessage =
  /** First of all, before the library is touched. `traceFd`: its `tracePage`; null: it could not make one. */
  | { readonly kind: 'started'; readonly traceFd: number | null }
  | { readonly kind: 'opened'; readonly missing: readonly string[] }
  /** The library cannot be loaded; the reader ends. */
  | { readonly kind: 'unavailable'; readonly reason: string }
  | { readonly kind: 'listed'; readonly id: number; readonly listing: NvmlListing }
  | { readonly kind: 'sampled'; readonly id: number; readonly sampling: NvmlSampling }
  | { readonly kind: 'xid'; readonly event: XidEvent };

export interface NvmlListing {
  /** Devices that can be scheduled. */
  readonly gpus: readonly Gpu[];
  readonly driverVersion: string | null;
  readonly cudaVersion: string | null;
  readonly links: readonly DeviceLink[];
  /** All cards that the driver let us open. */
  readonly cards: readonly CardName[];
  /** Cards that it counts and did not let us open. */
  readonly closedCards: readonly ClosedCard[];
  readonly hasGpm: boolean;
  readonly driverProblem: GpuProblem | null;
}

export interface ClosedCard {
  readonly index: number;
  readonly problem: GpuProblem;
}

/** Of the cards that the last listing opened. */
export interface NvmlSampling extends GpuSampling {
  /** The driver itself failed: only a new process can load another library or start over with it. */
  readonly driverProblem: GpuProblem | null;
}

/** The limit of a line in characters. Every message is far shorter; a longer line is not from a reader of ours. */
export const readerLineLengthMax = 8 * 1024 * 1024;

/**
 * Where the reader is: the number of the card and of the function that it is about to call, as 32-bit integers in a page of
 * memory that the agent can read while the reader hangs, and still when it has crashed. To note it is one store to memory.
 */
export const tracePage = { bytes: 8, card: 0, call: 1 } as const;

/** No card, or no call. */
export const none = -1;
