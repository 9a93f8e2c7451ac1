/** The shapes of a job spec. Importing this file costs nothing at run time: types only, zod stays out. */

import type * as z from 'zod';
import type { VerificationDepth } from '../checkpoints.ts';
import type { BackoffPolicy } from '../retry.ts';
import type { TrainingMetricName } from '../training.ts';
import type { JobArraySpec } from './array.ts';
import type { RetryableCause } from './causes.ts';
import type {
  DivergenceAction,
  HangAction,
  Launcher,
  LeaseExpiryAction,
  NodeLossAction,
  StopSignal,
  Topology,
} from './choices.ts';
import type { jobSpecSchema } from './schema.ts';

export type { Launcher, LeaseExpiryAction, NodeLossAction, Topology } from './choices.ts';

/** A job spec as users write it: snake_case keys, durations as `90s`, volumes as `/data:/data:ro`. */
export type JobSpecFile = z.input<typeof jobSpecSchema>;

/** A bind mount of a container; both paths absolute. */
export interface Volume {
  readonly source: string;
  readonly target: string;
  readonly readOnly: boolean;
}

export interface JobResources {
  /** As many as the job wants at once, 1..1024. */
  readonly nodes: number;
  /** As few as will do, 1..`nodes`. Less than `nodes`: an attempt takes what fits. */
  readonly minNodes: number;
  /** Of a gang of several nodes: under as few switches as can be, or only under one switch of the nearest level. */
  readonly topology: Topology;
  /** GPUs on each node, 0..64. */
  readonly gpus: number;
  /** Any of these models will do; empty: every model. */
  readonly gpuType: readonly string[];
  /** MiB per GPU at least. null: any. */
  readonly gpuMemoryMb: number | null;
  /** Logical CPUs per node, may be a fraction. null: no request and no limit. */
  readonly cpus: number | null;
  /** MiB per node. null: no request and no limit. */
  readonly memoryMb: number | null;
  /** MiB of /dev/shm per container. null: the engine's default. */
  readonly shmMb: number | null;
}

export interface JobPreflight {
  /** Mbit/s of each pair of nodes, at least. null: measured only. */
  readonly minBandwidthMbps: number | null;
}

export interface JobRetry {
  /** Failures since the last progress (a newer verified checkpoint), 1..100; 1 means no retry. */
  readonly maxAttempts: number;
  readonly backoff: BackoffPolicy;
  readonly on: readonly RetryableCause[];
  /** How often it gives way before it may not be preempted any more. null: any number of times. */
  readonly maxPreemptions: number | null;
  /** What each `cuda_oom` multiplies MUSTER_BATCH_SCALE by, more than 0, at most 1. */
  readonly batchScale: number;
  /** What each divergence multiplies MUSTER_LR_SCALE by, more than 0, at most 1. */
  readonly lrScale: number;
  readonly breaker: RetryBreaker;
}

/** After so many failures in a row without progress: a pause, and then one trial at a time. */
export interface RetryBreaker {
  /** 1..100 */
  readonly failures: number;
  readonly pauseMs: number;
}

export interface JobCheckpoint {
  /** Absolute path. null: the node's own for a process, none for a container. */
  readonly dir: string | null;
  /** Names of the checkpoints where they are none of the usual ones: `run-{step}.bin`. null: the usual ones. */
  readonly pattern: string | null;
  readonly verify: VerificationDepth;
  /** How many of the newest to keep. null, with no other rule: all are kept. */
  readonly keepLast: number | null;
  /** Those of every so many steps are kept as well. */
  readonly keepEvery: number | null;
  /** The best one by this metric is kept as well. */
  readonly keepBest: { readonly metric: TrainingMetricName; readonly mode: 'min' | 'max' } | null;
}

export interface JobHang {
  readonly action: HangAction;
  /** Quiet for so many times as long as usual, 2..1000. */
  readonly times: number;
  /** And for so long. */
  readonly atLeastMs: number;
}

/** A job spec checked and complete: what coordinator, scheduler and agent work with. Immutable once submitted. */
export interface JobSpec {
  /** DNS label; in an array it may hold `{array_index}`. */
  readonly name: string;
  readonly project: string;
  /** null: run as a process on the node. */
  readonly image: string | null;
  /** argv; what runs is `[...command, ...args]`. Empty, and then without args: the image's own entrypoint. */
  readonly command: readonly string[];
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Absolute. null: the task's own fresh directory (process) or the image's (container). */
  readonly workdir: string | null;
  /** Of processes, 0 to 0o777. null: that of the node. */
  readonly umask: number | null;
  readonly resources: JobResources;
  readonly volumes: readonly Volume[];
  /** 0..100, higher runs first. */
  readonly priority: number;
  readonly preemptible: boolean;
  /** Of one attempt. null: no limit. */
  readonly maxRuntimeMs: number | null;
  /** The first signal of a stop. */
  readonly stopSignal: StopSignal;
  /** From there to SIGKILL. */
  readonly stopGraceMs: number;
  readonly onDivergence: DivergenceAction;
  readonly hang: JobHang;
  /** What `{name}` in command and args stands for; those that are named for a batch size or a learning rate are scaled. */
  readonly params: Readonly<Record<string, string | number>>;
  readonly launcher: Launcher;
  /** Network (`10.1.0.0/16`) or interface (`ib0`) that the gang talks over. null: the best that all its nodes share. */
  readonly network: string | null;
  /** Measure the paths between its nodes before each attempt. null: only for nodes that were away. */
  readonly preflight: JobPreflight | null;
  /** From allocation until every node is prepared. */
  readonly prepareTimeoutMs: number;
  /** From release until every task runs. */
  readonly rendezvousTimeoutMs: number;
  /** How long a task may run without word from the coordinator. null: as the coordinator is set. */
  readonly leaseMs: number | null;
  readonly onLeaseExpiry: LeaseExpiryAction;
  readonly nodeLoss: NodeLossAction;
  readonly retry: JobRetry;
  readonly checkpoint: JobCheckpoint;
  /** null: it is one job. */
  readonly array: JobArraySpec | null;
  /** `JOB`, `JOB:any` or `JOB:fail`; once it is submitted, with ids of jobs and arrays. */
  readonly after: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
}

/** One thing wrong with a spec, in words for the person who wrote it. */
export interface SpecProblem {
  /** Where in the spec: `resources.gpus`, `volumes[0]`, `env["1X"]`; empty for the whole. */
  readonly path: string;
  /** 1-based place in the file; null when the value came from a flag or an API call. */
  readonly line: number | null;
  readonly column: number | null;
  /** The flag to blame, such as `--nodes`; null when it was none. */
  readonly flag: string | null;
  /** What is wrong: `unknown key`, `got "high"`. Never empty. */
  readonly message: string;
  /** What was expected, or what to do instead. */
  readonly expected: string | null;
  /** A likely right key or value, as one would write it. */
  readonly suggestion: string | null;
}

export type SpecResult =
  | { readonly ok: true; readonly spec: JobSpec }
  | { readonly ok: false; readonly problems: readonly SpecProblem[] };
