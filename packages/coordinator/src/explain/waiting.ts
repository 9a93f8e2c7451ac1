/** Why a queued job waits, and what would help, in words: from the reason that the scheduler found. */
import type { JobSpec } from '@muster/common/spec/types';
import type { PendingReason } from '@muster/common/views';
import { driverOf, type JobDemand, jobDemand, nodeTasksMax } from '../scheduler/capacity.ts';
import type { Preemption } from '../scheduler/preempt.ts';
import type {
  Amounts,
  CheckpointAway,
  DrainedNode,
  NeverFits,
  NodesAway,
  Obstacles,
  Shortage,
  TooFarApart,
  WaitReason,
} from '../scheduler/reasons.ts';

/** A job that has GPUs which another one waits for. */
export interface GpuHolder {
  readonly name: string;
  /** By its own reckoning. null: it is unknown. */
  readonly etaMs: number | null;
}

/** Message and remedy, without what else the API shows of a reason. */
type Sentences = Pick<PendingReason, 'message' | 'remedy'>;

/** More than a person wants to read in a sentence, of nodes and of kinds. */
const namedMax = 3;
const holdersNamedMax = 2;

/**
 * @param nowMs monotonic milliseconds
 * @param holders who has the GPUs that it waits for, those that end first in front
 */
export function pendingReason(
  reason: WaitReason,
  spec: JobSpec,
  nowMs: number,
  holders: readonly GpuHolder[] = [],
): PendingReason {
  const { kind } = reason;
  const sentences = withObstacles(sentencesOf(reason, spec, nowMs, holders), reason);
  if (kind !== 'backoff' && kind !== 'circuit_open') return { kind, ...sentences };
  return { kind, ...sentences, waitMs: waitMsOf(reason, nowMs) };
}

/** At least 1: a wait of 0 would be over. */
function waitMsOf({ untilMs }: { readonly untilMs: number }, nowMs: number): number {
  return Math.max(1, Math.ceil(untilMs - nowMs));
}

const endOf = { ok: 'succeed', any: 'end', fail: 'fail' } as const;

function sentencesOf(
  reason: WaitReason,
  spec: JobSpec,
  nowMs: number,
  holders: readonly GpuHolder[],
): Sentences {
  const demand = jobDemand(spec.resources, driverOf(spec));
  switch (reason.kind) {
    case 'dependency_failed':
      return {
        message: `dependency ${reason.on} ${reason.what}`,
        remedy: `\`muster requeue ${reason.on}\` and this job waits for that, or stop this job`,
      };
    case 'dependency':
      return only(`waiting for ${reason.on} to ${endOf[reason.when]}`);
    case 'backoff':
      return only(`next retry in ${Math.ceil(waitMsOf(reason, nowMs) / 1_000)} s`);
    case 'circuit_open': {
      const failures = `${countOf(reason.failures, 'failure')} without a newer checkpoint`;
      return {
        message: `${failures}: next retry in ${Math.ceil(waitMsOf(reason, nowMs) / 1_000)} s`,
        remedy: 'check the cause of the failures: `muster explain` of this job',
      };
    }
    case 'array_limit': {
      // How many of them run is not stated: some that count may be waiting for the GPUs of jobs they preempt.
      const { atOnce } = reason;
      const jobs = atOnce === 1 ? 'job' : 'jobs';
      return only(`at most ${atOnce} ${jobs} of its array may run at the same time (array: …%${atOnce})`);
    }
    case 'phase': {
      const { success } = spec.phases.find(({ name }) => name === reason.phase) ?? { success: null };
      return only(`the end of phase ${reason.phase} is being judged: ${success ?? 'no criterion'}`);
    }
    case 'paused':
      return only(reason.why);
    case 'never_fits':
      return neverFitsText(reason, demand);
    case 'no_nodes':
      return onlineText(reason, demand);
    case 'drained':
    case 'node_full':
    case 'no_gpus_free':
    case 'no_cpus_free':
    case 'no_memory_free':
      return only(shortageText(reason, demand, holders));
    case 'topology':
      return apartText(reason, demand, 'free');
    case 'reserved':
      return only(
        reason.by === 'ahead'
          ? 'the free resources are reserved for a job ahead of it that waits for more'
          : 'the free nodes are reserved for a job that has waited longer',
      );
    case 'preempting': {
      const named = reason.victims.map(({ id, priority }) => `${id} (priority ${priority})`);
      const more = named.length > namedMax ? ` and ${named.length - namedMax} more` : '';
      return only(`waiting for ${named.slice(0, namedMax).join(', ')}${more} to save and release its GPUs`);
    }
    case 'checkpoint':
      return checkpointText(reason);
    default: {
      const never: never = reason;
      return never;
    }
  }
}

/** Nothing but time helps. */
function only(message: string): Sentences {
  return { message, remedy: null };
}

/** `of the 2 nodes it needs`: a job that takes a range needs its lower end. */
function needsOf({ resources: { minNodes, nodes } }: JobDemand) {
  const isElastic = minNodes < nodes;
  return {
    ofTheNodes: `of the ${minNodes} nodes it needs${isElastic ? ' at least' : ''}`,
    needs: `it needs ${isElastic ? 'at least ' : ''}${minNodes}`,
  };
}

function neverFitsText(reason: NeverFits, demand: JobDemand): Sentences {
  const { needs } = needsOf(demand);
  const { have } = reason;
  switch (reason.lack) {
    case 'nodes':
      return {
        message: `the cluster has ${countOf(have, 'node')}, and ${needs} at the same time`,
        remedy: 'ask for fewer nodes (resources.nodes), or add nodes',
      };
    case 'driver': {
      const can = `${have} of ${reason.of} nodes can run`;
      return demand.driver === 'docker'
        ? {
            message: `${can} containers, and ${needs}`,
            remedy: 'install Docker on the nodes, or remove `image`',
          }
        : { message: `${can} processes, and ${needs}`, remedy: 'name an `image` to run in containers' };
    }
    case 'switch':
      return apartText(reason.apart, demand, null);
    case 'resources': {
      const task = describeTask(demand);
      const able = `${have} of the ${countOf(reason.of, 'node')} in the cluster`;
      const message =
        have === 0
          ? `no node has ${task}${largestText(reason.largest, demand)}`
          : `only ${able} ${have === 1 ? 'has' : 'have'} ${task}, and ${needs}`;
      return { message, remedy: lessText(reason.available, demand) };
    }
    default: {
      const never: never = reason;
      return never;
    }
  }
}

/** ` (largest has 2)`: of the one thing that no node has enough of, as far as there is one. */
function largestText({ gpus, cpus, memoryMb }: Amounts, { task }: JobDemand): string {
  if (gpus < task.gpus) return gpus === 0 ? '' : ` (largest has ${gpus})`;
  if (cpus < task.cpus) return ` (largest has ${countOf(cpus, 'CPU')})`;
  return memoryMb < task.memoryMb ? ` (largest has ${memoryMb} MiB of memory)` : '';
}

/** Names the one thing that is asked for too much of, as far as there is one. */
function lessText({ gpus, cpus, memoryMb }: Amounts, { resources, task }: JobDemand): string {
  const isChoosy = resources.gpuType.length > 0 || resources.gpuMemoryMb !== null;
  if (gpus === 0 && task.gpus > 0) {
    return isChoosy
      ? 'ask for GPUs that the nodes have (resources.gpu_type, resources.gpu_memory_mb), or add nodes'
      : 'add nodes with GPUs, or ask for none (resources.gpus)';
  }
  if (gpus < task.gpus) {
    const kind = isChoosy ? ' of that kind' : '';
    return `ask for at most ${countOf(gpus, 'GPU')}${kind} per node (resources.gpus), or add nodes`;
  }
  if (cpus < task.cpus)
    return `ask for at most ${countOf(cpus, 'CPU')} per node (resources.cpus), or add nodes`;
  if (memoryMb < task.memoryMb) {
    return `ask for at most ${memoryMb} MiB of memory per node (resources.memory_mb), or add nodes`;
  }
  return 'no node has all of these resources: ask for less per node or fewer nodes, or add nodes';
}

/** @param what is special about the nodes; null: they are there */
function apartText(
  { have, of, switchName, isLabelled }: TooFarApart,
  demand: JobDemand,
  what: 'free' | null,
): Sentences {
  if (!isLabelled) {
    const nodes = countOf(of, what === null ? 'node' : `${what} node`);
    return {
      message: `topology: required needs nodes under one switch, and none of the ${nodes} has a topology label`,
      remedy: 'start agents with --label topology=RACK/LEAF/SPINE, or ask for topology: preferred',
    };
  }
  const place = switchName === null ? '' : ` (${switchName})`;
  const are = what === null ? 'are' : `are ${what}`;
  return {
    message: `at most ${have} ${needsOf(demand).ofTheNodes} ${are} under one switch${place}`,
    remedy: 'ask for topology: preferred to start across switches, or for fewer nodes',
  };
}

function onlineText({ have, want, of }: NodesAway, demand: JobDemand): Sentences {
  if (of === 0) {
    return {
      message: 'the cluster has no nodes yet',
      remedy: 'add one: `muster token create NAME` here, `muster agent` there',
    };
  }
  return only(want === 1 ? 'no suitable node is online' : `${have} ${needsOf(demand).ofTheNodes} are online`);
}

/**
 * `waiting for 2 free GPUs on one node (4 of 4 GPUs in use)`,
 * `waiting for 2 nodes with 8 free GPUs each (1 has them now; 12 of 16 GPUs in use)`.
 */
function shortageText(reason: Shortage, demand: JobDemand, holders: readonly GpuHolder[]): string {
  const { have, want } = reason;
  if (!('used' in reason)) {
    if (reason.kind === 'drained')
      return want === 1 ? 'no node can take it' : `${have} ${needsOf(demand).ofTheNodes} can take it`;
    const nodes = want === 1 ? 'a node' : `${want} nodes`;
    return `waiting for ${nodes} with fewer than ${nodeTasksMax} tasks, the most it may have`;
  }
  const who = reason.kind === 'no_gpus_free' ? holdersText(holders) : '';
  const inUse = `${amount(reason.used)} of ${amount(reason.total)} ${unitOf[reason.kind]} in use${who}`;
  const free = describeTask(demand, 'free ');
  if (want === 1) return `waiting for ${free} on one node (${inUse})`;
  const each = `${want < demand.resources.nodes ? 'at least ' : ''}${want} nodes with ${free} each`;
  return `waiting for ${each} (${have === 1 ? '1 has' : `${have} have`} them now; ${inUse})`;
}

const unitOf = { no_gpus_free: 'GPUs', no_cpus_free: 'CPUs', no_memory_free: 'MiB of memory' } as const;

/** `: llama-8b, ~12 min left; mixtral; and 1 more` */
function holdersText(holders: readonly GpuHolder[]): string {
  if (holders.length === 0) return '';
  const named = holders
    .slice(0, holdersNamedMax)
    .map(({ name, etaMs }) => (etaMs === null ? name : `${name}, ~${roughly(etaMs)} left`));
  const more = holders.length - named.length;
  return `: ${[...named, ...(more === 0 ? [] : [`and ${more} more`])].join('; ')}`;
}

/** Of an estimate, one unit is enough. */
function roughly(ms: number): string {
  const minutes = Math.max(1, Math.round(ms / 60_000));
  if (minutes < 120) return `${minutes} min`;
  const hours = Math.round(minutes / 60);
  return hours < 48 ? `${hours} h` : `${Math.round(hours / 24)} d`;
}

/** CPUs come in fractions. */
function amount(value: number): string {
  return String(Number(value.toFixed(1)));
}

function checkpointText({ node, checkpoint, home }: CheckpointAway): Sentences {
  const remedy =
    'use a checkpoint.dir that all nodes share, or discard it with `muster requeue --from start`';
  return {
    message: `its newest checkpoint (${checkpoint}) is on ${node} only, ${homeText(home)}`,
    remedy: typeof home === 'string' ? remedy : `${drainRemedy(home)}, or ${remedy}`,
  };
}

function homeText(home: CheckpointAway['home']): string {
  if (typeof home !== 'string')
    return `which ${home.gpus === null ? 'is' : 'has GPUs that are'} ${drainText(home)}`;
  switch (home) {
    case 'unsuitable':
      return 'which no longer has the resources it needs';
    case 'silent':
      return 'which is silent';
    case 'reserved':
      return 'which is reserved for a job that has waited longer';
    case 'busy':
      return 'which is busy';
    case 'lonely':
      return 'and too few nodes under the same switch are free';
    default: {
      const never: never = home;
      return never;
    }
  }
}

/** Adds the nodes that might have done. What helps against the first of them comes before anything else. */
function withObstacles({ message, remedy }: Sentences, reason: WaitReason): Sentences {
  if (!('obstacles' in reason)) return { message, remedy };
  const { silent, drained, orphaned, excluded }: Obstacles = reason.obstacles;
  const [drain] = drained;
  const [orphan] = orphaned;
  const sentences = [
    ...listed(silent.map((node) => `${node} is silent`)),
    ...listed(drained.map(describeDrain)),
    ...listed(
      orphaned.map(
        ({ node, gpus }) => `${countOf(gpus, 'GPU')} of ${node} held by tasks unknown to the store`,
      ),
    ),
    ...listed(excluded.map(({ node, cause }) => `${node} is excluded (${cause ?? 'unknown'})`)),
  ];
  return { message: [message, ...sentences].join('; '), remedy: firstRemedy() };

  function firstRemedy(): string | null {
    if (orphan !== undefined)
      return `\`muster node end-orphans ${orphan.node}\` kills the tasks there that the store does not know`;
    if (drain !== undefined) return drainRemedy(drain);
    return silent.length > 0 ? 'bring silent nodes back; `muster nodes` shows which are' : remedy;
  }
}

/** The first few, and how many more there are. */
function listed(sentences: readonly string[]): readonly string[] {
  const more = sentences.length - namedMax;
  return more <= 0 ? sentences : [...sentences.slice(0, namedMax), `and ${countOf(more, 'node')} more`];
}

/** What ends the drain of a drained node. */
function drainRemedy({ node, drainReason }: DrainedNode): string {
  return drainReason === null
    ? `\`muster node ${node}\` shows what is wrong there and what clears it`
    : `\`muster node undrain ${node}\` gives it new tasks again`;
}

/** `2 of 8 GPUs of node-3 are drained (xid_79)`, `node-3 is drained (kernel update)` */
function describeDrain(drain: DrainedNode): string {
  const { node, gpus, of } = drain;
  const what =
    gpus === null ? `${node} is` : `${gpus} of ${countOf(of, 'GPU')} of ${node} ${gpus === 1 ? 'is' : 'are'}`;
  return `${what} ${drainText(drain)}`;
}

/** `drained (xid_79, clock_skew)` */
function drainText({ drainReason, kinds }: DrainedNode): string {
  const all = drainReason === null ? kinds : [drainReason, ...kinds];
  return `drained (${all.slice(0, namedMax).join(', ')}${all.length > namedMax ? ', …' : ''})`;
}

/** `preempted by job_h (priority 80 over 20); 3 GPU-minutes since its last checkpoint of step 500` */
export function preemptionText({ by, victim }: Pick<Preemption, 'by' | 'victim'>): string {
  const { priority, lostSince, lostGpuSeconds, tasks } = victim;
  const who = `preempted by ${by.id} (priority ${by.priority} over ${priority})`;
  if (lostSince === null) return `${who} before it began`;
  if (tasks.every(({ gpuUuids }) => gpuUuids.length === 0)) return who;
  const step = lostSince === 'start' || lostSince.step === null ? '' : ` of step ${lostSince.step}`;
  const since = lostSince === 'start' ? 'since it began' : `since its last checkpoint${step}`;
  return `${who}; ${gpuTimeText(lostGpuSeconds)} ${since}`;
}

function gpuTimeText(seconds: number): string {
  if (seconds < 120) return countOf(seconds, 'GPU-second');
  const minutes = Math.round(seconds / 60);
  return minutes < 120 ? `${minutes} GPU-minutes` : `${Math.round(minutes / 60)} GPU-hours`;
}

/** What one task takes: `8 H100 GPUs and 4 CPUs`. @param free `free `: before the first thing */
function describeTask({ resources, task }: JobDemand, free: 'free ' | '' = ''): string {
  const parts: string[] = [];
  if (task.gpus > 0) {
    const type = resources.gpuType.length > 0 ? `${resources.gpuType.join('/')} ` : '';
    const memory = resources.gpuMemoryMb === null ? '' : ` of ${resources.gpuMemoryMb} MiB`;
    parts.push(`${countOf(task.gpus, `${free}${type}GPU`)}${memory}`);
  }
  const first = () => (parts.length === 0 ? free : '');
  if (task.cpus > 0) parts.push(countOf(task.cpus, `${first()}CPU`));
  if (task.memoryMb > 0) parts.push(`${task.memoryMb} ${first()}MiB of memory`);
  const last = parts.pop();
  if (last === undefined) return 'room';
  return parts.length === 0 ? last : `${parts.join(', ')} and ${last}`;
}

function countOf(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
