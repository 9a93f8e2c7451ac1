/** Who has the GPUs that a queued job waits for, and for how long: known here, and of no use to the planner. Pure. */
import type { PendingReason } from '@muster/common/views';
import { pendingToWire } from '@muster/common/wire/codec';
import type { TaskStatusCache } from '../agents/taskStatusCache.ts';
import { type GpuHolder, pendingReason } from '../explain/waiting.ts';
import type { Loop, Rehearsal } from '../loop.ts';
import type { Job } from '../model.ts';
import type { PhaseRunner } from '../phases/phaseRunner.ts';
import { driverOf, fitsEmpty, hasFreeGpus, isLeftByDrains, jobDemand } from '../scheduler/capacity.ts';
import type { WaitReason } from '../scheduler/reasons.ts';
import type { SchedulerNode } from '../scheduler/view.ts';
import { heldTasks } from '../state/heldTasks.ts';
import type { ClusterState } from '../state/state.ts';
import { liveTraining } from '../views.ts';

/** What the calls about jobs know. */
export interface PendingParts {
  readonly state: Pick<ClusterState, 'jobs'>;
  readonly loop: Pick<Loop, 'reasons'>;
  readonly taskStatus: Pick<TaskStatusCache, 'of'>;
  readonly phases: Pick<PhaseRunner, 'awaitsOf'>;
  /** Nodes as the scheduler sees them now. */
  readonly nodeViews: () => readonly SchedulerNode[];
  readonly monotonicMs: () => number;
}

type IsNamed = (job: Job) => boolean;

/**
 * Why a queued job waits. `withHolders` names the jobs that have the GPUs which it waits for.
 * @param isNamed whether a job may be named to the caller
 * @returns undefined when no pass has looked at it yet
 */
export function pendingNow(
  parts: PendingParts,
  job: Job,
  detail: 'brief' | 'withHolders' = 'brief',
  isNamed: IsNamed = () => true,
): PendingReason | undefined {
  const reason = parts.loop.reasons.get(job);
  if (reason === undefined) return undefined;
  const pending = inWords(parts, job, reason, detail, isNamed);
  const awaits = pending.kind === 'phase' ? parts.phases.awaitsOf(job.id) : null;
  return awaits === null ? pending : { ...pending, message: `${pending.message}; waits for ${awaits}` };
}

/** To a dry run: where the job would start now, or why it would wait. */
export function dryRunAnswer(parts: PendingParts, rehearsal: Rehearsal, isNamed: IsNamed) {
  const { ahead: jobsAhead, job } = rehearsal;
  return rehearsal.kind === 'start'
    ? { wouldStartOn: [...rehearsal.nodes], jobsAhead }
    : { wouldWait: pendingToWire(inWords(parts, job, rehearsal.reason, 'withHolders', isNamed)), jobsAhead };
}

function inWords(
  { state, taskStatus, nodeViews, monotonicMs }: PendingParts,
  job: Job,
  reason: WaitReason,
  detail: 'brief' | 'withHolders',
  isNamed: IsNamed,
): PendingReason {
  // Of the other reasons nobody in particular is why.
  const isHeld = detail === 'withHolders' && reason.kind === 'no_gpus_free';
  const holders = isHeld
    ? gpuHolders(job, [...state.jobs.values()].filter(isNamed), nodeViews(), taskStatus)
    : [];
  return pendingReason(reason, job.spec, monotonicMs(), holders);
}

/** Jobs with GPUs on the nodes that this one could use, those that end first by their own reckoning in front. */
export function gpuHolders(
  { spec }: Job,
  jobs: Iterable<Job>,
  nodes: readonly SchedulerNode[],
  taskStatus: Pick<TaskStatusCache, 'of'>,
): readonly GpuHolder[] {
  const demand = jobDemand(spec.resources, driverOf(spec));
  const full = nodes.filter(
    (node) =>
      node.online && fitsEmpty(node, demand) && isLeftByDrains(node, demand) && !hasFreeGpus(node, demand),
  );
  const held = heldTasks(jobs);
  const holders = new Set(
    full.flatMap(({ name }) =>
      (held.get(name) ?? []).flatMap(({ job, task }) => (task.gpuUuids.length > 0 ? [job] : [])),
    ),
  );
  return Array.from(holders, (job) => ({ job, etaMs: liveTraining(job, taskStatus)?.etaMs ?? null }))
    .sort((a, b) => (a.etaMs ?? Infinity) - (b.etaMs ?? Infinity) || a.job.submitSeq - b.job.submitSeq)
    .map(({ job, etaMs }) => ({ name: job.spec.name, etaMs }));
}
