/** Which sources this node's GPUs are read from: what the options force, else the best that answers here. */

import { withDeadline } from '@muster/common/async';
import type { Clock } from '@muster/common/clock';
import { findProgram } from '@muster/common/files';
import type { Gpu, ProfilingSourceName } from '@muster/common/hardware';
import type { Logger } from '@muster/common/log';
import type { AgentOptions } from '../options.ts';
import { createDmonSource } from './dcgm/dmonSource.ts';
import { createDcgmExporterSource } from './dcgm/exporterSource.ts';
import { emptyListing, type GpuSource, type ProfilingSource } from './gpuSource.ts';
import { createNvidiaSmiSource } from './nvidiaSmi/source.ts';
import { createNvmlSource, type NvmlSource } from './nvml/source.ts';
import { createSimulatedSource, type SimulatedState } from './simulated.ts';

export type SourceOptions = Pick<
  AgentOptions,
  | 'name'
  | 'gpus'
  | 'gpuSource'
  | 'profilingSource'
  | 'nvidiaSmiPath'
  | 'nvmlLibrary'
  | 'nvmlReaderCommand'
  | 'dcgmExporterUrl'
  | 'dcgmiPath'
>;

export interface SourceParts {
  readonly log: Logger;
  readonly clock: Clock;
  /** PATH: where nvidia-smi and dcgmi are looked for. */
  readonly searchPath: string;
  /** LD_LIBRARY_PATH, by which some hosts find the driver's libraries; null: not set. */
  readonly libraryPath: string | null;
  /** UUIDs of the GPUs that tasks hold now. */
  readonly busyGpus: () => ReadonlySet<string>;
  /** As last listed. */
  readonly listedGpus: () => readonly Gpu[];
  /** What simulated GPUs do, by index, while tasks hold them; default: they are busy. */
  readonly simulatedStates?: () => ReadonlyMap<number, SimulatedState>;
}

export interface OpenedSources {
  readonly source: GpuSource;
  /** Beside the source; null: the source has its own, or nobody measures it. */
  readonly profiling: ProfilingSource | null;
  /** Who measures activity, as far as that is known by now. */
  readonly profilingName: () => ProfilingSourceName | null;
}

/** A driver that takes longer than this to answer is there, and has a problem. */
const firstAnswerMs = 10_000;
/** Of a source that is not used after all. What hangs in the kernel is never gone, and the others must not wait for it. */
const closeMs = 2_000;
/** Of all that one reading may ask of nvidia-smi. */
export const nvidiaSmiReadingMs = 35_000;
/** Of one call of nvidia-smi; without persistence mode each start initialises every card. */
const sampleDeadlineMs = 10_000;
const inventoryDeadlineMs = 30_000;

export async function openSources(options: SourceOptions, parts: SourceParts): Promise<OpenedSources> {
  if (options.gpus.kind === 'simulated') {
    const source = simulated(options.name, options.gpus.count, parts);
    return { source, profiling: null, profilingName: () => null };
  }
  const profiling = await openProfiling(options, parts);
  if (profiling !== null) {
    const source = await openDetected(options, parts, false);
    return { source, profiling, profilingName: () => profiling.name };
  }
  const source = await openDetected(options, parts, true);
  const own = 'profilingSource' in source ? source : null;
  return { source, profiling, profilingName: () => own?.profilingSource ?? null };
}

function simulated(nodeName: string, count: number, parts: SourceParts): GpuSource {
  const { clock, busyGpus, simulatedStates: states } = parts;
  return createSimulatedSource({
    nodeName,
    count,
    nowMs: () => clock.monotonicMs(),
    holders: busyGpus,
    ...(states === undefined ? {} : { states }),
  });
}

async function openDetected(
  options: SourceOptions,
  parts: SourceParts,
  mayUseGpm: boolean,
): Promise<GpuSource | NvmlSource> {
  const { gpuSource } = options;
  if (gpuSource !== 'nvidia-smi') {
    const nvml = nvmlSource(options, parts, mayUseGpm);
    if (gpuSource === 'nvml' || (await isThere(nvml))) return nvml;
    await withDeadline(nvml.close(), closeMs);
  }
  const isInstalled = findProgram(options.nvidiaSmiPath, parts.searchPath) !== null;
  return gpuSource === 'nvidia-smi' || isInstalled ? nvidiaSmiSource(options, parts) : noGpus;
}

export function nvmlSource(options: SourceOptions, { log, clock }: SourceParts, mayUseGpm: boolean) {
  return createNvmlSource({
    library: options.nvmlLibrary,
    command: options.nvmlReaderCommand,
    gpm: mayUseGpm && (options.profilingSource === 'auto' || options.profilingSource === 'gpm'),
    log,
    clock,
  });
}

export function nvidiaSmiSource(options: SourceOptions, parts: SourceParts): GpuSource {
  const { clock, searchPath, libraryPath } = parts;
  return createNvidiaSmiSource({
    path: options.nvidiaSmiPath,
    environment: { PATH: searchPath, ...(libraryPath === null ? {} : { LD_LIBRARY_PATH: libraryPath }) },
    deadlineMs: sampleDeadlineMs,
    inventoryDeadlineMs,
    nowMs: () => clock.monotonicMs(),
  });
}

/** The library loads, whatever the driver behind it then answers. */
async function isThere(source: GpuSource): Promise<boolean> {
  try {
    await withDeadline(source.list(), firstAnswerMs);
    return true;
  } catch {
    return false;
  }
}

async function openProfiling(options: SourceOptions, parts: SourceParts): Promise<ProfilingSource | null> {
  switch (options.profilingSource) {
    case 'off':
    case 'gpm':
      return null;
    case 'dcgm-exporter':
      return exporterSource(options, parts);
    case 'dcgmi':
      return dmonSource(options, parts);
    case 'auto': {
      const exporter = exporterSource(options, parts);
      if (await answers(exporter)) return exporter;
      await withDeadline(exporter.close(), closeMs);
      if (findProgram(options.dcgmiPath, parts.searchPath) === null) return null;
      const dmon = dmonSource(options, parts);
      if (await answers(dmon)) return dmon;
      await withDeadline(dmon.close(), closeMs);
      return null;
    }
    default: {
      const never: never = options.profilingSource;
      return never;
    }
  }
}

export function exporterSource(options: SourceOptions, { listedGpus }: SourceParts): ProfilingSource {
  return createDcgmExporterSource({ url: options.dcgmExporterUrl, devices: listedGpus });
}

export function dmonSource(options: SourceOptions, { clock, searchPath }: SourceParts): ProfilingSource {
  return createDmonSource({ dcgmiPath: options.dcgmiPath, searchPath, clock });
}

async function answers(source: ProfilingSource): Promise<boolean> {
  try {
    return (await withDeadline(source.sample(), firstAnswerMs)) !== 'late';
  } catch {
    return false;
  }
}

/** A node without GPUs. */
const noGpus: GpuSource = {
  name: 'none',
  onXid: null,
  list: async () => emptyListing,
  sample: async () => ({ samples: [], problems: [] }),
  close: async () => {},
};
