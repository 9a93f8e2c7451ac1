/**
 * `JobSpec` back into the shape of the job file: what `-o json` prints, what the store keeps, what travels to agents,
 * and what a user can submit again. No zod in here: the agent reads specs with `decodeJobSpec`.
 */
import { createHash } from 'node:crypto';
import { formatArray } from './array.ts';
import { jobSpecDefaults as defaults } from './defaults.ts';
import { formatDuration } from './duration.ts';
import { normalizeJobSpec } from './normalize.ts';
import { isMapping } from './path.ts';
import type { JobCheckpoint, JobHang, JobSpec, JobSpecFile, RetryBreaker } from './types.ts';
import { formatVolume } from './volume.ts';

/**
 * The canonical file shape: one spec has exactly one. What is in force is written out, defaults included; what is not
 * set is left out. A setting added in a later version has to be left out while it has its default, or the digest of
 * every stored spec would change with an upgrade.
 */
export function jobSpecToFile(spec: JobSpec): JobSpecFile {
  const { resources, retry, checkpoint } = spec;
  return {
    name: spec.name,
    project: spec.project,
    ...(spec.image !== null && { image: spec.image }),
    ...(spec.command.length > 0 && { command: [...spec.command] }),
    ...(spec.args.length > 0 && { args: [...spec.args] }),
    ...(Object.keys(spec.env).length > 0 && { env: { ...spec.env } }),
    ...(spec.workdir !== null && { workdir: spec.workdir }),
    ...(spec.umask !== null && { umask: spec.umask.toString(8).padStart(4, '0') }),
    resources: {
      nodes:
        resources.minNodes === resources.nodes
          ? resources.nodes
          : { min: resources.minNodes, max: resources.nodes },
      gpus: resources.gpus,
      ...(resources.gpuType.length > 0 && { gpu_type: [...resources.gpuType] }),
      ...(resources.gpuMemoryMb !== null && { gpu_memory_mb: resources.gpuMemoryMb }),
      ...(resources.cpus !== null && { cpus: resources.cpus }),
      ...(resources.memoryMb !== null && { memory_mb: resources.memoryMb }),
      ...(resources.shmMb !== null && { shm_mb: resources.shmMb }),
      ...(resources.topology !== defaults.topology && { topology: resources.topology }),
    },
    ...(spec.volumes.length > 0 && { volumes: spec.volumes.map(formatVolume) }),
    priority: spec.priority,
    preemptible: spec.preemptible,
    ...(spec.maxRuntimeMs !== null && { max_runtime: formatDuration(spec.maxRuntimeMs) }),
    stop_grace: formatDuration(spec.stopGraceMs),
    ...(spec.stopSignal !== defaults.stopSignal && { stop_signal: spec.stopSignal }),
    ...(spec.onDivergence !== defaults.onDivergence && { on_divergence: spec.onDivergence }),
    ...hangToFile(spec.hang),
    ...(Object.keys(spec.params).length > 0 && { params: { ...spec.params } }),
    ...(spec.launcher !== defaults.launcher && { launcher: spec.launcher }),
    ...(spec.network !== null && { network: spec.network }),
    ...(spec.preflight !== null && {
      preflight:
        spec.preflight.minBandwidthMbps === null
          ? true
          : { min_bandwidth_mbps: spec.preflight.minBandwidthMbps },
    }),
    ...(spec.prepareTimeoutMs !== defaults.prepareTimeoutMs && {
      prepare_timeout: formatDuration(spec.prepareTimeoutMs),
    }),
    ...(spec.rendezvousTimeoutMs !== defaults.rendezvousTimeoutMs && {
      rendezvous_timeout: formatDuration(spec.rendezvousTimeoutMs),
    }),
    ...(spec.leaseMs !== null && { lease: formatDuration(spec.leaseMs) }),
    ...(spec.onLeaseExpiry !== defaults.onLeaseExpiry && { on_lease_expiry: spec.onLeaseExpiry }),
    ...(spec.nodeLoss !== defaults.nodeLoss && { node_loss: spec.nodeLoss }),
    retry: {
      max_attempts: retry.maxAttempts,
      backoff: { initial: formatDuration(retry.backoff.initialMs), max: formatDuration(retry.backoff.maxMs) },
      on: [...retry.on],
      ...(retry.maxPreemptions !== null && { max_preemptions: retry.maxPreemptions }),
      ...(retry.batchScale !== defaults.batchScale && { batch_scale: retry.batchScale }),
      ...(retry.lrScale !== defaults.lrScale && { lr_scale: retry.lrScale }),
      ...breakerToFile(retry.breaker),
    },
    ...checkpointToFile(checkpoint),
    ...(spec.array !== null && { array: formatArray(spec.array) }),
    ...(spec.after.length > 0 && { after: [...spec.after] }),
    ...(Object.keys(spec.labels).length > 0 && { labels: { ...spec.labels } }),
  };
}

function hangToFile({ action, times, atLeastMs }: JobHang): Pick<JobSpecFile, 'on_hang'> {
  const rest = {
    ...(times !== defaults.hangTimes && { times }),
    ...(atLeastMs !== defaults.hangAtLeastMs && { at_least: formatDuration(atLeastMs) }),
  };
  if (Object.keys(rest).length > 0) return { on_hang: { action, ...rest } };
  return action === defaults.hangAction ? {} : { on_hang: action };
}

function breakerToFile({
  failures,
  pauseMs,
}: RetryBreaker): Pick<NonNullable<JobSpecFile['retry']>, 'breaker'> {
  const breaker = {
    ...(failures !== defaults.breakerFailures && { failures }),
    ...(pauseMs !== defaults.breakerPauseMs && { pause: formatDuration(pauseMs) }),
  };
  return Object.keys(breaker).length > 0 ? { breaker } : {};
}

function checkpointToFile(spec: JobCheckpoint): Pick<JobSpecFile, 'checkpoint'> {
  const { dir, pattern, verify, keepLast, keepEvery, keepBest } = spec;
  const checkpoint = {
    ...(dir !== null && { dir }),
    ...(pattern !== null && { pattern }),
    ...(verify !== defaults.verify && { verify }),
    ...(keepLast !== null && { keep_last: keepLast }),
    ...(keepEvery !== null && { keep_every: keepEvery }),
    ...(keepBest !== null && { keep_best: { ...keepBest } }),
  };
  return Object.keys(checkpoint).length > 0 ? { checkpoint } : {};
}

/** The canonical file shape as JSON text with sorted keys: equal specs give equal bytes. */
export function encodeJobSpec(spec: JobSpec): string {
  return JSON.stringify(jobSpecToFile(spec), (_key, value: unknown) =>
    isMapping(value) ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) : value,
  );
}

/**
 * Reads what `encodeJobSpec` wrote, without checking it again: for text from our own store or coordinator only.
 * @throws {SyntaxError | TypeError} for text that is not such a spec
 */
export function decodeJobSpec(json: string): JobSpec {
  const value: unknown = JSON.parse(json);
  if (!isMapping(value)) throw new TypeError('not a checked job spec: no mapping');
  return normalizeJobSpec(value);
}

/** SHA-256 (hex) over the canonical form: two submits with one request id are the same if their digests are. */
export function jobSpecDigest(spec: JobSpec): string {
  return createHash('sha256').update(encodeJobSpec(spec)).digest('hex');
}
