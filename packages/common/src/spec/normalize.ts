/**
 * From the job file's shape to `JobSpec`: defaults filled in, units fixed, names in camelCase. It trusts its argument,
 * which the schema has passed before; that keeps zod out of whoever only reads specs (the agent).
 */
import { formatDependency, parseDependency } from './after.ts';
import { type JobArraySpec, parseArray } from './array.ts';
import { jobSpecDefaults as defaults } from './defaults.ts';
import { parseDurationMs } from './duration.ts';
import { toLabel } from './suggest.ts';
import type {
  JobCheckpoint,
  JobHang,
  JobPreflight,
  JobResources,
  JobRetry,
  JobSpec,
  JobSpecFile,
  Volume,
} from './types.ts';
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
    umask: file.umask === undefined ? null : Number.parseInt(file.umask, 8),
    resources: normalizeResources(file.resources ?? {}),
    volumes: (file.volumes ?? []).map(requireVolume),
    priority: file.priority ?? defaults.priority,
    preemptible: file.preemptible ?? defaults.preemptible,
    maxRuntimeMs: file.max_runtime === undefined ? null : requireDurationMs(file.max_runtime),
    stopSignal: file.stop_signal ?? defaults.stopSignal,
    onDivergence: file.on_divergence ?? defaults.onDivergence,
    hang: normalizeHang(file.on_hang ?? defaults.hangAction),
    params: { ...file.params },
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
    checkpoint: normalizeCheckpoint(file.checkpoint ?? {}),
    array: file.array === undefined ? null : requireArray(file.array),
    after: [...new Set((file.after ?? []).map((each) => formatDependency(parseDependency(each))))],
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

function requireArray(written: string | number): JobArraySpec {
  const reading = parseArray(written);
  if ('array' in reading) return reading.array;
  throw new TypeError(`not a checked job spec: array ${written}`);
}

/** Alone for lists, where the rest of a thousand specs is not looked at. */
export function normalizeResources(resources: NonNullable<JobSpecFile['resources']>): JobResources {
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
    maxPreemptions: retry?.max_preemptions ?? null,
    batchScale: retry?.batch_scale ?? defaults.batchScale,
    lrScale: retry?.lr_scale ?? defaults.lrScale,
    breaker: {
      failures: retry?.breaker?.failures ?? defaults.breakerFailures,
      pauseMs:
        retry?.breaker?.pause === undefined
          ? defaults.breakerPauseMs
          : requireDurationMs(retry.breaker.pause),
    },
  };
}

function normalizeCheckpoint(file: NonNullable<JobSpecFile['checkpoint']>): JobCheckpoint {
  return {
    dir: file.dir ?? null,
    pattern: file.pattern ?? null,
    verify: file.verify ?? defaults.verify,
    keepLast: file.keep_last ?? null,
    keepEvery: file.keep_every ?? null,
    keepBest:
      file.keep_best === undefined
        ? null
        : { metric: file.keep_best.metric, mode: file.keep_best.mode ?? 'min' },
  };
}

function normalizeHang(written: NonNullable<JobSpecFile['on_hang']>): JobHang {
  const { action, times, at_least: atLeast } = typeof written === 'string' ? { action: written } : written;
  return {
    action,
    times: times ?? defaults.hangTimes,
    atLeastMs: atLeast === undefined ? defaults.hangAtLeastMs : requireDurationMs(atLeast),
  };
}

function textValues(
  map: Readonly<Record<string, WrittenText>> | undefined,
): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(map ?? {}).map(([key, value]) => [key, String(value)]));
}

function requireDurationMs(written: string | number): number {
  const ms = parseDurationMs(written);
  if (ms === null) throw new TypeError(`not a checked job spec: invalid duration ${String(written)}`);
  return ms;
}

function requireVolume(text: string): Volume {
  const volume = parseVolume(text);
  if (volume === null) throw new TypeError(`not a checked job spec: invalid volume ${text}`);
  return volume;
}
