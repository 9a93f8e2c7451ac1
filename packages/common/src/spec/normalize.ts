/**
 * From the job file's shape to `JobSpec`: defaults filled in, units fixed, names in camelCase. It trusts its argument,
 * which the schema has passed before; that keeps zod out of whoever only reads specs (the agent).
 */
import { jobSpecDefaults as defaults } from './defaults.ts';
import { parseDurationMs } from './duration.ts';
import { toLabel } from './suggest.ts';
import type { JobPreflight, JobResources, JobRetry, JobSpec, JobSpecFile, Volume } from './types.ts';
import { parseVolume } from './volume.ts';

type WrittenText = string | number | boolean;

export function normalizeJobSpec(file: JobSpecFile): JobSpec {
  const args = (file.args ?? []).map(String);
  return {
    name: file.name ?? defaultName(file.command),
    project: file.project ?? defaults.project,
    image: file.image ?? null,
    command: normalizeCommand(file.command ?? [], args.length > 0),
    args,
    env: textValues(file.env),
    workdir: file.workdir ?? null,
    resources: normalizeResources(file.resources ?? {}),
    volumes: (file.volumes ?? []).map(requireVolume),
    priority: file.priority ?? defaults.priority,
    preemptible: file.preemptible ?? defaults.preemptible,
    maxRuntimeMs: file.max_runtime === undefined ? null : requireDurationMs(file.max_runtime),
    stopGraceMs: file.stop_grace === undefined ? defaults.stopGraceMs : requireDurationMs(file.stop_grace),
    launcher: file.launcher ?? defaults.launcher,
    network: file.network ?? null,
    preflight: normalizePreflight(file.preflight),
    prepareTimeoutMs:
      file.prepare_timeout === undefined
        ? defaults.prepareTimeoutMs
        : requireDurationMs(file.prepare_timeout),
    rendezvousTimeoutMs:
      file.rendezvous_timeout === undefined
        ? defaults.rendezvousTimeoutMs
        : requireDurationMs(file.rendezvous_timeout),
    leaseMs: file.lease === undefined ? null : requireDurationMs(file.lease),
    onLeaseExpiry: file.on_lease_expiry ?? defaults.onLeaseExpiry,
    nodeLoss: file.node_loss ?? defaults.nodeLoss,
    retry: normalizeRetry(file.retry),
    checkpoint: { dir: file.checkpoint?.dir ?? null, keepLast: file.checkpoint?.keep_last ?? null },
    after: [...new Set(file.after)],
    labels: textValues(file.labels),
  };
}

/**
 * Text goes to the shell. Arguments follow as its positional parameters: the word after the script is `$0`, and
 * without it the first argument would be swallowed as that.
 */
function normalizeCommand(command: string | readonly WrittenText[], hasArgs: boolean): readonly string[] {
  if (typeof command !== 'string') return command.map(String);
  return hasArgs ? ['/bin/sh', '-c', command, 'sh'] : ['/bin/sh', '-c', command];
}

/** `/opt/bin/torchrun train.py` → `torchrun`; for shell text the first word that is no variable assignment. */
function defaultName(command: JobSpecFile['command']): string {
  const words =
    typeof command === 'string' ? command.trim().split(/\s+/, 20) : (command ?? []).slice(0, 1).map(String);
  const program = words.find((word) => !/^\w+=/.test(word)) ?? '';
  const basename = program.slice(program.lastIndexOf('/') + 1).replace(/(?<=.)\.\w{1,4}$/, '');
  return toLabel(basename) || defaults.name;
}

function normalizeResources(resources: NonNullable<JobSpecFile['resources']>): JobResources {
  const models = resources.gpu_type ?? [];
  const nodes = resources.nodes ?? defaults.nodes;
  return {
    nodes: typeof nodes === 'number' ? nodes : nodes.max,
    minNodes: typeof nodes === 'number' ? nodes : nodes.min,
    topology: resources.topology ?? defaults.topology,
    gpus: resources.gpus ?? defaults.gpus,
    gpuType: typeof models === 'string' ? [models] : [...new Set(models)],
    gpuMemoryMb: resources.gpu_memory_mb ?? null,
    cpus: resources.cpus ?? null,
    memoryMb: resources.memory_mb ?? null,
    shmMb: resources.shm_mb ?? null,
  };
}

function normalizePreflight(preflight: JobSpecFile['preflight']): JobPreflight | null {
  if (preflight === undefined || preflight === false) return null;
  return { minBandwidthMbps: preflight === true ? null : (preflight.min_bandwidth_mbps ?? null) };
}

function normalizeRetry(retry: JobSpecFile['retry']): JobRetry {
  const { initial, max } = retry?.backoff ?? {};
  // Whoever sets one of the two to the far side of the other's default means "always this long".
  const maxGivenMs = max === undefined ? null : requireDurationMs(max);
  const initialMs =
    initial === undefined
      ? Math.min(defaults.backoffInitialMs, maxGivenMs ?? Number.POSITIVE_INFINITY)
      : requireDurationMs(initial);
  return {
    maxAttempts: retry?.max_attempts ?? defaults.maxAttempts,
    backoff: { initialMs, maxMs: maxGivenMs ?? Math.max(defaults.backoffMaxMs, initialMs) },
    on: [...new Set(retry?.on ?? defaults.retryOn)],
  };
}

function textValues(
  map: Readonly<Record<string, WrittenText>> | undefined,
): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(map ?? {}).map(([key, value]) => [key, String(value)]));
}

function requireDurationMs(written: string | number): number {
  const ms = parseDurationMs(written);
  if (ms === null) throw new TypeError(`not a checked job spec: ${String(written)} is no duration`);
  return ms;
}

function requireVolume(text: string): Volume {
  const volume = parseVolume(text);
  if (volume === null) throw new TypeError(`not a checked job spec: ${text} is no volume`);
  return volume;
}
