/**
 * GPU facts from nvidia-smi, for nodes whose NVML the agent cannot load. An inventory is `-q -x` with `topo -m`; a
 * sample is one `--query-gpu`, or `-q -x` where a card is in MIG mode, since the CSV knows nothing of instances.
 *
 * One dead card can make the whole program fail. The cards that an answer lacks are then asked one by one,
 * which singles the dead one out.
 */

import { Program } from '../../host/program.ts';
import type { GpuListing, GpuProblem, GpuSampling, GpuSource } from '../gpuSource.ts';
import { emptySmiInventory, type Inventory, readInventory } from './lister.ts';
import { NvidiaSmi } from './nvidiaSmi.ts';
import { SmiSampler } from './sampler.ts';

export interface NvidiaSmiOptions {
  /** A path, or a name that is looked up in the PATH of `environment`. */
  readonly path: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Of one call for samples as CSV. */
  readonly deadlineMs: number;
  /** Of one call for XML (inventory, samples of MIG instances), which can take 6 s on a node with many cards. */
  readonly inventoryDeadlineMs: number;
  /** Monotonic; distinguishes a start that is cheap from one that is not. */
  readonly nowMs: () => number;
  /** Of one answer; more than that is no answer. */
  readonly outputBytesMax?: number;
  /** Ends a process group; see {@link Program}. */
  readonly killGroup?: (pid: number) => void;
}

/** The document of 16 cards with a thousand processes has 1 MiB. */
const usualOutputBytesMax = 4 * 1024 * 1024;
/** Cards that were ever seen; a program that invents new ones must not fill the memory. */
const rememberedCardsMax = 256;

export function createNvidiaSmiSource(options: NvidiaSmiOptions): GpuSource {
  const { path, environment, killGroup, outputBytesMax = usualOutputBytesMax } = options;
  const smi = new NvidiaSmi(
    new Program({ path, environment, outputBytesMax, ...(killGroup === undefined ? {} : { killGroup }) }),
  );
  return new NvidiaSmiSource(smi, options);
}

class NvidiaSmiSource implements GpuSource {
  readonly name = 'nvidia-smi';
  readonly onXid = null;
  private readonly smi: NvidiaSmi;
  private readonly inventoryDeadlineMs: number;
  private readonly sampler: SmiSampler;
  private inventory: Inventory = emptySmiInventory;
  /** By PCI id: a dead card shows where it is, but not its UUID. */
  private readonly uuids = new Map<string, string>();

  constructor(smi: NvidiaSmi, { deadlineMs, inventoryDeadlineMs, nowMs }: NvidiaSmiOptions) {
    this.smi = smi;
    this.inventoryDeadlineMs = inventoryDeadlineMs;
    this.sampler = new SmiSampler({ smi, deadlineMs, documentDeadlineMs: inventoryDeadlineMs, nowMs });
  }

  async list(): Promise<GpuListing> {
    this.inventory = await readInventory(this.smi, this.inventoryDeadlineMs, this.inventory);
    for (const { uuid, card } of this.inventory.cards) {
      if (card.pciBusId === null || this.uuids.size >= rememberedCardsMax) continue;
      this.uuids.set(card.pciBusId, uuid);
    }
    const { listing } = this.inventory;
    return { ...listing, problems: listing.problems.map((problem) => this.withUuid(problem)) };
  }

  async sample(): Promise<GpuSampling> {
    const { samples, problems } = await this.sampler.sample(this.inventory);
    return { samples, problems: problems.map((problem) => this.withUuid(problem)) };
  }

  close(): Promise<void> {
    return this.smi.close();
  }

  private withUuid(problem: GpuProblem): GpuProblem {
    const { gpuUuid, pciBusId } = problem;
    if (gpuUuid !== null || pciBusId === null) return problem;
    return { ...problem, gpuUuid: this.uuids.get(pciBusId) ?? null };
  }
}
